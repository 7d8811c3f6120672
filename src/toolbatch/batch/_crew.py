"""The bounded task group: the one place where tasks are made, asked to stop, awaited, and let go of.

`asyncio.TaskGroup` and anyio's wait for ever and cancel the siblings of a failure; both would break the promise here.
Nobody else calls `create_task`.
"""

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from operator import attrgetter
from typing import Any, Final

from anyio import CancelScope

from toolbatch.observe import log_event

from ._execution import Execution, Phase
from ._reports import raised
from ._threads import Job, workers

__all__ = ["Crew", "let_go_count"]

_let_go: set[Execution | asyncio.Task[Any]] = set()
"""What outlived its bound. asyncio holds tasks weakly, so this is what keeps them alive until they end (B6)."""

_phase: Final = attrgetter("phase")

_MANY: Final = 100
"""Tasks that take long enough to look at for a turn of the loop after it: uvloop counts a timer from where its last turn began."""


def let_go_count() -> int:
    """How many executions in this process outlived their bound and have not ended yet (B9)."""
    return len(_let_go)


class Crew:
    """The executions that one batch or session answers for.

    Invariant: an execution is in `running` from its launch until its code has ended or it is handed over or let go.
    """

    __slots__ = ("_fresh", "_idle", "closed", "loop", "running", "side_tasks")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.running: set[Execution] = set()
        self.side_tasks: set[asyncio.Task[Any]] = set()  # observers that are coroutines
        self.closed = False  # it takes over nothing any more
        self._idle: asyncio.Future[None] | None = None
        self._fresh: list[Execution] = []  # whose tasks were made in this turn of the loop

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to wait for."""
        return not self.running and not self.side_tasks

    def launch(self, execution: Execution, drive: Coroutine[Any, Any, None], context: Context | None = None) -> None:
        """Run a call's code in a task of its own; in a copy of the caller's context unless one is given (B11)."""
        execution.phase = Phase.LAUNCHED
        execution.crew = self
        self.running.add(execution)
        try:
            # The name costs nothing here, and saves asyncio from making one.
            task = self.loop.create_task(drive, name=execution.call.id, context=context)
        except BaseException:
            drive.close()
            execution.dispose()
            raise
        if (
            execution.phase is not Phase.ENDED
        ):  # an eager task may have ended, or been asked to stop, before it had a name here
            execution.task = task
            if not self._fresh:
                self.loop.call_soon(self._look_after)
            self._fresh.append(execution)
            if execution.stop_requested:
                task.cancel()

    def _look_after(self) -> None:
        fresh, self._fresh = self._fresh, []
        self.loop.call_soon(_find_lost, fresh)  # once each of them has had its first step
        if len(fresh) >= _MANY:
            self.loop.call_soon(self.loop.call_soon, _do_nothing)

    def launch_thread(self, execution: Execution, job: Job) -> bool:
        """Run a call's code in a thread; False says that it has to wait for one."""
        self._take(execution)
        execution.job = job
        return workers.submit(job)

    def launch_side_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run something of the host's beside the calls, such as an observer that is a coroutine."""
        task = self.loop.create_task(coroutine)
        self.side_tasks.add(task)
        task.add_done_callback(self._side_task_ended)

    def ask_to_stop(self, execution: Execution) -> None:
        """Cancel a call's task, or withdraw or signal its thread. Once: a tool that ignores it is not asked again (B17)."""
        for attempt in execution.attempts:
            self.ask_to_stop(attempt)
        if execution.phase is Phase.QUEUED:
            self.never_entered(execution)
            return
        if execution.stop_requested or not Phase.LAUNCHED <= execution.phase < Phase.ENDED:
            return
        execution.stop_requested = True
        if execution.task is not None:
            if execution.phase is Phase.LAUNCHED:
                # Cancelled before its first step, the task never enters our code, which would report the end.
                execution.task.add_done_callback(lambda _task: self.never_entered(execution))
            execution.task.cancel()
        elif execution.job is not None and execution.job.withdraw():
            self.ended(execution)
        if execution.cancel_event is not None:
            execution.cancel_event.set()

    def stop_all(self) -> None:
        """Ask to stop whatever was not asked before: there is nobody any more for whom it could go on."""
        for execution in list(self.running):
            self.ask_to_stop(execution)

    def ended(self, execution: Execution) -> None:
        """Take note that a call's code has ended."""
        execution.phase = Phase.ENDED
        execution.task = execution.job = None  # both lead back here
        execution.note_end()
        crew = execution.crew
        if crew is None:
            _let_go.discard(execution)
            return
        crew.running.discard(execution)
        if crew._idle is not None:
            crew._wake_if_idle()

    async def wait(self, seconds: float) -> None:
        """Wait until all has ended, at most `seconds`, undisturbed by scopes that are cancelled around us (B6).

        Raises:
            asyncio.CancelledError: The task itself was cancelled while it waited; what runs is still running.
        """
        if self.is_idle or seconds <= 0:
            return
        # A cancelled anyio scope would cancel this await anew at every turn of the loop.
        end = self.loop.time() + seconds
        with CancelScope(shield=True):
            while not self.is_idle and self.loop.time() < end:  # again, since what ended may have begun an observer
                self._idle = self.loop.create_future()
                timer = self.loop.call_at(end, self._stop_waiting)
                try:
                    await self._idle
                finally:
                    timer.cancel()
                    self._idle = None

    def hand_over(self, other: "Crew") -> None:
        """Make another crew answer for all that still runs; if that has closed, it is let go."""
        if other.closed:
            self.let_go()
            return
        for execution in self.running:
            execution.crew = other
            # It may hang until the session ends, and its place is for others. Of a batch that was replaced just now it is yet to be stopped.
            if execution.job is not None and execution.is_over and not execution.job.is_withdrawn:
                workers.let_go(execution.job)
        other.running |= self.running
        for task in self.side_tasks:
            task.add_done_callback(other._side_task_ended)
        other.side_tasks |= self.side_tasks
        self.running.clear()
        self.side_tasks.clear()

    def let_go(self) -> None:
        """Stop answering for what still runs, and keep it alive."""
        left = list(self.running)  # a thread whose loop has gone may take itself out meanwhile
        for execution in left:
            execution.crew = None
            if execution.job is not None:
                workers.let_go(execution.job)
        _let_go.update(left)
        for task in self.side_tasks:
            _let_go.add(task)
            task.add_done_callback(_let_go.discard)
        self.running.clear()
        self.side_tasks.clear()
        if left:
            names = sorted({execution.call.name for execution in left})
            log_event(
                "teardown_given_up",
                "tools were asked to stop, have not ended, and run on: %s",
                ", ".join(names[:10]),
                call_ids=[execution.call.id for execution in sorted(left, key=lambda one: one.number)],
                tool_names=names,
                count=len(left),
            )

    def _take(self, execution: Execution) -> None:
        execution.phase = Phase.LAUNCHED
        execution.crew = self
        self.running.add(execution)

    def never_entered(self, execution: Execution) -> None:
        """A call's code will not be run: close a coroutine that was handed over, stop and await a future that was."""
        if execution.phase is Phase.ENDED:
            return
        future = execution.dispose()
        if future is None:
            self.ended(execution)
        else:
            if execution.phase < Phase.LAUNCHED:  # else someone answers for it already, perhaps another by now
                self._take(execution)
            execution.stop_requested = True
            future.cancel()
            future.add_done_callback(lambda done: self._future_ended(execution, done))

    def _future_ended(self, execution: Execution, future: "asyncio.Future[Any]") -> None:
        # Asking for the exception also keeps asyncio from complaining that nobody did.
        execution.acknowledged = future.cancelled()
        execution.exception = None if future.cancelled() else future.exception()
        self.ended(execution)

    def _side_task_ended(self, task: asyncio.Task[Any]) -> None:
        self.side_tasks.discard(task)
        self._wake_if_idle()

    def _wake_if_idle(self) -> None:
        if self._idle is not None and not self._idle.done() and self.is_idle:
            self._idle.set_result(None)

    def _stop_waiting(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)


def _find_lost(fresh: list[Execution]) -> None:
    """End the calls whose tasks someone else has cancelled before their first step: these never enter our code, which would report it.

    A callback for each task would see that too, and cost every call more than this does.
    """
    if Phase.LAUNCHED not in map(_phase, fresh):
        return  # the usual case, in one step of C
    for execution in fresh:
        task = execution.task
        if execution.phase is Phase.LAUNCHED and task is not None and task.done() and not execution.stop_requested:
            execution.exception = error = asyncio.CancelledError()
            raised(execution.engine, execution, error)


def _do_nothing() -> None:
    pass
