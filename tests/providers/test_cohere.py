"""Cohere: the plan that travels back, documents that can be cited, and images for those that see."""

import json
from typing import Any

import cohere as sdk
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.providers.outcomes import PNG, ended, outcomes, succeeded
from tests.providers.support import settled
from tests.providers.wires import COHERE, chat_call, cohere_chat, cohere_refused
from toolbatch import ToolBatch
from toolbatch.core import Document, Image, InvalidInputError, Json, Text, Url
from toolbatch.providers import cohere

USER = COHERE.user
PICTURE = Image.of(PNG, "image/png")
PAGE = Document.of(b"hello", "text/plain", "a.txt")


def shown(value: Any, **how: Any) -> Any:
    """The content of the one result whose tool returned `value`."""
    (result, *_) = cohere.results(succeeded(cohere.calls(cohere_chat(chat_call())), value), **how)
    return result["content"]


def document(**data: Any) -> dict[str, Any]:
    return {"type": "document", "document": {"data": data}}


def test_the_plan_travels_back() -> None:
    """The model reads its plan on its next step; a call goes back with what the schema has, whatever came (LANES 14.12)."""
    thinking = {"type": "thinking", "thinking": "Hm."}
    calls = [
        chat_call("a", "f", '{"x":1}'),
        {"id": "b", "type": "function"},
        {"id": "c", "function": {"name": "g"}, "new": 1},
    ]
    turn = COHERE.extended(cohere_chat(*calls, content=[thinking]))
    written = [
        chat_call("a", "f", '{"x":1}'),
        chat_call("b", "unnamed_tool", "{}"),
        chat_call("c", "g", "{}"),
    ]
    assert turn[1] == {"role": "assistant", "tool_plan": "I will look.", "content": [thinking], "tool_calls": written}
    assert cohere_refused(turn) is None


def test_calls_without_name_or_arguments() -> None:
    """Both are optional here: no arguments are none, and no name is a call that is answered and not run (P6)."""
    nameless, bare = cohere.calls(cohere_chat({"id": "a"}, {"id": "b", "function": {"name": "f"}}))
    assert nameless.problem is not None
    assert nameless.problem.code == "unknown_tool"
    assert (bare.name, bare.arguments, bare.problem) == ("f", {}, None)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("TOOL_CALL", None),
        ("COMPLETE", None),
        (None, None),
        (7, None),
        ("MAX_TOKENS", "response_truncated"),
        ("STOP_SEQUENCE", "response_truncated"),
        ("ERROR", "response_truncated"),
        ("TIMEOUT", "response_truncated"),
        ("USER_CANCEL", "not_requested"),
    ],
)
def test_the_finish_reason_decides_what_may_run(reason: Any, code: str | None) -> None:
    """Only a response that ended by asking for tools, or says nothing, has calls that run (P6)."""
    for form in COHERE.forms(cohere_chat(chat_call(), finish_reason=reason)):
        (call,) = cohere.calls(form)
        assert (call.problem.code if call.problem else None) == code


def test_results_are_text_by_default() -> None:
    """The encoder's own text, to the byte; a blank one says that it is empty, since no content may be."""
    assert shown({"a": 1}) == '{"a":1}'
    assert shown("sunny") == "sunny"
    assert shown("") == shown([Text(" ")]) == "[the result is empty]"
    assert shown([Text("Look:"), PICTURE]) == "Look:\n[image: image/png, 8 bytes]"


def test_a_document_is_a_document() -> None:
    """What a tool calls a document can be cited, with its name; one that is no text is said in text."""
    assert shown([Text("Found:"), PAGE]) == [{"type": "text", "text": "Found:"}, document(title="a.txt", text="hello")]
    assert shown(Document.of(b"{}", "application/json")) == [document(text="{}")]
    assert shown(Document.of(b"%PDF", "application/pdf", "a.pdf")) == '[document "a.pdf": application/pdf, 4 bytes]'


def test_objects_are_documents_on_demand() -> None:
    """Each object is one document, alone, in an array or as a part; all else stays text."""
    assert shown({"a": 1}, documents=True) == [document(a=1)]
    assert shown([{"a": 1}, {"b": 2}], documents=True) == [document(a=1), document(b=2)]
    assert shown([Json({"a": 1}), Json([1])], documents=True) == [document(a=1), {"type": "text", "text": "[1]"}]
    for value in ("sunny", [], [1, {}], 7, None, "", {"n": 2**53 + 1}):
        assert isinstance(shown(value, documents=True), str)


