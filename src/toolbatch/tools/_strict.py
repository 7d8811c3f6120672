"""A lane's strict mode: the provider makes the model keep to the schema, but takes only a part of JSON Schema.

What only narrows a value and isn't taken (`minLength`, ...) moves into the description, as Anthropic's SDK does
(`lib/_parse/_transform.py`): the model should still know, and our own check holds it to it. What has no equivalent raises:
a request with it would be refused, and every later one too.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from toolbatch.core import InvalidInputError, encode, preview

__all__ = ["ANTHROPIC", "OPENAI", "Strictness", "omittable", "strict_schema"]

_STRUCTURE: Final = frozenset({"type", "properties", "required", "items", "enum", "const", "anyOf", "$ref"})
_DEFINITIONS: Final = ("$defs", "definitions")
_STRING_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
# Of no meaning for what a model may send, or said in another way.
_DROPPED: Final = frozenset(
    {"title", "description", "additionalProperties", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$comment",
     "$id", "discriminator"}
)  # fmt: skip
_SILENT: Final = _DROPPED - {"description"}
_IMPOSSIBLE: Final = (
    "patternProperties", "propertyNames", "prefixItems", "contains", "not", "if", "then", "else", "dependentRequired",
    "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef",
)  # fmt: skip


class Strictness(NamedTuple):
    """What a lane's strict mode takes.

    Attributes:
        lane: Whose it is, for error messages.
        narrowing: Keywords besides the structure's that it takes.
        formats: Values of `format` that it takes.
        all_required: Whether every property must be required, so that an optional one becomes nullable.
    """

    lane: str
    narrowing: frozenset[str]
    formats: frozenset[str]
    all_required: bool


OPENAI: Final = Strictness(
    "OpenAI",  # https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas"
    frozenset(
        {"pattern", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems"}
    ),
    _STRING_FORMATS,
    all_required=True,
)
ANTHROPIC: Final = Strictness(
    "Anthropic",  # the SDK's `lib/_parse/_transform.py`
    frozenset(),
    _STRING_FORMATS | {"uri"},
    all_required=False,
)


def strict_schema(schema: dict[str, Any], rules: Strictness, tool_name: str) -> dict[str, Any]:
    """Return a tool's schema as strict mode wants it. `schema` is not changed.

    Raises:
        InvalidInputError: Strict mode has no way to say what the schema says; the message names the place.
    """
    writer = _Writer(schema, rules, tool_name)
    strict = writer.write({word: part for word, part in schema.items() if word not in _DEFINITIONS}, tool_name)
    if rules.all_required:
        for name in omittable(schema):
            strict["properties"][name] = _nullable(strict["properties"][name])
    for word in _DEFINITIONS:
        if schema.get(word):
            strict[word] = {name: writer.write(part, f"{word}.{name}") for name, part in schema[word].items()}
    return strict


def omittable(schema: Mapping[str, Any]) -> set[str]:
    """Return the parameters that may be left out and can't be null, for which a strict model's null means "left out"."""
    needed = schema.get("required", ())
    properties = schema.get("properties", {})
    return {name for name, part in properties.items() if name not in needed and not _takes_null(part, schema)}


def _takes_null(part: Any, root: Mapping[str, Any], depth: int = 10) -> bool:
    if not isinstance(part, Mapping) or depth == 0:
        return True
    reference = part.get("$ref")
    if isinstance(reference, str):
        return _takes_null(_resolve(reference, root), root, depth - 1)
    for word in ("anyOf", "oneOf"):
        if word in part:
            return any(_takes_null(choice, root, depth - 1) for choice in part[word])
    if "enum" in part:
        return None in part["enum"]
    if "const" in part:
        return part["const"] is None
    kind = part.get("type")
    return kind is None or kind == "null" or (isinstance(kind, list) and "null" in kind)


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    place: Any = root
    for step in reference.removeprefix("#/").split("/"):
        place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
    return place


def _nullable(part: dict[str, Any]) -> dict[str, Any]:
    text = {"description": part.pop("description")} if "description" in part else {}
    choices = part["anyOf"] if set(part) == {"anyOf"} else [part]
    return {"anyOf": [*choices, {"type": "null"}], **text}


class _Writer:
    """Rewrites one schema. References that were written out carry on as `inside`, so that a recursive type ends somewhere."""

    def __init__(self, root: Mapping[str, Any], rules: Strictness, tool_name: str) -> None:
        self._root = root
        self._rules = rules
        self._tool = tool_name

    def write(self, part: Any, where: str, inside: frozenset[str] = frozenset()) -> dict[str, Any]:
        """Return one subschema."""
        part, inside = self._merged(part, where, inside)
        for word in _IMPOSSIBLE:
            if word in part:
                raise self._refusal(where, f"{word} has no equivalent")
        if not part.keys() & {"type", "enum", "const", "anyOf", "$ref"}:
            raise self._refusal(where, "it may be any value; give it a type")
        strict: dict[str, Any] = {}
        told: dict[str, Any] = {}
        for word, value in part.items():
            if self._takes(word, value):
                strict[word] = value
            elif word not in _DROPPED:
                told[word] = value
        text = part.get("description", "")
        if told and "$ref" not in strict:
            text = f"{text} ({', '.join(f'{word}: {encode(value)}' for word, value in told.items())})".strip()
        if text and "$ref" not in strict:
            strict["description"] = text
        return self._with_parts(part, strict, where, inside)

    def _takes(self, word: str, value: object) -> bool:
        if word == "format":
            return value in self._rules.formats
        return word in _STRUCTURE or word in self._rules.narrowing

    def _with_parts(
        self, part: Mapping[str, Any], strict: dict[str, Any], where: str, inside: frozenset[str]
    ) -> dict[str, Any]:
        if "object" in _kinds(part):
            if part.get("additionalProperties", False) is not False:
                raise self._refusal(where, "it takes names that the schema doesn't list; declare them, or take a list")
            properties = part.get("properties", {})
            strict["properties"] = {
                name: self.write(inner, f"{where}.{name}", inside) for name, inner in properties.items()
            }
            strict["additionalProperties"] = False
            if self._rules.all_required:
                strict["required"] = list(properties)
        if "array" in _kinds(part):
            if "items" not in part:
                raise self._refusal(where, "its items may be any value; give them a type")
            strict["items"] = self.write(part["items"], f"{where}[]", inside)
        if "anyOf" in part:
            strict["anyOf"] = [self.write(choice, where, inside) for choice in part["anyOf"]]
        return strict

    def _merged(self, part: Any, where: str, inside: frozenset[str]) -> tuple[dict[str, Any], frozenset[str]]:
        """Return a subschema without what can be said in another way: `oneOf`, a lone `allOf`, a reference with company."""
        if not isinstance(part, Mapping):
            raise self._refusal(where, f"{preview(part)} lets anything or nothing through")
        merged = {word: value for word, value in part.items() if word != "default" or value is not None}
        if "oneOf" in merged:
            merged["anyOf"] = merged.pop("oneOf")
        if "allOf" in merged:
            if len(merged["allOf"]) != 1:
                raise self._refusal(where, "allOf has no equivalent")
            merged = {**merged.pop("allOf")[0], **merged}
        if "$ref" not in merged or not set(merged) - _SILENT - {"$ref"}:
            return merged, inside
        reference = merged.pop("$ref")
        target = _resolve(reference, self._root)
        if reference in inside or not isinstance(target, Mapping):
            return {"$ref": reference}, inside
        return self._merged({**target, **merged}, where, inside | {reference})

    def _refusal(self, where: str, why: str) -> InvalidInputError:
        return InvalidInputError(
            f"{self._tool} can't be strict for {self._rules.lane}: at {where}, {why}. Make the tool with strict=False, "
            "or change the parameter"
        )


def _kinds(part: Mapping[str, Any]) -> list[Any]:
    kind = part.get("type")
    return kind if isinstance(kind, list) else [kind]
