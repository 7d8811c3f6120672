"""Threads for synchronous tools: ours, daemon, and bounded in number.

An executor's threads are joined when the interpreter ends, so one hung tool would keep the process from ending (B9).
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

__all__ = ["MAX_LET_GO", "MAX_THREADS", "Job", "WorkerThreads", "workers"]

_inside = threading.local()
"""Has `a_job` in threads of the pool."""

MAX_THREADS: Final = 64
"""Threads of a process that serve tools at once."""

MAX_LET_GO: Final = 192
"""Threads beyond those that may hang in tools that were let go."""

_IDLE_SECONDS = 10.0


class Job:
    """One function to run in a thread, once, unless it is withdrawn before.

    Who takes the ticket decides, at once and in any thread: the worker, which then runs the function, or the owner,
    after which it will never run. `list.pop` is atomic, so exactly one of them has it (B5).
    """

    __slots__ = ("_entered", "_run", "_ticket", "is_withdrawn", "let_go", "over", "waited")

    def __init__(self, run: Callable[[], None], entered: Callable[[], object] = lambda: None) -> None:
        self._run = run
        self._entered = entered  # is told of the entry, where that had to wait for a thread
        self.waited = False
        self._ticket = [None]
        self.is_withdrawn = False
        self.let_go = False
        self.over = False  # its thread serves others again, whoever has heard of it

    def withdraw(self) -> bool:
        """Make sure that the function will never run; False says that it was entered already."""
        self.is_withdrawn = self.is_withdrawn or self._take()
        return self.is_withdrawn

    def restore(self) -> None:
        """Undo `withdraw` and queue the job again."""
        self.is_withdrawn = False
        self._ticket.append(None)
        workers.submit(self)

    def run_once(self) -> bool:
        """Run the function if the ticket is still there, and say whether it was. The function itself reports, and does not raise."""
        if not self._take():
            return False
        if self.waited:
            self._entered()
        self._run()
        return True

    def _take(self) -> bool:
        try:
            self._ticket.pop()
        except IndexError:
            return False
        return True


class WorkerThreads:
    """A pool of daemon threads that are made when needed and end when idle.

    A thread whose job was let go no longer takes a place, up to `max_let_go` of them: one hung tool does not block the
    next, and a thousand hung tools do not make a thousand threads.

    Args:
        max_threads: Threads that may serve at once.
        max_let_go: Threads beyond those that may hang.
    """

    def __init__(self, max_threads: int = MAX_THREADS, max_let_go: int = MAX_LET_GO) -> None:
        self._max_threads = max_threads
        self._max_let_go = max_let_go
        self.forget()

    def forget(self) -> None:
        """Begin anew, as after a fork: the child has none of its parent's threads."""
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._serving = 0  # threads that count against max_threads
        self._idle = 0
        self._hung = 0

    @property
    def counts(self) -> dict[str, int]:
        """How many threads serve, are idle among them, and hang in a job that was let go."""
        return {"serving": self._serving, "idle": self._idle, "let_go": self._hung}

    def submit(self, job: Job) -> bool:
        """Run a job as soon as a thread is free; False says that it has to wait for one.

        What is submitted from within a job never waits: the job may be waiting for it, and with it all threads (FIELD 105).

        Raises:
            RuntimeError: The system makes no thread, and there is none. The job will not run.
        """
        with self._changed:
            self._waiting.append(job)
            try:
                job.waited = not self._hire(beyond=getattr(_inside, "a_job", False))
            except RuntimeError:
                if not self._serving:
                    self._waiting.remove(job)
                    raise
                job.waited = True
            return not job.waited

    def let_go(self, job: Job) -> None:
        """Give up a job that runs and doesn't end: its thread ends with it, and another takes its place."""
        with self._changed:
            if job.let_go or job.over or self._hung >= self._max_let_go:
                return
            job.let_go = True
            self._hung += 1
            self._serving -= 1
            self._hire()

    def _hire(self, *, beyond: bool = False) -> bool:
        if self._idle >= len(self._waiting):
            self._changed.notify()
        elif self._serving < self._max_threads or beyond:
            threading.Thread(target=self._serve, name="toolbatch-tool", daemon=True).start()
            self._serving += 1
        else:
            return False
        return True

    def _serve(self) -> None:
        _inside.a_job = True
        while (job := self._next()) is not None:
            if job.run_once():  # else it was withdrawn, or stands in the queue twice since that was undone
                with self._changed:
                    job.over = True
                    if job.let_go:
                        self._hung -= 1
                        return
            del job  # an idle thread must not keep the last tool's arguments alive

    def _next(self) -> Job | None:
        with self._changed:
            self._idle += 1
            try:
                while not self._waiting:
                    if not self._changed.wait(_IDLE_SECONDS) and not self._waiting:
                        self._serving -= 1
                        return None
                return self._waiting.popleft()
            finally:
                self._idle -= 1


workers = WorkerThreads()
"""The process's threads for tools."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.forget)
