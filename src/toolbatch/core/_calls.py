"""What a model announces: calls, and the handle of the batch that they make."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, final

from ._errors import InvalidTypeError
from ._text import exact, preview

__all__ = ["BatchHandle", "CallProblem", "ToolCall"]


@dataclass(frozen=True, slots=True)
class CallProblem:
    """Why an announced call can't be run. It is answered with this, and its tool never hears of it (P6).

    Attributes:
        code: `malformed_arguments`, `unknown_tool`, `response_truncated` or `not_requested`.
        message: What was wrong and what the model should do, in the model's words.
    """

    code: str
    message: str


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_no_constant).decode  # `json.loads` would make one for each call


def _parse(text: str) -> tuple[dict[str, Any], CallProblem | None]:
    """Read a provider's argument text. Empty text is a call without arguments (T5); all else must be an object."""
    if not text.strip():
        return {}, None
    try:
        value = _decode(text)
    except (ValueError, RecursionError) as error:
        return {}, CallProblem(
            "malformed_arguments",
            f"The arguments are not valid JSON ({error}), so the tool was not run. They were: {preview(text, 200)}. "
            "Call it again with one complete JSON object.",
        )
    if not isinstance(value, dict):
        return {}, CallProblem(
            "malformed_arguments",
            f"The arguments must be a JSON object, not {preview(text, 200)}, so the tool was not run. "
            "Call it again with one JSON object.",
        )
    return value, None


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ToolCall:
    """One call that a model announced, immutable.

    The constructor accepts any id and name: `ToolCallClosure.begin` decides whether they can be used, so that a
    provider's odd response can still be read, shown and answered (P6).

    Attributes:
        id: The id that toolbatch knows the call by.
        name: The tool's name.
        arguments: The parsed arguments, `{}` where there were none or they could not be read.
        raw_arguments: The provider's text, where it sent text.
        problem: Why the call can't be run, or `None`. A batch answers such a call by itself, as not started.
        wire_id: The provider's own id, where ours had to differ; `None` where they are the same.
        kind: `function`, or `custom` for free-form input, which arrives as `arguments["input"]`.
        echo: What the lane must send back with the result, by lane (`caller`, `toolset_name`, ...).

    Args:
        id: As above.
        name: As above.
        arguments: A dict, the provider's JSON text, or `None`. Text that is not a JSON object becomes `problem`.
        problem: A problem that the caller has already found; it wins over one found here.
        wire_id: As above.
        kind: As above.
        echo: As above.

    Raises:
        InvalidTypeError: `arguments` is of another type.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    raw_arguments: str | None
    problem: CallProblem | None
    wire_id: str | None
    kind: Literal["function", "custom"]
    echo: Mapping[str, Any]

    def __init__(
        self,
        id: str,  # noqa: A002  the field's name in every provider's message
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        problem: CallProblem | None = None,
        wire_id: str | None = None,
        kind: Literal["function", "custom"] = "function",
        echo: Mapping[str, Any] | None = None,
    ) -> None:
        raw: str | None = None
        parsed: dict[str, Any] = {}
        if isinstance(arguments, str):
            raw = exact(arguments)
            parsed, found = _parse(raw)
            problem = problem or found
        elif isinstance(arguments, Mapping):
            parsed = dict(arguments)
        elif arguments is not None:
            raise InvalidTypeError(f"arguments must be a dict, JSON text or None, not {preview(arguments)}")
        fill = object.__setattr__
        fill(self, "id", id)
        fill(self, "name", name)
        fill(self, "arguments", parsed)
        fill(self, "raw_arguments", raw)
        fill(self, "problem", problem)
        fill(self, "wire_id", wire_id)
        fill(self, "kind", kind)
        fill(self, "echo", echo or {})

    def __hash__(self) -> int:
        return hash((self.id, self.name))

    def __repr__(self) -> str:
        problem = "" if self.problem is None else f", problem={self.problem.code!r}"
        return f"ToolCall({self.id!r}, {self.name!r}, {self.arguments!r}{problem})"


@final
class BatchHandle:
    """Proof of having begun a batch. Immutable, and checked by identity: an equal copy opens nothing (C4)."""

    __slots__ = ("_generation",)
    _generation: int

    def __init__(self, generation: int) -> None:
        if hasattr(self, "_generation"):
            raise AttributeError("a BatchHandle is immutable; it can't be made a second time")
        object.__setattr__(self, "_generation", generation)

    @property
    def generation(self) -> int:
        """The batch's number within its closure, from 1."""
        return self._generation

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a BatchHandle is immutable; {name} can't be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a BatchHandle is immutable; {name} can't be deleted")

    def __repr__(self) -> str:
        return f"<BatchHandle of generation {self._generation}>"
