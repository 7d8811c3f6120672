"""What tests of every part may ask for: a watch on what is left behind."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator

import pytest

from toolbatch.batch import let_go_count


@pytest.fixture
async def nothing_left() -> AsyncIterator[None]:
    """Fail a test that leaves a task, or something that was let go, behind (B9)."""
    yield
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, f"tasks left behind: {left}"
    assert let_go_count() == 0


@pytest.fixture
def collected() -> Iterator[None]:
    """Collect garbage inside the test, so that what its objects complain of fails this test and not a later one."""
    yield
    gc.collect()
