"""Arguments described by an existing JSON Schema, checked by the `jsonschema` library or by the host."""

import copy
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from toolbatch.core import EncodingError, InvalidInputError, InvalidTypeError, encode, preview

from ._complaint import Problem, complaint, place, shown
from ._reader import Bound
from ._strict import omittable

__all__ = ["SchemaReader"]

_MAX_ERRORS = 50  # more are not told, and a hostile schema and value can have any number


class SchemaReader:
    """Reads arguments by a JSON Schema (see `Tool.from_schema`). They reach the function as they came, as a copy."""

    __slots__ = ("_check", "_omittable", "_text", "_unpack", "description")

    def __init__(
        self, schema: Mapping[str, Any], validator: Callable[[dict[str, Any]], object] | None, *, unpack: bool
    ) -> None:
        self._text = _checked(schema)
        found = self.schema().get("description")
        self.description = found if isinstance(found, str) else ""
        self._unpack = unpack
        self._omittable = omittable(self.schema())
        self._check = _library_check(self.schema()) if validator is None else _host_check(validator)

    def schema(self) -> dict[str, Any]:
        """Return a copy of the schema, with `properties`, which some providers insist on."""
        schema: dict[str, Any] = json.loads(self._text)
        return schema

    def validate(self, arguments: Mapping[str, Any], tool_name: str) -> dict[str, Any]:
        """As `ArgumentReader.validate`; nothing is converted.

        Raises:
            ToolError: They don't fit.
        """
        try:
            given: dict[str, Any] = json.loads(encode(dict(arguments)))
            problems = self._check(given)
        except Exception as error:  # the arguments are not JSON, or too deep, or the check itself failed
            problem = Problem("", f"they could not be checked ({type(error).__name__})")
            raise complaint(tool_name, arguments, [problem], self.schema()) from error
        if problems:
            raise complaint(tool_name, arguments, problems, self.schema())
        return given

    def omittable(self) -> Collection[str]:
        """As `ArgumentReader.omittable`."""
        return self._omittable

    def bind(self, values: Mapping[str, Any]) -> Bound:
        """Return the arguments by name, or as one dict."""
        return ((), dict(values)) if self._unpack else ((dict(values),), {})


def _checked(schema: object) -> str:
    if not isinstance(schema, Mapping):
        raise InvalidTypeError(f"schema must be a dict, not {preview(schema)}")
    try:
        text = encode(dict(schema))
        parsed: dict[str, Any] = json.loads(text)
    except (EncodingError, RecursionError) as error:
        raise InvalidInputError(f"the schema is not JSON: {error}") from error
    if parsed.setdefault("type", "object") != "object":
        raise InvalidInputError(
            f"the schema must be an object's, since arguments are one, not of type {parsed['type']!r}"
        )
    if not isinstance(parsed.setdefault("properties", {}), dict):
        raise InvalidInputError(f"the schema's properties must be an object, not {preview(parsed['properties'])}")
    _check_references(parsed)
    return encode(parsed)


def _check_references(schema: dict[str, Any]) -> None:
    """Check that references stay within the schema, and lead somewhere: nothing is fetched, and no check runs in circles."""
    for part in _parts(schema):
        for word in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = part.get(word)
            if isinstance(reference, str) and not reference.startswith("#"):
                raise InvalidInputError(
                    f"the schema refers to {preview(reference)}; only references within it are followed"
                )
        seen: set[str] = set()
        at: Any = part
        while isinstance(at, dict) and isinstance(at.get("$ref"), str):
            reference = at["$ref"]
            if reference in seen:
                raise InvalidInputError(f"the schema's reference {preview(reference)} leads back to itself")
            seen.add(reference)
            at = _follow(schema, reference)


def _parts(schema: object) -> Iterator[dict[str, Any]]:
    waiting = [schema]  # and no recursion: a schema may be deeper than the stack
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _follow(schema: dict[str, Any], reference: str) -> Any:
    """Return what a pointer leads to. An anchor's name leads nowhere here: the library finds those."""
    at: Any = schema
    if reference not in {"#", "#/"} and not reference.startswith("#/"):
        return None
    for step in reference[2:].split("/") if len(reference) > 2 else ():
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict):
            at = at.get(step)
        elif isinstance(at, list) and step.isdecimal() and int(step) < len(at):
            at = at[int(step)]
        else:
            at = None
        if at is None:
            raise InvalidInputError(f"the schema refers to {preview(reference)}, where nothing is")
    return at


def _host_check(validator: object) -> Callable[[dict[str, Any]], list[Problem]]:
    if not callable(validator):
        raise InvalidTypeError(f"validator must be a function of the arguments, not {preview(validator)}")

    def check(arguments: dict[str, Any]) -> list[Problem]:
        try:
            validator(copy.deepcopy(arguments))
        except ValueError as error:
            return [Problem("", str(error) or type(error).__name__)]
        return []

    return check


def _library_check(schema: dict[str, Any]) -> Callable[[dict[str, Any]], list[Problem]]:
    try:
        import jsonschema  # type: ignore[import-untyped]
        from referencing import Registry
    except ImportError as error:
        raise InvalidInputError(
            "checking arguments by a JSON Schema needs the jsonschema library: install toolbatch[jsonschema], "
            "or give a validator=... of your own"
        ) from error
    kind: Any = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InvalidInputError(f"the schema is not valid at {place(error.absolute_path)}: {error.message}") from error
    except RecursionError as error:
        raise InvalidInputError("the schema is too deep to be read") from error
    checker = kind(schema, registry=Registry())  # the default one fetches references from the network

    def check(arguments: dict[str, Any]) -> list[Problem]:
        errors = (error for error, _ in zip(checker.iter_errors(arguments), range(_MAX_ERRORS), strict=False))
        return [Problem(place(error.absolute_path), _said(error), shown(error.instance)) for error in errors]

    return check


def _said(error: Any) -> str:
    """Return what was expected. The library's own message starts with the value, which may be of any length."""
    best = f"must satisfy {error.validator}: {preview(error.validator_value, 120)}"
    return str(error.message) if error.validator in {"required", "additionalProperties"} else best
