"""Which call's tool is running here, where no batch is: in a worker, whose tools ask `current_call()` as they do everywhere."""

from contextvars import ContextVar

from toolbatch.ports import RunningCall

__all__ = ["remote_call"]

remote_call: ContextVar[RunningCall] = ContextVar("toolbatch_remote_call")
"""The call whose tool is running here, set by whoever runs it for somebody elsewhere."""
