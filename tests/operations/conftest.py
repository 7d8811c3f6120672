"""Both event loops for every coroutine test here (B12), and one PostgreSQL for all tests that ask for it."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.loops import pytest_asyncio_loop_factories
from tests.operations import pg

__all__ = ["postgres", "pytest_asyncio_loop_factories", "schema"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[pg.Server]:
    """A server of the tests' own."""
    if not pg.is_possible():
        pytest.skip("there is no PostgreSQL on this machine, and no wheel that carries one")
    with pg.running() as server:
        yield server


@pytest.fixture
def schema() -> str:
    """A schema that no other test has."""
    return f"test_{next(_numbers)}"


_numbers = count()
