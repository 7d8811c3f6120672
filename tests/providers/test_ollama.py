"""Ollama: calls without ids, told apart by name and order, and messages whose empty fields vanish on their way."""

import base64
import copy
import json
from typing import Any

import httpx
import ollama as sdk
import pytest

from tests.providers.outcomes import PNG, succeeded
from tests.providers.support import settled
from tests.providers.wires import OLLAMA, chat_call, mistral_chat, ollama_call, ollama_chat, ollama_refused
from toolbatch import ToolBatch
from toolbatch.core import Document, Image, InvalidInputError, InvalidTypeError, Json, Text, Url
from toolbatch.providers import ollama

USER = OLLAMA.user
PICTURE = Image.of(PNG, "image/png")


def test_ids_are_ours_and_stay_inside() -> None:
    """Three calls of one tool are three calls; no id is on the wire, where none was (FIELD 55, 61)."""
    response = ollama_chat(*[ollama_call(None, "get_weather", {"city": city}) for city in ("Oslo", "Rome", "Oslo")])
    calls = ollama.calls(response)
    assert len({call.id for call in calls}) == 3
    assert [call.wire_id for call in calls] == [""] * 3
    assert ollama.calls(copy.deepcopy(response)) == calls  # stable on replay
    turn = OLLAMA.extended(response, succeeded(calls, "4", "20", "5"))
    assert turn[1]["tool_calls"] == response["message"]["tool_calls"]
    assert turn[2:] == [{"role": "tool", "tool_name": "get_weather", "content": text} for text in ("4", "20", "5")]
    later = ollama.calls({**response, "created_at": "2026-11-30T00:00:01Z"})
    assert not {call.id for call in later} & {call.id for call in calls}


def test_ids_on_the_wire_are_kept() -> None:
    """A server that sends ids gets them back in both places; one that repeats them gets ours for the second (P6)."""
    response = ollama_chat(ollama_call("call_1"), ollama_call("call_1"), ollama_call(None))
    calls = ollama.calls(response)
    assert [call.wire_id for call in calls] == [None, "call_1", ""]
    turn = OLLAMA.extended(response)
    assert [call.get("id") for call in turn[1]["tool_calls"]] == ["call_1", calls[1].id, None]
    assert [result.get("tool_call_id") for result in turn[2:]] == ["call_1", calls[1].id, None]
    bare = ollama.results(settled(calls))
    assert [result.get("tool_call_id") for result in bare] == ["call_1", "call_1", None]
    # The SDK drops them, and is read like a server that has none.
    assert [call.wire_id for call in ollama.calls(OLLAMA.sdk(response))] == [""] * 3


def test_the_turn() -> None:
    """Thinking goes back, arguments are objects, and what the server says of a call's place stays."""
    call = {"function": {"index": 1, "name": "f", "arguments": {"x": 1}}}
    turn = OLLAMA.extended(ollama_chat(call, content="Let me look.", thinking="Hm."))
    assert turn[1] == {"role": "assistant", "content": "Let me look.", "thinking": "Hm.", "tool_calls": [call]}
    (text,) = ollama.calls(ollama_chat(ollama_call(None, "f", '{"x": 1}')))
    assert text.arguments == {"x": 1}
    turn = OLLAMA.extended(ollama_chat(ollama_call(None, "f", '{"x": 1}')))
    assert turn[1]["tool_calls"][0]["function"]["arguments"] == {"x": 1}  # "cannot unmarshal string" (LANES 8)


@pytest.mark.parametrize("value", ["", " \n", [Text("")]])
def test_an_empty_result_does_not_vanish(value: Any) -> None:
    """The SDK drops an empty `content`; what is written is never blank."""
    response = ollama_chat(ollama_call())
    turn = OLLAMA.extended(response, succeeded(ollama.calls(response), value))
    assert turn[2]["content"] == "[the result is empty]"
    assert ollama_refused(turn) is None


