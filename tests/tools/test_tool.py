"""T1: a function becomes a tool, stays the function, and says what it is."""

import asyncio
import functools
import inspect
import math
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

import pytest

from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.tools import AnyTool, Tool, ToolCatalog, tool


@tool
async def look_up(city: str, days: int = 1) -> str:
    """Look up
    the weather.

    More for humans.

    Args:
        city: Where.
    """
    return f"{city} {days}"


@tool(timeout=5, parallel=False, name="other", description="Another.", max_output_tokens=10, budget_exempt=True)
def plain(city: str) -> int:
    """Not this."""
    return len(city)


def test_a_bare_decorator_reads_name_and_summary() -> None:
    """T1: the name is the function's, the description its docstring's first paragraph in one line."""
    assert (look_up.name, look_up.description) == ("look_up", "Look up the weather.")
    assert (look_up.timeout, look_up.parallel, look_up.needs_approval, look_up.strict) == (None, True, False, False)


def test_options_win_over_what_is_read() -> None:
    """T1: every option is kept as given."""
    assert (plain.name, plain.description, plain.timeout, plain.parallel) == ("other", "Another.", 5, False)
    assert (plain.max_output_tokens, plain.budget_exempt) == (10, True)


def test_a_tool_is_called_like_its_function() -> None:
    """T1: the decorated name still is the function, for readers, callers and type checkers."""
    assert_type(plain("abc"), int)
    assert plain("abc") == 3
    assert asyncio.run(look_up("Oslo", days=2)) == "Oslo 2"
    assert list(inspect.signature(look_up).parameters) == ["city", "days"]
    assert look_up.__name__ == "look_up"
    assert repr(look_up) == "<Tool look_up>"


def test_a_wrong_call_is_wrong_for_type_checkers_too() -> None:
    """The decorated function keeps its parameters' types: mypy fails if these ignores become unused."""
    with pytest.raises(TypeError):
        plain(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        plain()  # type: ignore[call-arg]


def test_a_tool_is_immutable() -> None:
    """O7: nothing can be changed on a tool that a call may hold."""
    for name in ("fn", "name", "timeout"):
        with pytest.raises(AttributeError):
            setattr(look_up, name, None)
    with pytest.raises((AttributeError, TypeError)):
        look_up.anything = 1  # type: ignore[attr-defined]


def test_a_tool_is_final() -> None:
    """Extension is by options, not by subclassing."""
    assert getattr(Tool, "__final__", False)


class Weather:
    """A class with state."""

    def __init__(self, key: str) -> None:
        self.key = key

    @tool
    async def look(self, city: str) -> str:
        """Look."""
        return f"{self.key}:{city}"

    @tool
    @classmethod
    def known(cls, city: str) -> str:
        """Know."""
        return f"{cls.__name__}:{city}"

    @classmethod
    @tool
    def reversed_order(cls, city: str) -> str:
        """Know too."""
        return f"{cls.__name__}:{city}"

    @tool
    @staticmethod
    def double(number: int) -> int:
        """Double."""
        return 2 * number

    def undecorated(self, city: str) -> str:
        """Plain."""
        return f"{self.key}:{city}"


class Storm(Weather):
    """A subclass."""


def test_a_method_is_the_tool_of_its_instance() -> None:
    """T1: tools in a class share the schema, and each instance's has its own state."""
    first, second = Weather("a"), Storm("b")
    assert_type(first.look.name, str)
    assert list(first.look.schema["properties"]) == ["city"]
    assert asyncio.run(first.look("x")) == "a:x"
    assert asyncio.run(second.look("x")) == "b:x"
    assert asyncio.run(Weather.look(first, "x")) == "a:x"
    assert first.look.reader is second.look.reader
    assert Weather.look.name == "look"


def test_class_and_static_methods_are_tools() -> None:
    """T1: the class is bound too, the subclass where it is asked through that."""
    weather: Any = Weather  # mypy reads a decorator above @classmethod as one of the bare function
    storm: Any = Storm
    assert (weather.known("x"), storm.known("x"), storm("k").known("x")) == ("Weather:x", "Storm:x", "Storm:x")
    assert weather.double(2) == weather("k").double(2) == 4
    assert list(Weather.known.schema["properties"]) == ["city"]
    catalog = ToolCatalog([Weather.known, Weather.double, Storm.reversed_order, tool(Weather("k").undecorated)])
    assert list(catalog) == ["known", "double", "reversed_order", "undecorated"]
    assert catalog["reversed_order"]("x") == "Storm:x"
    assert catalog["undecorated"]("x") == "k:x"


def test_a_method_of_no_instance_can_not_be_registered() -> None:
    """T1: the mistake is named where it is made, not when the model calls."""
    catalog = ToolCatalog()
    for lost in (Weather.look, Weather.undecorated):
        with pytest.raises(InvalidTypeError, match="is a method and misses its instance"):
            catalog.register(lost)
    assert len(catalog) == 0


def test_a_tool_that_becomes_a_class_attribute_binds_like_a_function() -> None:
    """A module's function put into a class is given the instance, as Python does with functions."""

    def at(owner: Any, city: str) -> tuple[Any, str]:
        return owner, city

    class Holder:
        look = tool(at)

    holder = Holder()
    assert holder.look("x") == (holder, "x")
    assert list(holder.look.schema["properties"]) == ["city"]


class Caller:
    """Call me."""

    async def __call__(self, city: str) -> str:
        return city


def test_objects_and_partials_are_tools() -> None:
    """T1: an object's `__call__` is read; what a partial has filled is the host's and no model sees it."""
    called = tool(Caller(), name="caller")
    assert (tool(Caller()).name, called.name, called.description) == ("Caller", "caller", "Call me.")
    assert list(called.schema["properties"]) == ["city"]

    def query(connection: object, sql: str, limit: int = 5, tenant: str = "none") -> tuple[object, str, int, str]:
        """Query."""
        return connection, sql, limit, tenant

    bound = tool(functools.partial(functools.partial(query, "db"), tenant="t1"))
    assert (bound.name, bound.description) == ("query", "Query.")
    assert list(bound.schema["properties"]) == ["sql", "limit"]
    args, kwargs = bound.bind(bound.validate({"sql": "select 1"}))
    assert bound.fn(*args, **kwargs) == ("db", "select 1", 5, "t1")


def test_async_generators_are_tools_and_plain_ones_are_refused() -> None:
    """T1: a stream is an async generator; a plain one could only be a mistake."""

    async def stream(count: int) -> AsyncIterator[int]:
        yield count

    def numbers() -> Iterator[int]:
        yield 1

    assert inspect.isasyncgenfunction(tool(stream).fn)
    with pytest.raises(InvalidTypeError, match="plain generator"):
        tool(numbers)


def test_replace_gives_another_tool() -> None:
    """The same function under another name, and the first as it was."""
    other = look_up.replace(name="again", timeout=3)
    assert (other.name, other.timeout, look_up.name, look_up.timeout) == ("again", 3, "look_up", None)
    with pytest.raises(InvalidInputError, match="'nonsense' is no option"):
        look_up.replace(nonsense=1)  # type: ignore[call-arg]


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"name": "a b"}, InvalidInputError, "'a b'"),
    ({"name": "x" * 129}, InvalidInputError, "1 to 128"),
    ({"name": 3}, InvalidTypeError, "not 3"),
    ({"description": 3}, InvalidTypeError, "not 3"),
    ({"timeout": 0}, InvalidInputError, "more than 0"),
    ({"timeout": math.nan}, InvalidInputError, "nan"),
    ({"timeout": True}, InvalidTypeError, "True"),
    ({"max_output_tokens": 0}, InvalidInputError, "at least 1"),
    ({"max_output_tokens": 1.5}, InvalidTypeError, "1.5"),
    ({"parallel": "no"}, InvalidTypeError, "parallel"),
    ({"needs_approval": None}, InvalidTypeError, "needs_approval"),
    ({"render": 3}, InvalidTypeError, "render"),
    ({"meta": 3}, InvalidTypeError, "meta"),
    ({"strict": 1}, InvalidTypeError, "strict"),
    ({"budget_exempt": "x"}, InvalidTypeError, "budget_exempt"),
    ({"timout": 3}, InvalidInputError, "'timout' is no option"),
]


