"""T1: the JSON Schema is that of the signature, whatever Python can write in one."""

from __future__ import annotations

import datetime as dt
import uuid  # noqa: TC003  pydantic reads it
from collections.abc import Callable  # noqa: TC003  likewise
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Unpack

import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from tests.tools.kit import Colour, Filter, Node, Point, refusal
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.tools import ToolCatalog, tool
from toolbatch.tools._docstring import parameter_texts

if TYPE_CHECKING:
    from rich.table import Table


class Options(TypedDict, total=False):
    """A typed dict."""

    depth: int


class Named(TypedDict):
    """What `**kwargs` may be."""

    first: Annotated[int, "the first"]
    second: NotRequired[str]


def properties(fn: Callable[..., Any]) -> dict[str, Any]:
    """The schema's properties."""
    found: dict[str, Any] = tool(fn).schema["properties"]
    return found


def test_a_tool_without_parameters_has_an_empty_object() -> None:
    """T1, T5: no parameters, and nothing else is let in."""

    def ping() -> None: ...

    assert tool(ping).schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert tool(ping).validate({}) == {}
    assert "x: is no parameter of this tool" in refusal(tool(ping), {"x": 1})


def test_types_are_read() -> None:
    """T1: defaults, unions, enums, literals, models, dataclasses and typed dicts have the schema that pydantic gives them."""

    def fn(
        a: int,
        b: str | None = None,
        c: Colour = Colour.RED,
        d: Literal["x", "y"] = "x",
        e: list[Filter] | None = None,
        f: Point | None = None,
        g: Options | None = None,
        *,
        h: int | str = 3,
    ) -> None: ...

    schema = tool(fn).schema
    assert schema["required"] == ["a"]
    assert schema["properties"]["a"] == {"type": "integer"}
    assert schema["properties"]["b"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert schema["properties"]["c"]["default"] == "red"  # pydantic 2.8 wraps the reference in an allOf
    assert "#/$defs/Colour" in str(schema["properties"]["c"])
    assert schema["properties"]["d"]["enum"] == ["x", "y"]
    assert schema["properties"]["h"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert schema["$defs"]["Point"].get("additionalProperties", False) is False
    assert set(schema["$defs"]) == {"Colour", "Filter", "Point", "Options"}
    assert "title" not in str(schema)


def test_arguments_are_converted() -> None:
    """T1: what arrives is what the annotations say; what was left out is left to the function."""

    def fn(
        day: dt.date, where: Point, colour: Colour, price: Decimal, key: uuid.UUID, tags: set[str], n: float = 1
    ) -> None: ...

    given = {
        "day": "2024-05-06",
        "where": {"x": 1},
        "colour": "blue",
        "price": "1.50",
        "key": "12345678123456781234567812345678",
        "tags": ["a", "a"],
    }
    values = tool(fn).validate(given)
    assert values["day"] == dt.date(2024, 5, 6)
    assert (values["where"], values["colour"], values["price"]) == (Point(1, 3), Colour.BLUE, Decimal("1.50"))
    assert (values["tags"], str(values["key"])[:8]) == ({"a"}, "12345678")
    assert "n" not in values


class Strict(BaseModel):
    """A model that its author made strict."""

    model_config = ConfigDict(strict=True)
    colour: Colour
    day: dt.date


def test_strict_models_take_what_json_has() -> None:
    """T1: arguments are checked as JSON; as Python objects a strict enum or date could never be given."""

    def fn(what: Strict) -> None: ...

    what = tool(fn).validate({"what": {"colour": "red", "day": "2024-05-06"}})["what"]
    assert (what.colour, what.day.year) == (Colour.RED, 2024)


def test_descriptions_come_from_annotations() -> None:
    """T1: `Field`, a plain text and a default's `Field` all describe a parameter."""

    def fn(
        a: Annotated[int, Field(ge=1, description="how many")],
        b: Annotated[str, "the city"] = "x",
        c: float = Field(5, description="seconds", gt=0),
        *,
        d: Annotated[int, Field(default_factory=lambda: 7)],
    ) -> tuple[Any, ...]:
        return a, b, c, d

    found = properties(fn)
    assert found["a"] == {"type": "integer", "minimum": 1, "description": "how many"}
    assert found["b"] == {"type": "string", "description": "the city", "default": "x"}
    assert found["c"]["description"] == "seconds"
    made = tool(fn)
    args, kwargs = made.bind(made.validate({"a": 2}))
    assert made.fn(*args, **kwargs) == (2, "x", 5, 7)  # never pydantic's Field object


GOOGLE = """Do it.

    Args:
        a (int): First
            of all.
        b: Second.
    """
NUMPY = """Do it.

    Parameters
    ----------
    a, b : int
        First and second.
    """
SPHINX = """Do it.

    :param a: First.
    :param int b: Second.
    """


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [(GOOGLE, "First of all.", "Second."), (NUMPY, "First and second.", "First and second."), (SPHINX, "First.", "Second.")],
)  # fmt: skip
def test_descriptions_come_from_docstrings(text: str, first: str, second: str) -> None:
    """T1: a library reads the three styles; `Annotated` wins over it."""

    def fn(a: int, b: Annotated[int, Field(description="mine")]) -> None: ...

    fn.__doc__ = text
    assert parameter_texts(fn) == {"a": first, "b": second}
    assert properties(fn)["a"]["description"] == first
    assert properties(fn)["b"]["description"] == "mine"
    assert tool(fn).description == "Do it."


def test_without_the_library_there_are_fewer_descriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is optional: the tool works, and its own description is the same."""
    monkeypatch.setitem(__import__("sys").modules, "docstring_parser", None)

    def fn(a: int) -> None: ...

    fn.__doc__ = GOOGLE
    assert properties(fn)["a"] == {"type": "integer"}
    assert tool(fn).description == "Do it."


@pytest.mark.parametrize("text", ["", "Args:\n  a: x", ":param a: x", "Args:", "a\n\n:", "Raises\n------\n:::"])
def test_odd_docstrings_are_no_trouble(text: str) -> None:
    """A docstring is prose: whatever it is, the tool is made."""

    def fn(a: int) -> None: ...

    fn.__doc__ = text
    assert tool(fn).schema["required"] == ["a"]


def test_names_that_belong_to_others_are_only_names() -> None:
    """T1: `timeout`, `fn` and `self` are `start()`'s; `_x`, `schema` and `model_config` are pydantic's. A model may send each."""

    def fn(self: int, timeout: int, fn: int, _x: int, schema: int, model_config: int, p0: int, name: int = 0) -> Any:
        return locals()

    names = {"self": 1, "timeout": 2, "fn": 3, "_x": 4, "schema": 5, "model_config": 6, "p0": 7, "name": 8}
    made = tool(fn)
    assert set(made.schema["properties"]) == set(names)
    args, kwargs = made.bind(made.validate(names))
    assert made.fn(*args, **kwargs) == names
    assert made(**names) == names


def test_positional_only_parameters_are_given_by_position() -> None:
    """T1: the model names them all the same, and one that is left out before another has its default."""

    def fn(a: int, b: int = 2, c: int = 3, /, d: int = 4) -> tuple[int, ...]:
        return a, b, c, d

    made = tool(fn)
    for given, result in [({"a": 1}, (1, 2, 3, 4)), ({"a": 1, "c": 9}, (1, 2, 9, 4)), ({"a": 1, "d": 9}, (1, 2, 3, 9))]:
        args, kwargs = made.bind(made.validate(given))
        assert made.fn(*args, **kwargs) == result


def test_free_keywords_are_additional_properties() -> None:
    """T1: `**kwargs: int` takes any other name, checked; nothing below it becomes lenient by that."""

    def fn(a: int, where: Point | None = None, /, *, b: int = 1, **more: int) -> Any:
        return a, b, more

    made = tool(fn)
    assert made.schema["additionalProperties"] == {"type": "integer"}
    assert made.schema["$defs"]["Point"].get("additionalProperties", False) is False
    args, kwargs = made.bind(made.validate({"a": 1, "x": "2", "**": 3}))
    assert made.fn(*args, **kwargs) == (1, 1, {"x": 2, "**": 3})
    assert "- x: Input should be a valid integer" in refusal(made, {"a": 1, "x": "q"})

    def open_to_all(**more: Any) -> Any:
        return more

    assert tool(open_to_all).schema["additionalProperties"] is True
    assert tool(open_to_all).validate({"q": [1]}) == {"q": [1]}


def test_free_keywords_can_not_reach_the_hosts_parameters() -> None:
    """T1: a model that guesses a bound parameter's name doesn't get to set it."""
    import functools

    def fn(connection: str, a: int = 1, tenant: str = "none", **more: Any) -> Any:
        return connection, tenant, more

    made = tool(functools.partial(fn, "db", tenant="t1"))
    for name in ("connection", "tenant"):
        assert f"- {name}: is no parameter" in refusal(made, {name: "evil"})

    class Owner:
        @tool
        def method(self, **more: Any) -> Any:
            return more

    assert "- self: is no parameter" in refusal(Owner().method, {"self": 1})


def test_unpacked_typed_dicts_are_parameters() -> None:
    """T1: `**kwargs: Unpack[TypedDict]` names its keys, and those that may be absent have no default."""

    def fn(**kwargs: Unpack[Named]) -> Any:
        return kwargs

    made = tool(fn)
    assert made.schema["properties"] == {
        "first": {"type": "integer", "description": "the first"},
        "second": {"type": "string"},
    }
    assert made.schema["required"] == ["first"]
    assert made.schema["additionalProperties"] is False
    assert made.validate({"first": "1"}) == {"first": 1}


def test_aliases_are_the_models_names() -> None:
    """T1: a parameter that Python can't name is written by its alias, both ways."""

    def fn(from_: Annotated[int, Field(alias="from")], **more: Any) -> Any:
        return from_, more

    made = tool(fn)
    assert list(made.schema["properties"]) == ["from"]
    assert made.validate({"from": 1}) == {"from_": 1}
    assert "from_: is no parameter" in refusal(made, {"from": 1, "from_": 2})


def test_star_args_are_refused() -> None:
    """T1: a model's arguments have names."""

    def fn(*items: int) -> None: ...

    with pytest.raises(InvalidTypeError, match=r"takes \*items"):
        tool(fn)


def test_types_without_a_schema_are_refused_by_name() -> None:
    """T1: what pydantic can't take is named with its parameter, when the tool is made."""

    class Opaque: ...

    def fn(a: int, b: Opaque) -> None: ...

    def callback(a: int, b: Callable[[], int]) -> None: ...

    for bad in (fn, callback):
        with pytest.raises(InvalidTypeError, match="parameter 'b' can't be a model's argument"):
            tool(bad)


def test_builtins_without_a_signature_are_refused() -> None:
    """T1: there is nothing to read; the error says what to use instead."""
    with pytest.raises(InvalidTypeError, match=r"Tool\.from_schema"):
        tool(dict.pop)


def test_annotations_are_resolved_when_they_can_be() -> None:
    """T1: a class that is defined later, or in the function around, is found; the return type may stay unknown."""

    class Local(BaseModel):
        value: int

    @tool
    def near(item: Local) -> Table:
        raise NotImplementedError

    @tool
    def early(item: Later) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidTypeError, match="'Later' is not defined"):
        _ = early.schema
    catalog = ToolCatalog()
    with pytest.raises(InvalidTypeError, match="'Later' is not defined"):
        catalog.register(early)
    assert len(catalog) == 0
    assert near.validate({"item": {"value": 1}})["item"] == Local(value=1)
    globals()["Later"] = Local
    try:
        assert early.validate({"item": {"value": 1}}) == {"item": Local(value=1)}
    finally:
        del globals()["Later"]


