"""What the model reads of arguments that don't fit: what was wrong, where, what was expected; and all of it bounded."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from toolbatch.core import ToolError, cut, encode, preview

__all__ = ["INVALID", "Problem", "complaint", "place", "required", "shape", "shown", "unexpected"]

INVALID: Final = "invalid_arguments"
"""The code of arguments that don't fit their tool (T4)."""

# Bytes but for the first two. Together they stay under the core's default of 4096 for a message, whose cut would take the
# advice at the end.
_MAX_PROBLEMS = 8
_MAX_VALUE = 80
_MAX_ALL_PROBLEMS = 2600
_MAX_PLACE = 100
_MAX_TEXT = 200
_MAX_ARGUMENTS = 400
_MAX_PARAMETERS = 600


class Problem(NamedTuple):
    """One thing that is wrong.

    Attributes:
        where: The path of the value, as `filters[0].name`; empty for the arguments as a whole.
        what: What was expected of it.
        value: A preview of what was there; empty where nothing was.
    """

    where: str
    what: str
    value: str = ""


def place(path: Iterable[object]) -> str:
    """Return a path as one writes it in code."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return cut(text, _MAX_PLACE)


def shown(value: object) -> str:
    """Return a bounded preview of a value that the model sent."""
    return preview(value, _MAX_VALUE)


def required(schema: Mapping[str, Any], name: str) -> Problem:
    """Return the problem of a parameter that is not there."""
    fragment = schema.get("properties", {}).get(name)
    expected = f": {shape(fragment, schema)}" if isinstance(fragment, Mapping) else ""
    return Problem(place([name]), f"is required, but missing{expected}")


def unexpected(name: str, known: Iterable[str]) -> Problem:
    """Return the problem of an argument that no parameter takes."""
    near = get_close_matches(name[:_MAX_PLACE], sorted(known), n=1)
    return Problem(place([name]), "is no parameter of this tool" + (f"; did you mean {near[0]}?" if near else ""))


def complaint(
    tool_name: str, arguments: Mapping[str, Any], problems: Sequence[Problem], schema: Mapping[str, Any]
) -> ToolError:
    """Return the error for the model; the tool was not run."""
    told = []
    for problem in problems[:_MAX_PROBLEMS]:
        got = f" (it was {problem.value})" if problem.value else ""
        told.append(f"- {problem.where or 'the arguments'}: {cut(problem.what, _MAX_TEXT)}{got}")
    if len(problems) > _MAX_PROBLEMS:
        told.append(f"- and {len(problems) - _MAX_PROBLEMS} more")
    shown_arguments = cut(preview(dict(arguments), _MAX_ARGUMENTS), _MAX_ARGUMENTS)
    message = (
        f"The arguments of {tool_name} don't fit, so the tool was not run.\n"
        f"{cut(chr(10).join(told), _MAX_ALL_PROBLEMS)}\n"
        f"{_parameters(schema)}\n"
        f"The arguments were: {shown_arguments}. Call it again with corrected ones."
    )
    return ToolError.respond_to_model(message, INVALID)


def _parameters(schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    listed = [
        f"{name} ({shape(fragment, schema)}{', required' if name in needed else ''})"
        for name, fragment in schema.get("properties", {}).items()
    ]
    return cut(f"Its parameters are: {', '.join(listed)}.", _MAX_PARAMETERS) if listed else "It has no parameters."


def shape(fragment: object, root: Mapping[str, Any], depth: int = 3) -> str:
    """Say in a few words what a piece of a schema asks for. It need not be whole: the model has the schema."""
    if not isinstance(fragment, Mapping) or depth == 0:
        return "a value"
    if "enum" in fragment:
        return f"one of {cut(', '.join(map(encode, fragment['enum'])), _MAX_TEXT)}"
    if "const" in fragment:
        return cut(encode(fragment["const"]), _MAX_PLACE)
    reference = fragment.get("$ref")
    if isinstance(reference, str):
        return shape(root.get("$defs", {}).get(reference.rpartition("/")[2]), root, depth - 1)
    for word in ("anyOf", "oneOf"):
        if word in fragment:
            return " or ".join(dict.fromkeys(shape(choice, root, depth - 1) for choice in fragment[word]))
    kind = fragment.get("type")
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    if kind == "array" and "items" in fragment:
        return f"array of {shape(fragment['items'], root, depth - 1)}"
    extra = f" ({fragment['format']})" if "format" in fragment else ""
    return f"{kind}{extra}" if isinstance(kind, str) else "a value"
