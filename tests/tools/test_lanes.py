"""T2: what a provider is told of a tool, in its own shape, strict where it has that, and nothing of ours."""

from typing import Annotated, Any, Literal, get_args

import pytest
from anthropic.types import ToolParam
from google.genai.types import GenerateContentConfig
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import Field, TypeAdapter

from tests.tools.kit import Colour, Filter, Node, Point
from toolbatch.core import InvalidInputError
from toolbatch.testing._anthropic import check_anthropic_body
from toolbatch.testing._chat import check_chat_body
from toolbatch.tools import Lane, Tool, ToolCatalog, tool

LANES: tuple[Lane, ...] = get_args(Lane)
STRICT_LANES: tuple[Lane, ...] = ("openai_chat", "openai_responses", "anthropic")


def everything(
    city: Annotated[str, Field(description="where", min_length=2)],
    node: Node,
    colour: Colour = Colour.RED,
    where: Point | None = None,
    filters: list[Filter] | None = None,
    mode: Literal["a", "b"] = "a",
    count: Annotated[int, Field(ge=1)] = 3,
) -> str:
    """Do everything."""
    return f"{city}{node}{colour}{where}{filters}{mode}{count}"


PLAIN = tool(timeout=5, meta=len, parallel=False)(everything)
STRICT = PLAIN.replace(name="strict", strict=True)
CATALOG = ToolCatalog([PLAIN, STRICT, tool(name="ping")(lambda: None)])


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every object's schema within a schema."""
    found = [schema] if isinstance(schema, dict) and schema.get("type") == "object" else []
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return found + [each for part in inner for each in objects(part)]


def test_the_sdks_types_accept_the_declarations() -> None:
    """T2: as their request types say, with no key that they don't know."""
    chat, responses, claude = (CATALOG.schemas(lane) for lane in STRICT_LANES)
    assert TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(chat, strict=True) == chat
    assert TypeAdapter(list[FunctionToolParam]).validate_python(responses) == responses
    assert TypeAdapter(list[ToolParam]).validate_python(claude) == claude


def test_the_declarations_go_where_the_sdks_types_stand() -> None:
    """T2: each SDK's typed `tools` takes them without a cast: mypy fails if it doesn't."""
    chat: list[ChatCompletionFunctionToolParam] = CATALOG.schemas("openai_chat")
    responses: list[FunctionToolParam] = CATALOG.schemas("openai_responses")
    claude: list[ToolParam] = CATALOG.schemas("anthropic")
    config = GenerateContentConfig(tools=CATALOG.view(deny=["strict"]).schemas("gemini"))
    assert config.tools is not None
    assert (len(chat), len(responses), len(claude), len(config.tools)) == (3, 3, 3, 1)


def test_the_strict_fake_provider_accepts_them() -> None:
    """T2: the judges of requests find no fault with the tools."""
    messages = [{"role": "user", "content": "hi"}]
    chat: dict[str, object] = {"model": "m", "messages": messages, "tools": CATALOG.schemas("openai_chat")}
    claude: dict[str, object] = {
        "model": "m",
        "max_tokens": 10,
        "messages": messages,
        "tools": CATALOG.schemas("anthropic"),
    }
    assert check_chat_body(chat) is None
    assert check_anthropic_body(claude) is None


def test_each_lane_has_its_shape() -> None:
    """T2: one tool in all lanes; the schema is the same where nothing is strict."""
    ping = ToolCatalog([tool(name="ping", description="Ping.")(lambda: None)])
    schema = ping["ping"].schema
    function = {"type": "function", "function": {"name": "ping", "description": "Ping.", "parameters": schema}}
    described = {"name": "ping", "description": "Ping."}
    assert {lane: ping.schemas(lane)[0] for lane in LANES} == {
        "openai_chat": function,
        "openai_responses": {"type": "function", **described, "parameters": schema, "strict": False},
        "anthropic": {**described, "input_schema": schema},
        "gemini": {"functionDeclarations": [{**described, "parametersJsonSchema": schema}]},
        "bedrock": {"toolSpec": {**described, "inputSchema": {"json": schema}}},
        "mistral": function,
        "cohere": function,
        "ollama": function,
        "mcp": {**described, "inputSchema": schema},
    }


@pytest.mark.parametrize("lane", LANES)
def test_declarations_are_copies_of_what_a_provider_should_see(lane: Lane) -> None:
    """T2: no timeout, no function, no hint of ours; and changing one changes nothing."""
    declared = CATALOG.schemas(lane)
    assert not {"timeout", "parallel", "meta", "needs_approval"} & set(str(declared).replace("'", " ").split())
    before = str(declared)
    for part in objects(declared):
        part.clear()
    declared[0].clear()
    assert str(CATALOG.schemas(lane)) == before
    assert ToolCatalog().schemas(lane) == []
    assert list(CATALOG.view(allow=["ping"])) == ["ping"]


