"""From a function's signature to a JSON Schema and a check of arguments, by pydantic. The only file that imports it."""

import functools
import inspect
import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    NamedTuple,
    NotRequired,
    Required,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from toolbatch.core import InvalidTypeError, ToolError, encode, preview

from ._callables import root_function
from ._complaint import Problem, complaint, place, required, shown, unexpected
from ._docstring import parameter_texts
from ._reader import Bound
from ._strict import omittable

__all__ = ["Signature", "read_signature"]

_EXTRA = "**"  # where the schema keeps what `**kwargs` takes; no parameter can have this name
_ABSENT = inspect.Parameter.empty
_annotated: Any = Annotated  # subscripted with values here, which a type checker takes for types


class _Parameter(NamedTuple):
    """One named parameter.

    Attributes:
        name: Its name in the function.
        field: Its field in the model. Not its name: a parameter may be called `self`, `_x` or `model_config`.
        annotation: Its type, with what is known of it.
        default: The model's default; `...` where it is required.
        is_positional: Whether it can't be given by name.
        fallback: What the function itself would take, for a positional one that is left out before another.
        is_always_passed: Whether the default is pydantic's, which the function can't know.
    """

    name: str
    field: str
    annotation: Any
    default: Any
    is_positional: bool = False
    fallback: Any = _ABSENT
    is_always_passed: bool = False


class _PlainSchema(GenerateJsonSchema):
    """JSON Schema without pydantic's invented titles, which cost tokens and say nothing."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  the signature is pydantic's
        return False


@dataclass(frozen=True, slots=True)
class Signature:
    """A compiled signature. It holds no function, so that all instances of a class share one.

    Attributes:
        model: The pydantic model of the arguments; its fields have the parameters' names as aliases.
        schema_text: The JSON Schema, as text: reading it anew gives each caller a copy.
        parameters: The named parameters, in their order.
        positional: Those of them that can't be given by name.
        extra: The model's field for what `**kwargs` takes, or `None`.
        reserved: Names that `**kwargs` must not be given, since they would hit a parameter that is the host's.
        wire_names: The named arguments as the model gives them.
        omittable: As in `ArgumentReader`.
    """

    model: type[BaseModel]
    schema_text: str
    parameters: tuple[_Parameter, ...]
    positional: tuple[_Parameter, ...]
    extra: str | None
    reserved: frozenset[str]
    wire_names: frozenset[str]
    omittable: frozenset[str]

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments, a fresh copy."""
        copy: dict[str, Any] = json.loads(self.schema_text)
        return copy

    def validate(self, arguments: Mapping[str, Any], tool_name: str) -> dict[str, Any]:
        """Return the arguments by parameter name, checked and converted. What was left out stays out.

        They are checked as JSON, not as Python objects: that is what a model sends, and pydantic's strict types refuse an
        enum's or a date's text otherwise. It also detaches them from the call.

        Raises:
            ToolError: They don't fit.
        """
        given = dict(arguments) if self.extra is None else self._apart(arguments, tool_name)
        try:
            # As `model_validate_json`, which only hands over.
            instance = self.model.__pydantic_validator__.validate_json(encode(given))
        except ValidationError as error:
            raise self._complaint(tool_name, arguments, error) from error
        except Exception as error:
            # A validator of the tool's author failed otherwise than by ValueError, or the arguments are not JSON: the host
            # made them. What it says may be the host's secret, so the model reads the type only (B21).
            problem = Problem("", f"they could not be checked ({type(error).__name__})")
            raise complaint(tool_name, arguments, [problem], self.schema()) from error
        values, sent = vars(instance), instance.model_fields_set
        named = {
            parameter.name: values[parameter.field]
            for parameter in self.parameters
            if parameter.is_always_passed or parameter.field in sent
        }
        return named if self.extra is None else named | values[self.extra]

    def bind(self, values: Mapping[str, Any]) -> Bound:
        """Return positional and named arguments for values that `validate` returned."""
        named = dict(values)
        return tuple([named.pop(parameter.name, parameter.fallback) for parameter in self.positional]), named

    def _apart(self, arguments: Mapping[str, Any], tool_name: str) -> dict[str, Any]:
        """Return the arguments with those that only `**kwargs` takes under a name of their own.

        pydantic's own "allow extra" would go on to allow them in every dataclass and TypedDict below.
        """
        known = self.wire_names
        rest = {name: value for name, value in arguments.items() if name not in known}
        taken = [unexpected(name, known) for name in rest if name in self.reserved]
        if taken:
            raise complaint(tool_name, arguments, taken, self.schema())
        return {**{name: value for name, value in arguments.items() if name in known}, _EXTRA: rest}

    def _complaint(self, tool_name: str, arguments: Mapping[str, Any], error: ValidationError) -> ToolError:
        schema = self.schema()
        known = schema["properties"]
        problems: list[Problem] = []
        for detail in error.errors(include_url=False, include_context=False):
            path = detail["loc"][1:] if detail["loc"][:1] == (_EXTRA,) else detail["loc"]
            if detail["type"] == "missing" and len(path) == 1:
                problems.append(required(schema, str(path[0])))
            elif detail["type"] == "extra_forbidden" and len(path) == 1:
                problems.append(unexpected(str(path[0]), known))
            elif path:
                missing = detail["type"] == "missing"  # pydantic shows what the field is missing in
                problems.append(Problem(place(path), detail["msg"], "" if missing else shown(detail["input"])))
            else:  # JSON to Python, not to pydantic: half a surrogate pair, or too deep
                problems.append(Problem("", detail["msg"]))
        return complaint(tool_name, arguments, problems, schema)


