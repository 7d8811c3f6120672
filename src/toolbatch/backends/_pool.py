"""The worker processes of one backend: how many there are, whose turn it is, and how they are replaced."""

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, cast

from toolbatch.ports import BackendNotStartedError

from ._child import Child, Output, discard, launch
from ._frames import Settings

__all__ = ["Pool", "Terms"]

_RETIRE_SECONDS: Final = 3.0
_CLOSED: Final = "the process backend was closed."
_log = logging.getLogger("toolbatch.backends")


class Terms(NamedTuple):
    """What a pool is made by.

    Attributes:
        most: How many processes there may be.
        warm: How many are kept ready.
        max_calls: After so many calls one is replaced; `None` for never.
        limit: The longest message that one may send.
        start_timeout: Seconds in which one must be ready.
        output: Where what tools print goes.
    """

    most: int
    warm: int
    max_calls: int | None
    limit: int
    start_timeout: float
    output: Output


class Pool:
    """Workers, and the calls that wait for one.

    Invariant: `_children` and the hires that go on are never more than `terms.most`; a worker counts until nothing of it is left.
    """

    def __init__(self, terms: Terms, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self._terms = terms
        self._settings = settings
        self._loop = loop
        self._children: set[Child] = set()
        self._starting: set[Child] = set()
        self._hires: set[asyncio.Task[str | None]] = set()
        self._idle: list[Child] = []
        self._waiting: deque[asyncio.Future[Child]] = deque()
        self._launcher = ThreadPoolExecutor(1, thread_name_prefix="toolbatch-launcher")
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        """The processes' ids."""
        return [child.pid for child in self._children]

    async def open(self) -> None:
        """Start the warm workers.

        Raises:
            BackendNotStartedError: One can't be started; none is left.
        """
        hires = [self._hire() for _ in range(self._terms.warm)]
        try:
            problems = [why for why in await asyncio.gather(*map(asyncio.shield, hires)) if why is not None]
        except BaseException:
            await self.close()
            raise
        if problems:
            await self.close()
            raise BackendNotStartedError(problems[0])

    async def take(self) -> Child:
        """Wait for a worker. Who is cancelled while waiting has none.

        Raises:
            BackendNotStartedError: There will be none.
        """
        while True:
            child = self._idle.pop() if self._idle else await self._turn()  # the one that was used last is warmest
            if child.is_usable:  # one that was given in this moment may have died since
                return child

    async def _turn(self) -> Child:
        turn: asyncio.Future[Child] = self._loop.create_future()
        if self._is_closed:
            raise BackendNotStartedError(_CLOSED)
        self._waiting.append(turn)
        self._refill()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give(turn.result())  # it came in the very moment of the cancellation
            raise

    def give(self, child: Child, *, is_sound: bool = True) -> None:
        """Give a worker back, whose call is answered; one that is not sound is replaced."""
        if not child.is_usable:
            return
        is_worn = self._terms.max_calls is not None and child.calls >= self._terms.max_calls
        if self._is_closed or is_worn or not is_sound:
            child.retire(_RETIRE_SECONDS)
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(child)
                return
        self._idle.append(child)

    async def close(self) -> None:
        """End all workers: those that wait for work by themselves, the others by force."""
        self._is_closed = True
        while self._waiting:
            self._refuse(_CLOSED)
        for child in self._idle:
            if child.is_usable:
                child.retire(_RETIRE_SECONDS)
        for child in [*self._starting, *(self._children - set(self._idle))]:
            child.kill()
        self._idle.clear()
        try:
            while self._hires or self._children:
                ends: list[asyncio.Future[Any]] = [*self._hires, *(child.dead for child in self._children)]
                await asyncio.wait(ends)
        except asyncio.CancelledError:
            for child in self._children:
                child.kill()  # its end is awaited by the loop
            raise
        finally:
            self._launcher.shutdown(wait=False)

    # -- hiring ------------------------------------------------------------------------------------------------------------

    def _refill(self) -> None:
        """Start as many workers as are missing: for those who wait, and to keep some warm."""
        while not self._is_closed:
            count = len(self._children) + len(self._hires)
            waiting = sum(not turn.done() for turn in self._waiting)
            if count >= self._terms.most or (len(self._hires) >= waiting and count >= self._terms.warm):
                return
            self._hire()

    def _hire(self) -> "asyncio.Task[str | None]":
        task = self._loop.create_task(self._start(), name="toolbatch-worker-start")
        self._hires.add(task)
        task.add_done_callback(self._hires.discard)
        return task

    async def _start(self) -> str | None:
        """Start one worker and let it serve; return why it can't."""
        task = cast("asyncio.Task[str | None]", asyncio.current_task())
        child: Child | None = None
        try:
            child = await self._launched()
            why = await child.ready
        except (OSError, RuntimeError) as error:
            why = f"{type(error).__name__}: {error}"
        if child is not None:
            self._starting.discard(child)
            if child.is_usable and why is None:
                self._hires.discard(task)  # it is the worker that counts from here on
                self._children.add(child)
                self.give(child)
                return None
            child.kill()
            await asyncio.shield(child.dead)
        self._hires.discard(task)
        message = f"a worker process can't be started ({why or 'it has ended at once'})."
        if self._waiting:
            self._refuse(message)
            if any(not turn.done() for turn in self._waiting):
                self._refill()
        elif not self._is_closed:
            _log.warning("%s", message)
        return message

    async def _launched(self) -> Child:
        job = self._launcher.submit(launch, self._terms.output)
        try:
            process, ours = await asyncio.wrap_future(job)
        except BaseException:
            job.add_done_callback(discard)
            raise
        child = Child(process, self._loop, self._terms.limit, self._ended)
        self._starting.add(child)
        try:
            await self._loop.create_unix_connection(lambda: child, sock=ours)
        except BaseException:
            ours.close()
            child.kill()
            raise
        child.begin(self._settings, self._terms.start_timeout)
        if self._is_closed:
            child.kill()
        return child

    def _refuse(self, why: str) -> None:
        turn = self._waiting.popleft()
        if not turn.done():
            turn.set_exception(BackendNotStartedError(why))

    def _ended(self, child: Child) -> None:
        """Nothing is left of a worker: another may take its place."""
        if child in self._children:
            self._children.discard(child)
            if child in self._idle:
                self._idle.remove(child)
            self._refill()
