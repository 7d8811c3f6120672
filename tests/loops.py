"""The event loops that coroutine tests of the shell run on (B12). A `conftest.py` takes the hook by importing it."""

import asyncio
import sys
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run each coroutine test on asyncio's loop, on uvloop, and with eager tasks where Python has them."""
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
        "asyncio": asyncio.new_event_loop,
        "uvloop": uvloop.new_event_loop,
    }
    if sys.version_info >= (3, 12):
        factories["eager"] = _eager_loop
    return factories


def _eager_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009  it is not there on 3.11
    return loop
