"""How each lane declares tools: names, descriptions and schemas, and nothing else of ours (T2).

The shapes are those of the SDKs' own request types; the names' rules are in LANES. A lane that has no strict mode gets
the plain schema, since strictness is the provider's promise and our own check stands in any case.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NamedTuple, get_args

from toolbatch.core import InvalidInputError, preview

from ._strict import ANTHROPIC, OPENAI, Strictness, strict_schema
from ._tool import AnyTool

__all__ = ["Lane", "declare"]

Lane = Literal[
    "openai_chat", "openai_responses", "anthropic", "gemini", "bedrock", "mistral", "cohere", "ollama", "mcp"
]


class _Facts(NamedTuple):
    """What is declared of one tool."""

    name: str
    description: str
    schema: dict[str, Any]
    strict: bool


class _Rules(NamedTuple):
    """How one lane declares a tool.

    Attributes:
        names: The names that it takes; `None` where none are documented.
        strictness: Its strict mode, if it has one.
        write: Makes the declaration.
    """

    names: str | None
    strictness: Strictness | None
    write: Callable[[_Facts], dict[str, Any]]


def _described(facts: _Facts, **fields: Any) -> dict[str, Any]:
    # An empty description is left out: Bedrock refuses it, and to the others it says nothing.
    text = {"description": facts.description} if facts.description else {}
    return {"name": facts.name, **text, **fields}


def _function(facts: _Facts) -> dict[str, Any]:
    strict = {"strict": True} if facts.strict else {}
    return {"type": "function", "function": _described(facts, parameters=facts.schema, **strict)}


def _response_function(facts: _Facts) -> dict[str, Any]:
    # `strict` is required here, and the API takes its absence for true (`openai/types/responses/function_tool_param.py`).
    return {"type": "function", **_described(facts, parameters=facts.schema, strict=facts.strict)}


def _anthropic(facts: _Facts) -> dict[str, Any]:
    strict = {"strict": True} if facts.strict else {}
    return _described(facts, input_schema=facts.schema, **strict)


def _gemini(facts: _Facts) -> dict[str, Any]:
    return _described(facts, parametersJsonSchema=facts.schema)  # `parameters` takes OpenAPI's dialect only


def _bedrock(facts: _Facts) -> dict[str, Any]:
    return {"toolSpec": _described(facts, inputSchema={"json": facts.schema})}


def _mcp(facts: _Facts) -> dict[str, Any]:
    return _described(facts, inputSchema=facts.schema)


_OPENAI_NAMES: Final = r"[a-zA-Z0-9_-]{1,64}"
_RULES: Final[dict[str, _Rules]] = {
    "openai_chat": _Rules(_OPENAI_NAMES, OPENAI, _function),
    "openai_responses": _Rules(_OPENAI_NAMES, OPENAI, _response_function),
    "anthropic": _Rules(r"[a-zA-Z0-9_-]{1,128}", ANTHROPIC, _anthropic),
    "gemini": _Rules(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", None, _gemini),
    "bedrock": _Rules(r"[a-zA-Z0-9_-]{1,64}", None, _bedrock),
    "mistral": _Rules(_OPENAI_NAMES, None, _function),
    "cohere": _Rules(None, None, _function),
    "ollama": _Rules(None, None, _function),
    "mcp": _Rules(r"[A-Za-z0-9._-]{1,128}", None, _mcp),
}


def declare(tools: Iterable[AnyTool], lane: Lane) -> list[dict[str, Any]]:
    """Return what a request's `tools` should hold, in the order of `tools`; copies, which the caller may change.

    Gemini takes all functions as one tool, so its list has one entry. Bedrock's goes under `toolConfig.tools`.

    Raises:
        InvalidInputError: There is no such lane, or it can't take a tool's name or schema.
    """
    rules = _RULES.get(lane) if isinstance(lane, str) else None
    if rules is None:
        raise InvalidInputError(f"there is no lane {preview(lane)}; the lanes are {', '.join(get_args(Lane))}")
    declared = [rules.write(_facts(tool, rules, lane)) for tool in tools]
    if lane == "gemini" and declared:
        return [{"functionDeclarations": declared}]
    return declared


def _facts(tool: AnyTool, rules: _Rules, lane: str) -> _Facts:
    if rules.names is not None and not re.fullmatch(rules.names, tool.name):
        raise InvalidInputError(
            f"{lane} does not take the tool name {tool.name!r}: it must match {rules.names}; "
            "register the tool under another with replace(name=...)"
        )
    schema = tool.schema
    if not tool.strict or rules.strictness is None:
        return _Facts(tool.name, tool.description, schema, strict=False)
    return _Facts(tool.name, tool.description, strict_schema(schema, rules.strictness, tool.name), strict=True)