@pytest.mark.parametrize(("options", "error", "says"), WRONG)
def test_a_wrong_option_is_named(options: dict[str, Any], error: type[Exception], says: str) -> None:
    """T1: an option that can't be used raises when the tool is made, with its value."""

    def fn() -> None: ...

    with pytest.raises(error, match=says):
        tool(**options)(fn)


@pytest.mark.parametrize("what", [3, None, "fn", Weather, functools.partial(Weather, "k"), look_up])
def test_what_is_no_function_is_refused(what: Any) -> None:
    """T1: a class, a value, a tool: each with its own words."""
    make: Any = tool()
    with pytest.raises(InvalidTypeError):
        make(what)


def test_a_lambda_needs_a_name() -> None:
    """A name that no provider takes is refused at the decorator, not by the provider."""
    with pytest.raises(InvalidInputError, match="give one with name="):
        tool(lambda: 1)
    assert tool(name="one")(lambda: 1).name == "one"


def test_making_no_tool_loads_no_pydantic() -> None:
    """pydantic is loaded when the first tool is made, and not by an import."""
    code = (
        "import sys, toolbatch.tools as t; assert not {'pydantic', 'jsonschema', 'docstring_parser'} & set(sys.modules); "
        "t.ToolCatalog(); assert 'pydantic' not in sys.modules; t.tool(name='one')(lambda: 1); assert 'pydantic' in sys.modules"
    )
    subprocess.run([sys.executable, "-I", "-c", code], check=True, timeout=50)


def test_any_tool_takes_every_tool() -> None:
    """`AnyTool` is what signatures of users' helpers can say."""
    tools: list[AnyTool] = [look_up, plain]
    assert_type(look_up.timeout, float | None)
    assert len(tools) == 2
