"""What an integration needs of the batch beside a batch: how a tool is run, the threads, and how durations are read.

No part of what is promised to users: it changes when the batch does.
"""

from ._batch import ToolBatch
from ._drive import Kind, kind_of
from ._durable import is_recorded
from ._options import reusable, seconds
from ._placed import placed
from ._threads import Job, workers

__all__ = ["Job", "Kind", "kind_of", "placed", "records", "reusable", "seconds", "workers"]


def records(batch: ToolBatch) -> bool:
    """Whether something of a batch has to be on disk before a call's code is entered."""
    return is_recorded(batch._options)
