"""What an integration needs of the batch beside a batch: how a tool is run, the threads, and how durations are read.

No part of what is promised to users: it changes when the batch does.
"""

from ._drive import Kind, kind_of
from ._options import reusable, seconds
from ._placed import placed
from ._threads import Job, workers

__all__ = ["Job", "Kind", "kind_of", "placed", "reusable", "seconds", "workers"]
