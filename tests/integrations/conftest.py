"""Both event loops for every coroutine test here (B12). Tests on a jumping clock bring their own loop."""

from tests.loops import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
