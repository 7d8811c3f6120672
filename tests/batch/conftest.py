"""Both event loops for every coroutine test of the shell (B12). Tests on a jumping clock bring their own loop."""

import asyncio
import sys
from collections.abc import Callable, Mapping

import pytest
import uvloop
from pytest_asyncio.plugin import event_loop_policy as event_loop_policy  # noqa: PLC0414  the plugin's own, not one of ours


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
