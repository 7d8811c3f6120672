"""T1: a tool from an existing JSON Schema, checked by a library or by the host; and hostile schemas."""

import sys
from typing import Any

import pytest

from tests.tools.kit import prepared, refusal, refused, run
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.tools import Tool, ToolCatalog

SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "From the schema.",
    "properties": {
        "city-name": {"type": "string", "minLength": 2},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "tree": {"$ref": "#/$defs/tree"},
    },
    "required": ["city-name"],
    "additionalProperties": False,
    "$defs": {
        "tag": {"enum": ["a", "b"]},
        "tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}, "additionalProperties": False},
    },
}


def echo(**arguments: Any) -> Any:
    """Echo."""
    return arguments


ECHO = Tool.from_schema("echo", SCHEMA, echo, timeout=3, strict=False)


def test_a_schema_makes_a_tool() -> None:
    """T1: the schema is shown as it is, the arguments reach the function by name, Python's rules or not."""
    assert (ECHO.name, ECHO.description, ECHO.timeout, ECHO.schema) == ("echo", "From the schema.", 3, SCHEMA)
    given = {"city-name": "Oslo", "tags": ["a"], "tree": {"child": {"child": {}}}}
    ready = prepared("echo", given, ToolCatalog([ECHO]))
    assert run(ready) == given
    assert ready.kwargs["tags"] is not given["tags"]


def test_arguments_can_be_taken_whole() -> None:
    """T1: a proxy that takes any name takes them as one dict."""
    whole = Tool.from_schema("whole", {}, lambda arguments: arguments, unpack=False, description="Mine.")
    assert whole.description == "Mine."
    assert run(prepared("whole", {"self": 1, "x y": 2}, {"whole": whole})) == {"self": 1, "x y": 2}


def test_descriptions_fall_back_on_the_function() -> None:
    """T1: given, the schema's, the docstring's."""
    assert Tool.from_schema("echo", {}, echo).description == "Echo."


def test_arguments_that_do_not_fit_are_refused() -> None:
    """T4: what, where, what was expected; each bounded."""
    message = refusal(ECHO, {"city-name": "x" * 10_000 + "!", "tags": ["a", "c"], "tree": {"child": {"x": 1}}, "zz": 1})
    assert "- tags[1]: must satisfy enum: ['a', 'b'] (it was 'c')" in message
    assert "tree.child" in message
    assert "zz" in message
    assert "'city-name' is a required property" in refusal(ECHO, {})
    assert "minLength: 2 (it was 'x')" in refusal(ECHO, {"city-name": "x"})
    assert refused("echo", {}, {"echo": ECHO}).problem.code == "invalid_arguments"


def test_a_host_may_check_by_itself() -> None:
    """T1: its ValueError is for the model; any other failure of it is the host's and is told by type only."""

    def check(arguments: dict[str, Any]) -> None:
        if arguments.pop("a", None) == 1:
            raise ValueError("a must not be 1")
        if "b" in arguments:
            raise RuntimeError("secret")

    made = Tool.from_schema("t", {}, echo, validator=check)
    assert made.validate({"a": 2}) == {"a": 2}
    assert "a must not be 1" in refusal(made, {"a": 1})
    message = refusal(made, {"b": 1})
    assert "RuntimeError" in message
    assert "secret" not in message


def test_without_the_library_the_host_must_say_who_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """T5: arguments that nobody checked never run a tool by accident."""
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(InvalidInputError, match=r"toolbatch\[jsonschema\]"):
        Tool.from_schema("t", {}, echo)
    assert Tool.from_schema("t", {}, echo, validator=lambda arguments: None).validate({"a": 1}) == {"a": 1}


DEEP: dict[str, Any] = {}
for _ in range(5000):
    DEEP = {"properties": {"a": DEEP}}
CIRCLE: dict[str, Any] = {"type": "object"}
CIRCLE["properties"] = {"a": CIRCLE}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": ["object", "null"]},
        {"properties": []},
        {"properties": {"a": {"type": "strnig"}}},
        {"properties": {"a": {"pattern": "("}}, "required": "a"},
        {"$ref": "#"},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}},
        {"properties": {"a": {"$ref": "#/$defs/nowhere"}}},
        {"properties": {"a": {"$ref": "https://example.com/schema.json"}}},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"a": {"default": float("nan")}}},
        {"properties": {"a": object()}},
        DEEP,
        CIRCLE,
    ],
)
def test_hostile_schemas_are_refused_when_the_tool_is_made(schema: Any) -> None:
    """T1: circles, ends that lead nowhere or out of the schema, and what is no schema: never when the model calls."""
    with pytest.raises(InvalidInputError):
        Tool.from_schema("t", schema, echo)


@pytest.mark.parametrize(("schema", "fn"), [(None, echo), ([], echo), ("{}", echo), ({}, 3), ({}, dict)])
def test_wrong_types_are_named(schema: Any, fn: Any) -> None:
    """T1: a schema is a dict and a tool a function."""
    with pytest.raises(InvalidTypeError):
        Tool.from_schema("t", schema, fn)
    bad: Any = 3
    with pytest.raises(InvalidTypeError):
        Tool.from_schema("t", {}, echo, validator=bad)


def test_hostile_arguments_are_answered() -> None:
    """T5: deep, huge or circular arguments end in an answer."""
    made = Tool.from_schema("t", {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False}, echo)
    deep: dict[str, Any] = {}
    for _ in range(3 * sys.getrecursionlimit()):
        deep = {"a": deep}
    circle: dict[str, Any] = {}
    circle["a"] = circle
    for bad in (deep, circle, {str(n): n for n in range(10_000)}, {"a": "x" * 1_000_000}):
        refusal(made, bad)
