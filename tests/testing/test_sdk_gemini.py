"""The real `google-genai` client on `generateContent`, with a batch between its rounds."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from google import genai
from google.genai import errors, types

from tests.testing.transcripts import Json
from toolbatch import Document, Image, ToolBatch
from toolbatch.providers import gemini
from toolbatch.testing import FakeProvider, RecordedRequest, Reply, ScriptedCall

OSLO = ScriptedCall("call_1", "weather", {"city": "Oslo"})
NAMELESS = [ScriptedCall("", "weather", {"city": city}) for city in ("Oslo", "Rome")]
NUMBER = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the function "
    "call turn."
)


def connect(provider: FakeProvider) -> genai.Client:
    return genai.Client(api_key="test", http_options=types.HttpOptions(base_url=provider.gemini_base_url))


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider([Reply("Let me look.", [OSLO, *NAMELESS], thinking="Three."), Reply("4 degrees.")]) as provider:
        yield provider


@pytest.fixture
def client(provider: FakeProvider) -> Iterator[genai.Client]:
    with connect(provider) as client:
        yield client


def question() -> list[Any]:
    return [types.Content(role="user", parts=[types.Part(text="Hi.")])]


def ask(client: genai.Client, contents: list[Any], model: str = "gemini-3-pro") -> types.GenerateContentResponse:
    return client.models.generate_content(model=model, contents=contents)


def refused(client: genai.Client, contents: list[Any], model: str = "gemini-3-pro") -> str:
    """The sentence of a 400."""
    with pytest.raises(errors.ClientError) as refusal:
        ask(client, contents, model)
    assert (refusal.value.code, refusal.value.status) == (400, "INVALID_ARGUMENT")
    return str(refusal.value.message)


async def weather(city: str) -> object:
    if city == "Rome":
        raise LookupError("no such station")
    return {"city": city, "degrees": 4}


async def picture(city: str) -> object:
    return [f"{city}:", Image.of(b"\x89PNG", "image/png"), Document.of(b"%PDF", "application/pdf", f"{city}.pdf")]


TOOLS: Any = {"weather": weather, "picture": picture}


async def test_round_after_round_with_a_batch_between() -> None:
    """The client's own response objects go into a batch and back, signatures and missing ids included, until the model is done."""
    script = [
        Reply("Let me look.", [OSLO, *NAMELESS], thinking="Three."),
        Reply(calls=[ScriptedCall("call_2", "picture", {"city": "Bergen"}), ScriptedCall("", "no_such_tool")]),
        Reply(calls=[ScriptedCall("call_3", "weather", {"city": "cut"})], stop="MAX_TOKENS"),
        Reply("4 degrees."),
    ]
    contents = question()
    async with FakeProvider(script) as provider:
        with connect(provider) as client:
            while True:
                response = await client.aio.models.generate_content(model="gemini-3-pro", contents=contents)
                calls = gemini.calls(response)
                if not calls:
                    break
                async with ToolBatch(calls, tools=TOOLS, timeout=5) as batch:
                    batch.start_all()
                gemini.extend(contents, response, batch.result)
            await client.aio.aclose()
    assert response.text == "4 degrees."
    assert (provider.rejected, provider.remaining) == ([], 0)
    sent = provider.requests[-1].body["contents"]
    answers = [[part["functionResponse"] for part in content["parts"]] for content in sent[2::2]]
    assert [one["response"] for one in answers[0]] == [
        {"city": "Oslo", "degrees": 4},
        {"city": "Oslo", "degrees": 4},
        {"error": {"code": "tool_error", "message": "no such station"}},
    ]
    assert [one.get("id") for one in answers[0]] == ["call_1", None, None]
    assert [part["inline_data"]["display_name"] for part in answers[1][0]["parts"]] == ["file 1.png", "Bergen.pdf"]
    assert answers[1][1]["response"]["error"]["code"] == "unknown_tool"
    assert answers[2][0]["response"]["error"]["code"] == "response_truncated"


