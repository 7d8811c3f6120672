"""Both event loops for every coroutine test of the shell (B12). Tests on a jumping clock bring their own loop."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop
from pytest_asyncio.plugin import event_loop_policy as event_loop_policy  # noqa: PLC0414  the plugin's own, not one of ours


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run each coroutine test on asyncio's loop and on uvloop."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