def test_annotations_that_are_no_types_are_refused() -> None:
    """Hostile: an annotation is any expression, and one that fails names its function."""

    def fn(a: int) -> None: ...

    for broken in ("1 / 0", "int[", "int[str]"):
        fn.__annotations__["a"] = broken
        with pytest.raises(InvalidTypeError, match="fn"):
            tool(fn)


def test_recursive_models_are_read() -> None:
    """T1: a model that holds itself has a reference in its schema, and arguments of any depth."""

    def fn(node: Node) -> None: ...

    made = tool(fn)
    assert made.schema["properties"]["node"] == {"$ref": "#/$defs/Node"}
    deep = made.validate({"node": {"value": 1, "children": [{"value": 2, "children": []}]}})
    assert deep["node"].children[0].value == 2


def test_a_schema_is_a_copy() -> None:
    """T2: what a caller does to a schema reaches neither the tool nor the next caller."""

    def fn(a: int) -> None: ...

    made = tool(fn)
    made.schema["properties"].clear()
    assert list(made.schema["properties"]) == ["a"]


def test_defaults_that_are_no_json_are_left_out() -> None:
    """T1: the function keeps its default; the schema doesn't invent one."""
    nothing = object()

    def fn(a: Any = nothing) -> Any:
        return a

    assert properties(fn) == {"a": {}}
    assert tool(fn).validate({}) == {}


def test_a_name_that_is_taken_twice_raises_once() -> None:
    """T2: the catalog is asked with functions as well as with tools."""

    def fn() -> None: ...

    catalog = ToolCatalog([fn])
    with pytest.raises(InvalidInputError, match="'fn' already"):
        catalog.register(fn)
