"""What a batch writes into the log. A filter or handler that raises must not stop what is being told of (B21)."""

import logging
from contextlib import suppress
from typing import Any

__all__ = ["tell"]

_logger = logging.getLogger("toolbatch")


def tell(level: int, message: str, *args: object, **details: Any) -> None:
    """Write one record of `toolbatch`, and never raise."""
    with suppress(Exception):
        _logger.log(level, message, *args, **details)