async def test_gemini_2_gets_its_media_behind_the_results() -> None:
    """What it refuses in a result it takes in a content of its own."""
    script = [
        Reply(calls=[ScriptedCall("", "picture", {"city": "Oslo"}), ScriptedCall("", "weather", {"city": "Oslo"})]),
        Reply("ok"),
    ]
    async with FakeProvider(script) as provider:
        with connect(provider) as client:
            contents = question()
            response = ask(client, contents, "gemini-2.5-flash")
            async with ToolBatch(gemini.calls(response), tools=TOOLS) as batch:
                batch.start_all()
            nested, behind = list(contents), list(contents)
            gemini.extend(nested, response, batch.result)
            gemini.extend(behind, response, batch.result, media="after")
            text = refused(client, nested, "gemini-2.5-flash")
            assert text == "Multimodal function responses are not supported for this model"
            assert ask(client, behind, "gemini-2.5-flash").text == "ok"
    data = [part["inlineData"] for part in provider.requests[-1].body["contents"][3]["parts"][1:]]
    assert data == [
        {"mime_type": "image/png", "data": "iVBORw=="},
        {"mime_type": "application/pdf", "data": "JVBERg=="},
    ]


def answered(response: types.GenerateContentResponse, *answers: Json) -> list[Any]:
    """A conversation with the model's own content and these results."""
    candidates = response.candidates or []
    return [*question(), candidates[0].content, {"role": "user", "parts": list(answers)}]


def result(call_id: str | None = None, **more: Any) -> Json:
    facts: Json = {"name": "weather", "response": {"output": "4"}, **more}
    return {"functionResponse": facts if call_id is None else {"id": call_id, **facts}}


ALL = [result("call_1"), result(), result()]
REFUSED: dict[str, tuple[list[Json], str]] = {
    "too few": (ALL[:2], NUMBER),
    "too many": ([*ALL, result()], NUMBER),
    "text beside": ([*ALL, {"text": "Well?"}], NUMBER),
    "another id": (
        [result("call_9"), result(), result()],
        "The function response id `call_9` does not match a function call of the function call turn.",
    ),
    "no name": (
        [*ALL[:2], result(name="")],
        "* GenerateContentRequest.contents[2].parts[2].function_response.name: Name cannot be empty.",
    ),
    "a reference": (
        [*ALL[:2], result(response={"$ref": "#/A"})],
        "The referenced name `#/A` in function_response.response does not match to a display_name in the function_response.parts.",
    ),
}


@pytest.mark.parametrize(("answers", "message"), REFUSED.values(), ids=REFUSED)
def test_broken_answers_are_bad_requests_with_the_providers_body(
    provider: FakeProvider, client: genai.Client, answers: list[Json], message: str
) -> None:
    """The client raises what it raises for the provider, and the record has why."""
    first = ask(client, question())
    assert refused(client, answered(first, *answers)) == message
    assert [request.error for request in provider.rejected] == [message]


def test_results_behind_other_words_are_refused(client: genai.Client) -> None:
    """A user's turn between a call and its results breaks the turn, and a call without any answer does."""
    first = ask(client, question())
    candidates = first.candidates or []
    turn: list[Any] = [*question(), candidates[0].content]
    assert (
        refused(client, turn) == "Please ensure that multiturn requests ends with a user role or a function response."
    )
    assert refused(client, [*turn, *question(), {"role": "user", "parts": ALL}]) == NUMBER


def test_signatures_must_come_back_as_they_were(client: genai.Client) -> None:
    """The third generation wants the first call's signature, and the one of that very call."""
    first = ask(client, question())
    contents = answered(first, *ALL)
    content = contents[1]
    assert content.parts[2].thought_signature is not None
    signature, content.parts[2].thought_signature = content.parts[2].thought_signature, None
    assert refused(client, contents).startswith("Function call is missing a thought_signature in functionCall parts.")
    content.parts[2].thought_signature = signature
    content.parts[2].function_call.args = {"city": "Rome"}
    assert refused(client, contents) == "Thought signature is not valid"


def test_a_stream_brings_each_call_whole(client: genai.Client) -> None:
    """Text comes in pieces; parallel calls come one an event, without an index (LANES 4)."""
    chunks = list(client.models.generate_content_stream(model="gemini-3-pro", contents=question()))
    parts = [
        part
        for chunk in chunks
        for candidate in chunk.candidates or []
        for part in (candidate.content or types.Content()).parts or []
    ]
    assert "".join(part.text for part in parts if part.text and not part.thought) == "Let me look."
    assert [part.function_call.args for part in parts if part.function_call] == [
        {"city": "Oslo"},
        {"city": "Oslo"},
        {"city": "Rome"},
    ]
    reasons = [candidate.finish_reason for chunk in chunks for candidate in chunk.candidates or []]
    assert reasons == [None] * (len(chunks) - 1) + [types.FinishReason.STOP]


