"""Event loops for the coroutine tests here (B12), and one Temporal server for all tests that ask for it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from zlib import crc32

import pytest

from tests import loops
from tests.backends import temporal

__all__ = ["pytest_asyncio_loop_factories", "temporal_server"]

ONE_LOOP_A_TEST = {"test_processes.py"}
"""Where most of a test's time is the start of workers. Every check of `check_backend` runs on all loops."""


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run each coroutine test on every loop; where that takes too long, on one of them, and always on the same."""
    factories = dict(loops.pytest_asyncio_loop_factories(config, item))
    if item.path.name not in ONE_LOOP_A_TEST:
        return factories
    name = sorted(factories)[crc32(item.name.encode()) % len(factories)]
    return {name: factories[name]}


@pytest.fixture(scope="session")
def temporal_server() -> Iterator[str]:
    """The address of a server of the tests' own."""
    with temporal.running() as address:
        yield address