def test_images_travel_on_their_result() -> None:
    """As base64, with a line each in the text, so that the model knows their places; what the server can't read is said (FIELD 113)."""
    parts = [
        PICTURE,
        Text("and"),
        Image.of(b"GIF8", "image/gif"),
        Image(Url("https://example.org/a.png")),
        PICTURE,
        Json([]),
    ]
    response = ollama_chat(ollama_call(), ollama_call())
    turn = OLLAMA.extended(response, succeeded(ollama.calls(response), parts, Document.of(b"hello", "text/plain", "a")))
    lines = ["[image: image/png, 8 bytes]", "and", "[image: image/gif, 4 bytes]", "[image: https://example.org/a.png]"]
    assert turn[2]["content"].splitlines() == [*lines, "[image: image/png, 8 bytes]", "[]"]
    assert turn[2]["images"] == [base64.b64encode(PNG).decode()] * 2
    assert turn[3] == {"role": "tool", "tool_name": "lookup", "content": '[document "a": text/plain, 5 bytes]\nhello'}
    assert ollama_refused(turn) is None


@pytest.mark.parametrize(
    ("reason", "code"),
    [("stop", None), (None, None), ("tool_calls", None), ("length", "response_truncated"), (3, None)],
)
def test_cut_off(reason: Any, code: str | None) -> None:
    """`length` announces calls that may not run (P6); `stop` is what the server says of calls (LANES 14.5)."""
    (call,) = ollama.calls(ollama_chat(ollama_call(), done_reason=reason))
    assert (call.problem.code if call.problem else None) == code


def test_the_compatible_endpoint_is_another_lane() -> None:
    """What `/v1` sends is Chat Completions, whose arguments are text: it is refused here, by name."""
    with pytest.raises(InvalidTypeError, match="response must be a ChatResponse"):
        ollama.calls(mistral_chat(chat_call()))


def test_the_number_of_results_tells_whether_a_turn_is_answered() -> None:
    """Without ids there is nothing else: the call that lacks its result is named by its tool (FIELD 56)."""
    response = ollama_chat(ollama_call(None, "f"), ollama_call(None, "g"))
    messages = OLLAMA.extended(response)
    ollama.extend(list(messages), response, settled(ollama.calls(response)))
    messages.pop()
    with pytest.raises(InvalidInputError, match=r"\['g'\]"):
        ollama.extend(messages, response, settled(ollama.calls(response)))


class Server:
    """Answers the real client, turn by turn, as a server that matches by name and order reads it."""

    def __init__(self, *responses: Any) -> None:
        self.responses = list(responses)
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(json.loads(request.content))
        return httpx.Response(200, json=self.responses.pop(0))


async def test_the_real_client_takes_the_turn_back() -> None:
    """A whole loop through the SDK, which drops ids and empty fields: names, order, images and texts arrive."""
    calls = [ollama_call("x", "photo", {}), ollama_call("y", "hang", {}), ollama_call("z", "silent", {})]
    server = Server(ollama_chat(*calls, thinking="Hm."), ollama_chat(tool_calls=None, content="Done."))
    client = sdk.Client(transport=httpx.MockTransport(server))
    tools: Any = {"photo": lambda: PICTURE, "silent": lambda: ""}
    messages: list[Any] = [USER]
    while True:
        response = client.chat("m", messages=messages)
        announced = ollama.calls(response)
        batch = ToolBatch(announced, tools=tools, timeout=5)
        async with batch:
            batch.start_all()
        ollama.extend(messages, response, batch.result)
        if not announced:
            break
    client._client.close()
    sent = server.requests[1]["messages"]
    assert [message.get("tool_name") for message in sent] == [None, None, "photo", "hang", "silent"]
    assert all(message["content"].strip() for message in sent[2:])
    assert sent[1]["thinking"] == "Hm."
    assert sent[2]["images"] == [base64.b64encode(PNG).decode()]
    assert json.loads(sent[3]["content"])["error"]["code"] == "unknown_tool"
    assert messages[-1] == {"role": "assistant", "content": "Done."}