@pytest.mark.parametrize("lane", STRICT_LANES)
def test_strict_schemas_are_closed(lane: Lane) -> None:
    """T2: every object is closed, and for OpenAI everything is required; a plain tool beside it stays plain."""
    plain, strict, _ = CATALOG.schemas(lane)
    found = strict.get("function", strict)
    schema = found.get("parameters", found.get("input_schema"))
    assert found["strict"] is True
    assert plain.get("function", plain).get("strict", False) is False
    for part in objects(schema):
        assert part["additionalProperties"] is False
        if lane != "anthropic":
            assert part["required"] == list(part["properties"])
    assert "default'" not in str(schema)
    assert "minLength'" not in str(schema)
    assert schema["properties"]["city"]["description"] == "where (minLength: 2)"  # told, where it can't be forced
    assert "minimum" in str(schema["properties"]["count"])


def test_a_strict_null_means_left_out() -> None:
    """T2: OpenAI makes a model say null for what it would leave out; the function gets its default, and a real null stays."""
    node = {"value": 1, "children": []}
    given = {"city": "Oslo", "node": node, "colour": None, "where": None, "filters": None, "mode": None, "count": None}
    values = STRICT.validate(given)
    assert set(values) == {"city", "node", "where", "filters"}
    nullable = CATALOG.schemas("openai_chat")[1]["function"]["parameters"]["properties"]["count"]
    assert nullable["anyOf"] == [{"type": "integer", "minimum": 1}, {"type": "null"}]


def test_unions_of_models_become_any_of() -> None:
    """T2: a discriminated union is `oneOf` in pydantic's schema, which no strict mode takes."""
    from pydantic import BaseModel

    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    def fn(pet: Annotated[Cat | Dog, Field(discriminator="kind", description="who")]) -> None: ...

    made = ToolCatalog([tool(strict=True)(fn)])
    for lane in STRICT_LANES:
        assert "oneOf" not in str(made.schemas(lane))
        assert "discriminator" not in str(made.schemas(lane))


def free(a: dict[str, int]) -> None: ...
def untyped(a: Any) -> None: ...
def unlisted(a: list[Any]) -> None: ...
def pair(a: tuple[int, str]) -> None: ...
def more(**a: int) -> None: ...


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (free, "at free.a, it takes names"),
        (untyped, "at untyped.a, it may be any value"),
        (unlisted, r"at unlisted.a\[\]"),
        (pair, "at pair.a, prefixItems has no equivalent"),
        (more, "at more, it takes names"),
    ],
)
def test_what_can_not_be_strict_is_named(fn: Any, says: str) -> None:
    """T2: a clear error at home instead of a refused request; lanes without a strict mode go on."""
    catalog = ToolCatalog([tool(strict=True)(fn)])
    for lane in STRICT_LANES:
        with pytest.raises(InvalidInputError, match=says):
            catalog.schemas(lane)
    assert len(catalog.schemas("gemini")) == 1


def test_references_with_company_end() -> None:
    """Hostile: a recursive reference beside a description is written out once, and not for ever."""
    loop = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "description": "the next"}}}
    made = Tool.from_schema(
        "f", {"properties": {"n": {"$ref": "#/$defs/N", "description": "x"}}, "$defs": {"N": loop}}, print
    )
    schema = ToolCatalog([made.replace(strict=True)]).schemas("anthropic")[0]["input_schema"]
    assert schema["properties"]["n"]["properties"]["next"] == {"$ref": "#/$defs/N"}


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("a" * 64, set(LANES)),
        ("a" * 65, {"anthropic", "gemini", "cohere", "ollama", "mcp"}),
        ("a.b", {"gemini", "cohere", "ollama", "mcp"}),
        ("a:b", {"gemini", "cohere", "ollama"}),
        ("1a", set(LANES) - {"gemini"}),
    ],
)
def test_names_are_checked_by_lane(name: str, takes: set[str]) -> None:
    """T2: LANES 1-9: a name that one provider refuses is named before the request."""
    catalog = ToolCatalog([tool(name=name)(lambda: None)])
    for lane in LANES:
        if lane in takes:
            assert len(catalog.schemas(lane)) == 1
        else:
            with pytest.raises(InvalidInputError, match=f"{lane} does not take the tool name"):
                catalog.schemas(lane)


@pytest.mark.parametrize("lane", ["openai", "", None, ["anthropic"]])
def test_an_unknown_lane_is_named(lane: Any) -> None:
    """T2: with the lanes that there are."""
    with pytest.raises(InvalidInputError, match="the lanes are openai_chat"):
        CATALOG.schemas(lane)
