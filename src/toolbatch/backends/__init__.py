"""Places where tools are run: in the event loop, in a thread, in a process that can be killed, on a distributed engine (X1, X2).

A tool names its own, `@tool(backend=...)`, and a batch runs it there. They are loaded when one is asked for: a batch alone loads none.
"""

from typing import TYPE_CHECKING, Any

from ._remote import RemoteCall

if TYPE_CHECKING:
    from ._loop import LoopBackend
    from ._process import ProcessBackend
    from ._temporal import TemporalBackend
    from ._temporal_worker import WorkerTool, temporal_worker
    from ._thread import ThreadBackend

__all__ = [
    "LoopBackend",
    "ProcessBackend",
    "RemoteCall",
    "TemporalBackend",
    "ThreadBackend",
    "WorkerTool",
    "temporal_worker",
]

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that is there

    def __getattr__(name: str) -> Any:
        if name in __all__:
            from . import _loop, _process, _temporal, _temporal_worker, _thread

            for module in (_loop, _process, _temporal, _temporal_worker, _thread):
                if name in module.__all__:
                    return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
