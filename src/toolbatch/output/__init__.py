"""Output budgets: what a result that is too long becomes, where the whole of it is kept, and how a model reads it back."""

from ._budget import OutputBudget, OverflowPolicy
from ._estimate import TokenCount, estimate_tokens
from ._locators import READER_NAME
from ._memory import MemorySpillStore
from ._reader import Reader, make_reader
from ._shorten import Truncation, truncate_middle
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