async def test_an_asynchronous_stream_put_together_is_a_content(provider: FakeProvider) -> None:
    """The parts of a stream, in their order, are the model's content, which a batch can be made of."""
    with connect(provider) as client:
        parts: list[Any] = []
        async for chunk in await client.aio.models.generate_content_stream(model="gemini-3-pro", contents=question()):
            for candidate in chunk.candidates or []:
                parts += (candidate.content or types.Content()).parts or []
        content = types.Content(role="model", parts=parts)
        contents = question()
        async with ToolBatch(gemini.calls(content), tools=TOOLS) as batch:
            batch.start_all()
        gemini.extend(contents, content, batch.result)
        assert (await client.aio.models.generate_content(model="gemini-3-pro", contents=contents)).text == "4 degrees."
        await client.aio.aclose()
    assert provider.rejected == []


def test_vertex_ai_is_spoken_too() -> None:
    """Its client asks under another path, and names the model there as well."""
    with FakeProvider([Reply("ok")]) as provider:
        options = types.HttpOptions(base_url=provider.gemini_base_url)
        with genai.Client(vertexai=True, api_key="test", http_options=options) as client:
            assert ask(client, question(), "gemini-2.5-flash").model_version == "gemini-2.5-flash"
    assert provider.requests[0].path.endswith("/models/gemini-2.5-flash:generateContent")


def test_cut_and_hosted_replies_go_through_as_they_are() -> None:
    """What the script says is what the client gets: a finish reason, hosted parts, broken arguments as none."""
    hosted = {"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}}
    cut = ScriptedCall("a", "f", '{"x": "cut')
    with (
        FakeProvider([Reply(calls=[cut], stop="MAX_TOKENS", blocks=[hosted])]) as provider,
        connect(provider) as client,
    ):
        response = ask(client, question())
    (candidate,) = response.candidates or []
    assert candidate.finish_reason == types.FinishReason.MAX_TOKENS
    assert candidate.content is not None
    parts = candidate.content.parts or []
    assert parts[0].tool_call is not None
    assert parts[1].function_call == types.FunctionCall(id="a", name="f")


def test_an_empty_reply_is_an_empty_text() -> None:
    """A model may say nothing at all."""
    with FakeProvider([Reply(), Reply()]) as provider, connect(provider) as client:
        assert ask(client, question()).text == ""
        (chunk,) = client.models.generate_content_stream(model="m", contents=question())
        assert chunk.text == ""


def test_a_script_that_the_lane_can_not_play() -> None:
    """A custom call is a fault of the script, and the end of the script is one too."""
    with (
        FakeProvider([Reply(calls=[ScriptedCall("a", "sql", "select 1", custom=True)])]) as provider,
        connect(provider) as client,
    ):
        for problem in ("has no custom tool calls", "script has ended"):
            with pytest.raises(errors.ServerError, match=problem) as failure:
                ask(client, question())
            assert (failure.value.code, failure.value.status) == (500, "INTERNAL")
    assert provider.rejected == []


def test_a_function_sees_where_it_was_asked() -> None:
    """A script that is a function gets the path, and with it the model."""

    def echo(request: RecordedRequest) -> Reply:
        return Reply(f"{request.path} {request.stream}")

    with FakeProvider(echo) as provider, connect(provider) as client:
        assert str(ask(client, question(), "m").text).endswith("/models/m:generateContent False")
        streamed = client.models.generate_content_stream(model="m", contents=question())
        assert "".join(str(chunk.text) for chunk in streamed).endswith("/models/m:streamGenerateContent True")


def test_refusals_that_no_rule_owns() -> None:
    """Keys, routes and bodies are refused in this API's shape."""
    with FakeProvider([Reply("ok")]) as provider:
        url = f"{provider.url}/v1beta/models/m:generateContent"
        key = {"x-goog-api-key": "test"}
        keyless = httpx.post(url, json={})
        other = httpx.get(f"{provider.url}/v1beta/models", headers=key)
        broken = httpx.post(url, content=b"{", headers=key)
        in_query = httpx.post(f"{url}?key=test", json={"contents": [{"parts": [{"text": "Hi."}]}]})
    assert [keyless.status_code, other.status_code, broken.status_code, in_query.status_code] == [403, 404, 400, 200]
    statuses = [answer.json()["error"]["status"] for answer in (keyless, other, broken)]
    assert statuses == ["PERMISSION_DENIED", "NOT_FOUND", "INVALID_ARGUMENT"]
    assert broken.json()["error"]["message"].startswith("Invalid JSON payload received.")
