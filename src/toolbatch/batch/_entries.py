"""Whether threads have entered a call's code. That is decided in another thread, and must be certain before a close (B5)."""

from collections.abc import Collection

from ._execution import Execution, Phase

__all__ = ["Entries"]


class Entries:
    """The calls of one batch that wait in a thread's queue, as far as the loop knows.

    Invariant: an execution is here from its launch in a thread until the loop has heard that its code was entered, or has
    withdrawn it.
    """

    __slots__ = ("_unheard",)

    def __init__(self) -> None:
        self._unheard: set[Execution] = set()

    def expect(self, execution: Execution) -> None:
        """A thread will enter this call's code, at a moment of its own."""
        self._unheard.add(execution)

    def forget(self, execution: Execution) -> None:
        """No thread will."""
        self._unheard.discard(execution)

    def hear(self, execution: Execution, now: float) -> None:
        """The loop knows that the code was entered: at a time that the thread wrote down, or is about to."""
        if execution in self._unheard:
            self._unheard.discard(execution)
            execution.phase = max(execution.phase, Phase.ENTERED)
            if execution.started_at is None:
                execution.started_at = now

    def withdraw(self, executions: Collection[Execution] | None, now: float) -> list[Execution]:
        """Make certain of these calls, or of all: what has not been entered in this moment never will be.

        Returns those, for `restore`.
        """
        withdrawn = []
        for execution in list(self._unheard):
            if execution.job is None or (executions is not None and execution not in executions):
                continue
            if execution.job.withdraw():
                withdrawn.append(execution)
            else:
                self.hear(execution, now)
        return withdrawn

    def restore(self, withdrawn: list[Execution]) -> None:
        """Undo `withdraw`, where the close was refused."""
        for execution in withdrawn:
            if execution.job is not None and execution.settlement is None:
                execution.job.restore()  # unless the caller's code, which refused the close, closed it on its way (C14)
