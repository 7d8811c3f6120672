"""Running tools where the batch is: in its own event loop."""

from collections.abc import Callable
from typing import Any, Final, Self, final

from toolbatch.ports import Enforcement, Invocation

from ._body import finish
from ._opened import Opened

__all__ = ["LoopBackend"]

_ENFORCES: Final = Enforcement(cancellation="cooperative")


@final
class LoopBackend:
    """Runs tools in the event loop (X2): asynchronous ones as tasks do, and synchronous ones right there.

    So a synchronous tool gets no thread here, and nothing else runs while it does: it is for functions that return at once.
    """

    name: Final = "loop"

    def __init__(self) -> None:
        self._opened = Opened(self.name)

    @property
    def enforces(self) -> Enforcement:
        """A cancellation that the tool may swallow, and nothing else."""
        return _ENFORCES

    def require(self, fn: Callable[..., Any], /) -> None:
        """Take any function."""

    async def run(self, invocation: Invocation, /) -> Any:
        """As `ExecutionBackend.run`."""
        self._opened.require()
        invocation.begin()
        return await finish(invocation.fn(*invocation.args, **invocation.kwargs), invocation.say)

    async def __aenter__(self) -> Self:
        self._opened.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._opened.close()
