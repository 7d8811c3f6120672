"""What output budgets write into the log. A filter or handler that raises must not cost a result."""

import logging
from contextlib import suppress

__all__ = ["warn"]

_logger = logging.getLogger("toolbatch.output")


def warn(message: str, *args: object, error: BaseException | None = None) -> None:
    """Write one warning of `toolbatch.output`, and never raise."""
    with suppress(Exception):
        _logger.warning(message, *args, exc_info=error)
