"""Output budgets: what a result that is too long becomes, where the whole of it is kept, and how a model reads it back.

The store on disk is loaded when it is asked for: a batch alone loads no database.
"""

from typing import TYPE_CHECKING, Any

from ._budget import OutputBudget, OverflowPolicy
from ._estimate import TokenCount, estimate_tokens
from ._locators import READER_NAME
from ._memory import MemorySpillStore
from ._reader import Reader, make_reader
from ._shorten import Truncation, truncate_middle

if TYPE_CHECKING:
    from ._sqlite import SqliteSpillStore

__all__ = [
    "READER_NAME",
    "MemorySpillStore",
    "OutputBudget",
    "OverflowPolicy",
    "Reader",
    "SqliteSpillStore",
    "TokenCount",
    "Truncation",
    "estimate_tokens",
    "make_reader",
    "truncate_middle",
]

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that is there

    def __getattr__(name: str) -> Any:
        if name == "SqliteSpillStore":
            from ._sqlite import SqliteSpillStore

            return SqliteSpillStore
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
