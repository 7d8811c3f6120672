"""Both event loops for every coroutine test here (B12)."""

from tests.loops import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