def read_signature(fn: Callable[..., Any], *, skip_first: bool, names: Mapping[str, Any]) -> Signature:
    """Compile the signature of `fn`.

    Args:
        fn: The function, or what can be called like one.
        skip_first: Whether its first parameter is the instance's or class's, which a method will get by itself.
        names: What annotations may mean besides the function's globals.

    Raises:
        InvalidTypeError: It can't be a tool's signature.
        NameError: An annotation mentions a name that is not defined, yet.
    """
    root = root_function(fn)
    label = getattr(root, "__qualname__", repr(fn))
    try:
        listed = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"{label} has no signature to read ({error}); use Tool.from_schema") from error
    ours = listed[1:] if skip_first else listed
    hidden = _bound_names(fn)
    ours = [parameter for parameter in ours if parameter.name not in hidden]
    hints = _hints(root, {parameter.name for parameter in ours}, names, label)
    texts = parameter_texts(fn)
    parameters: list[_Parameter] = []
    extra: Any = _ABSENT
    for parameter in ours:
        hint = hints.get(parameter.name, Any)
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise InvalidTypeError(
                f"{label} takes *{parameter.name}, but a model's arguments all have names: give each its own parameter, "
                "or take one list"
            )
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            parameters.append(_named(parameter, hint, texts, len(parameters)))
        elif get_origin(hint) is Unpack:
            parameters += _unpacked(get_args(hint)[0], texts, len(parameters))
        else:
            extra = hint
    named = {parameter.name for parameter in parameters if not parameter.is_positional}
    reserved = frozenset({*named, *_all_names(root), *hidden})
    return _compile(label, tuple(parameters), extra, reserved)


def _bound_names(fn: Any) -> set[str]:
    """Return the parameters that partials have filled by name: the host's, not the model's."""
    names: set[str] = set()
    while isinstance(fn, functools.partial):
        names |= set(fn.keywords)
        fn = fn.func
    return names


def _all_names(root: Callable[..., Any]) -> set[str]:
    try:
        parameters = inspect.signature(root).parameters.values()
    except (TypeError, ValueError):
        return set()
    free = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {parameter.name for parameter in parameters if parameter.kind not in free}


