"""A host's tokenizer, held so that its failure can't cost a result (G5)."""

from toolbatch.core import preview

from ._estimate import TokenCount, estimate_tokens
from ._log import warn

__all__ = ["Counter"]


class Counter:
    """Counts as `count` does, and by the estimate where `count` raises or returns no number; the log hears of it once.

    Args:
        count: The host's function.
    """

    __slots__ = ("_count", "_told")

    def __init__(self, count: TokenCount) -> None:
        self._count = count
        self._told = False

    @property
    def is_estimate(self) -> bool:
        """Whether no tokenizer was plugged in."""
        return self._count is estimate_tokens

    def __call__(self, text: str) -> int:
        """Return the tokens of a text, at least 0."""
        try:
            tokens = self._count(text)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  a tokenizer written in Rust panics with a BaseException
            self._tell(f"raised {preview(error)}", error)
            return estimate_tokens(text)
        if type(tokens) is int and tokens >= 0:
            return tokens
        self._tell(f"returned {preview(tokens)}, which is no count", None)
        return estimate_tokens(text)

    def _tell(self, what: str, error: BaseException | None) -> None:
        if not self._told:
            self._told = True
            warn("the token counter %s; outputs are measured by the estimate instead", what, error=error)