def test_a_failure_is_never_a_document() -> None:
    """It is read, not cited (P4)."""
    calls = cohere.calls(cohere_chat(chat_call("a"), chat_call("b")))
    results = cohere.results(ended(calls, [("error", "no"), ("closed", None)]), documents=True)
    assert [json.loads(result["content"])["error"]["code"] for result in results] == ["tool_error", "timeout"]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_images_follow_the_whole_run(position: int) -> None:
    """Wherever the image stands, the results stay together, and it comes behind them under its owner's name (FIELD 111, 112)."""
    response = cohere_chat(chat_call("a"), chat_call("b"), chat_call("c"))
    given = [[Text("Look:"), PICTURE] if n == position else "text" for n in range(3)]
    snapshot = succeeded(cohere.calls(response), *given)
    turn: list[Any] = [USER]
    cohere.extend(turn, response, snapshot, media="after")
    assert [message["role"] for message in turn] == ["user", "assistant", "tool", "tool", "tool", "user"]
    whose, picture = turn[-1]["content"]
    assert "abc"[position] in whose["text"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert cohere_refused(turn) is None
    assert cohere.results(snapshot, media="after") == turn[2:]
    assert len(cohere.results(snapshot)) == 3


def test_images_that_no_one_can_fetch_stay_text() -> None:
    """An address on the web is sent as it is; another is said."""
    parts = [Image(Url("https://example.org/a.png")), Image(Url("s3://bucket/a.png")), Image.of(b"II", "image/tiff")]
    calls = cohere.calls(cohere_chat(chat_call()))
    carried = cohere.results(succeeded(calls, parts), media="after")[-1]["content"]
    assert carried[1:] == [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]


@settings(deadline=None)
@given(ends=st.lists(outcomes, min_size=3, max_size=3))
def test_every_way_obeys_the_rules(ends: list[Any]) -> None:
    """Any outcomes, as documents and with images behind: the judges take the turn (P5)."""
    response = cohere_chat(*[chat_call(call_id) for call_id in ("a", "", "a")])
    turn: list[Any] = [USER]
    cohere.extend(turn, response, ended(cohere.calls(response), ends), documents=True, media="after")
    assert cohere_refused(turn) is None
    json.dumps(turn, allow_nan=False)


@pytest.mark.parametrize("media", ["nested", "", None, []])
def test_no_such_media(media: Any) -> None:
    """Another way than the lane's two is refused, and the list stays as it was."""
    response, messages = cohere_chat(chat_call()), [USER]
    snapshot = settled(cohere.calls(response))
    with pytest.raises(InvalidInputError, match="media must be one of text, after"):
        cohere.extend(messages, response, snapshot, media=media)
    with pytest.raises(InvalidInputError, match="media"):
        cohere.results(snapshot, media=media)
    assert messages == [USER]


def test_a_final_answer_keeps_its_citations() -> None:
    """A turn without calls goes back with what it cites; one that has only a plan does not go, since it says nothing."""
    source = {"type": "tool", "id": "a:0", "tool_output": {"a": 1}}
    citation = {"start": 0, "end": 5, "text": "Hello", "sources": [source], "type": "TEXT_CONTENT"}
    content = [{"type": "text", "text": "Hello."}]
    wire = cohere_chat(finish_reason="COMPLETE", content=content, citations=[citation], tool_plan=None)
    made = COHERE.sdk(wire)
    for form in (wire, made):
        assert COHERE.extended(form)[1] == {"role": "assistant", "content": content, "citations": [citation]}
    assert COHERE.extended(cohere_chat()) == [USER]


def test_bare_results_mirror_the_provider() -> None:
    """Without `extend` the message has the provider's ids, so the results have them too (P6)."""
    calls = cohere.calls(cohere_chat(chat_call("a"), chat_call("a"), chat_call(None)))
    assert [result["tool_call_id"] for result in cohere.results(settled(calls))] == ["a", "a", calls[2].id]


class Server:
    """Answers the real client, turn by turn, and refuses what Command A would refuse."""

    def __init__(self, *responses: Any) -> None:
        self.responses = list(responses)
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.requests.append(body)
        refused = cohere_refused(body["messages"])
        if refused is not None:
            return httpx.Response(400, json={"message": str(refused)})
        return httpx.Response(200, json=self.responses.pop(0))


async def test_the_real_client_takes_the_turn_back() -> None:
    """A whole loop through the SDK: plan, repeated ids, a failure and citable documents arrive as they were written."""
    first = cohere_chat(chat_call("a", "search", '{"q": "x"}'), chat_call("a", "hang"))
    last = cohere_chat(finish_reason="COMPLETE", tool_plan=None, content=[{"type": "text", "text": "Done."}])
    server = Server(first, last)
    with httpx.Client(transport=httpx.MockTransport(server)) as http:
        client = sdk.ClientV2(api_key="none", httpx_client=http)
        messages: list[Any] = [USER]
        while True:
            response = client.chat(model="command-a", messages=messages)
            calls = cohere.calls(response)
            batch = ToolBatch(calls, tools={"search": lambda q: [{"title": q}, {"title": "y"}]}, timeout=5)
            async with batch:
                batch.start_all()
            cohere.extend(messages, response, batch.result, documents=True)
            if not calls:
                break
    _, plan, found, failed = server.requests[1]["messages"]
    assert plan["tool_plan"] == "I will look."
    assert found["content"] == [document(title="x"), document(title="y")]
    assert json.loads(failed["content"])["error"]["code"] == "unknown_tool"
    assert found["tool_call_id"] == "a" != failed["tool_call_id"]