def _hints(root: Any, wanted: Iterable[str], names: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return the resolved annotations of the parameters, and of nothing else.

    A return type that exists for type checkers only must not stop a tool, so the function isn't asked as a whole.
    """
    written = getattr(root, "__annotations__", {})
    part = types.SimpleNamespace(__annotations__={name: written[name] for name in wanted if name in written})
    type_parameters = {variable.__name__: variable for variable in getattr(root, "__type_params__", ())}
    known = {**type_parameters, **names}
    try:
        return get_type_hints(part, getattr(root, "__globals__", {}), known, include_extras=True)
    except NameError:
        raise
    except Exception as error:  # an annotation is an expression: it can raise anything
        raise InvalidTypeError(f"the annotations of {label} can't be read: {preview(error)}") from error


def _named(parameter: inspect.Parameter, hint: Any, texts: Mapping[str, str], number: int) -> _Parameter:
    default: Any = parameter.default
    by_pydantic = isinstance(default, FieldInfo)
    required_here = default is _ABSENT
    return _Parameter(
        name=parameter.name,
        field=f"p{number}",
        annotation=_described(hint, parameter.name, texts),
        default=... if required_here else default,
        is_positional=parameter.kind is inspect.Parameter.POSITIONAL_ONLY,
        fallback=_ABSENT if required_here or by_pydantic else default,
        is_always_passed=by_pydantic or _has_own_default(hint),
    )


def _has_own_default(hint: Any) -> bool:
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return any(isinstance(extra, FieldInfo) and not extra.is_required() for extra in extras)


def _unpacked(typed_dict: Any, texts: Mapping[str, str], number: int) -> list[_Parameter]:
    """Return the parameters of `**kwargs: Unpack[SomeTypedDict]`."""
    found: list[_Parameter] = []
    for name, hint in get_type_hints(typed_dict, include_extras=True).items():
        is_required = name in typed_dict.__required_keys__
        while get_origin(hint) in (Required, NotRequired):
            is_required = get_origin(hint) is Required  # which string annotations hide from the class itself
            hint = get_args(hint)[0]
        # A factory, since a key that may be absent has no default that the model could be told of.
        default: Any = ... if is_required else Field(default_factory=lambda: None)
        found.append(_Parameter(name, f"p{number + len(found)}", _described(hint, name, texts), default))
    return found


def _described(hint: Any, name: str, texts: Mapping[str, str]) -> Any:
    """Return the type with its wire name and description, which the author's own `Field` overrides by standing later."""
    base, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    said = [extra if isinstance(extra, str) else getattr(extra, "documentation", None) for extra in extras]
    text = next((entry for entry in said if isinstance(entry, str)), texts.get(name))
    return _annotated[(base, Field(alias=name, description=text), *extras)]


def _compile(label: str, parameters: tuple[_Parameter, ...], extra: Any, reserved: frozenset[str]) -> Signature:
    field = None if extra is _ABSENT else "extra"
    catch_all = [] if field is None else [_Parameter(_EXTRA, field, _extra_annotation(extra), ...)]
    try:
        model, schema = _model([*parameters, *catch_all])
    except NameError:
        raise
    except Exception as error:
        raise _refusal(label, [*parameters, *catch_all], error) from error
    schema = _tidy(schema, takes_extra=field is not None)
    wire_names = frozenset(schema["properties"])
    positional = tuple(parameter for parameter in parameters if parameter.is_positional)
    may_miss = frozenset(omittable(schema))
    return Signature(model, encode(schema), parameters, positional, field, reserved, wire_names, may_miss)


def _extra_annotation(hint: Any) -> Any:
    return _annotated[(dict[str, hint], Field(alias=_EXTRA))]


def _model(parameters: Iterable[_Parameter]) -> tuple[type[BaseModel], dict[str, Any]]:
    fields: dict[str, Any] = {parameter.field: (parameter.annotation, parameter.default) for parameter in parameters}
    model: type[BaseModel] = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
    model.model_rebuild()  # raises a NameError where a model among the types isn't complete
    return model, model.model_json_schema(schema_generator=_PlainSchema)


def _refusal(label: str, parameters: Iterable[_Parameter], error: Exception) -> InvalidTypeError:
    """Say which parameter pydantic could not take, by trying each by itself."""
    for parameter in parameters:
        try:
            _model([parameter])
        except Exception as found:  # noqa: BLE001  pydantic runs the types' own hooks
            reason = found.message if isinstance(found, PydanticUserError) else str(found)
            return InvalidTypeError(
                f"{label}: parameter {parameter.name!r} can't be a model's argument: {reason.splitlines()[0]}"
            )
    return InvalidTypeError(f"{label}: its parameters can't be a model's arguments: {preview(str(error), 300)}")


def _tidy(schema: dict[str, Any], *, takes_extra: bool) -> dict[str, Any]:
    """Return the model's schema as a tool's: no invented titles, and `**kwargs` as JSON Schema says it."""
    definitions = schema.get("$defs", {})
    for name, definition in definitions.items():
        if definition.get("title") == name:
            del definition["title"]
    properties = schema.get("properties", {})
    more: Any = properties.pop(_EXTRA).get("additionalProperties", True) if takes_extra else False
    needed = [name for name in schema.get("required", ()) if name != _EXTRA]
    return {
        "type": "object",
        "properties": properties,
        **({"required": needed} if needed else {}),
        "additionalProperties": more,
        **({"$defs": definitions} if definitions else {}),
    }
