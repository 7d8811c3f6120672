"""Mistral: nine letters, entries of conversations, and media that has nowhere else to go."""

import copy
import json
import re
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mistral_common.exceptions import MistralCommonException
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistralai.client import Mistral
from mistralai.client.models import (
    AssistantMessage,
    ChatCompletionResponse,
    ConversationResponse,
    FunctionResultEntry,
    TextChunk,
    ThinkChunk,
)

from tests.providers.outcomes import PNG, ended, outcomes, succeeded
from tests.providers.support import settled
from tests.providers.test_properties import ids
from tests.providers.wires import (
    ENTRIES,
    MISTRAL,
    chat_call,
    conversation,
    entries_refused,
    entry,
    mistral_chat,
    mistral_refused,
)
from toolbatch import ToolBatch
from toolbatch.core import Document, Image, InvalidInputError, InvalidTypeError, Text, ToolCall, Url
from toolbatch.providers import mistral

USER = MISTRAL.user
NINE = re.compile("[a-zA-Z0-9]{9}")
PICTURE = Image.of(PNG, "image/png")


def test_ids_of_nine_stay_and_all_others_become_nine() -> None:
    """The mapping is the same on both sides and each time; theirs is kept (P6, LANES 6)."""
    wire_ids = ["abcdefghi", "null", None, "call_search", "abcdefghi", "functions.f:0", "a-cdefghi", "äbcdefghi"]
    response = mistral_chat(*[chat_call(call_id) for call_id in wire_ids])
    calls = mistral.calls(response)
    assert all(NINE.fullmatch(call.id) for call in calls)
    assert len({call.id for call in calls}) == len(calls)
    assert [call.wire_id for call in calls] == [None, "null", "", *wire_ids[3:]]
    turn = MISTRAL.extended(response)
    assert [call["id"] for call in turn[1]["tool_calls"]] == [call.id for call in calls]
    assert [result["tool_call_id"] for result in turn[2:]] == [call.id for call in calls]
    assert MISTRAL.extended(copy.deepcopy(response)) == turn


def test_the_sdks_null_is_no_id() -> None:
    """An absent id is `"null"` in the SDK's object: two such calls stay two (LANES 14.6)."""
    wire = mistral_chat(chat_call("x"), chat_call("x"))
    for call in wire["choices"][0]["message"]["tool_calls"]:
        del call["id"]
    made = MISTRAL.sdk(wire)
    assert [call.id for call in made.choices[0].message.tool_calls] == ["null", "null"]
    turn = MISTRAL.extended(made)
    assert len({call["id"] for call in turn[1]["tool_calls"]}) == 2
    assert mistral_refused(turn) is None


@settings(deadline=None)
@given(wire_ids=st.lists(ids, min_size=1, max_size=8))
def test_every_tokenizer_takes_any_ids(wire_ids: list[Any]) -> None:
    """Whatever ids come, v3 to v15 take the turn, and no two calls share one (P6)."""
    response = mistral_chat(*[chat_call(call_id) for call_id in wire_ids])
    assert mistral_refused(MISTRAL.extended(response)) is None


def test_bare_results_mirror_the_provider() -> None:
    """Without `extend` the message has the provider's ids, so the results have them too; and the tool's name."""
    calls = mistral.calls(mistral_chat(chat_call("call_search"), chat_call("call_search", "g"), chat_call("abcdefghi")))
    results = mistral.results(settled(calls))
    assert [result["tool_call_id"] for result in results] == ["call_search", "call_search", "abcdefghi"]
    assert [result["name"] for result in results] == ["lookup", "g", "lookup"]


@pytest.mark.parametrize("reason", ["length", "model_length", "error"])
def test_cut_off(reason: str) -> None:
    """A response that was cut off announces calls that may not run (P6)."""
    (call,) = mistral.calls(mistral_chat(chat_call(), finish_reason=reason))
    assert call.problem is not None
    assert call.problem.code == "response_truncated"
    assert mistral.calls(mistral_chat(chat_call(), finish_reason="stop"))[0].problem is None  # LANES 14.5


def test_what_travels_back() -> None:
    """Content with its thinking goes back; arguments that came as an object go back as text; an empty turn does not go."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    text = {"type": "text", "text": "Let me look."}
    response = mistral_chat(chat_call("abcdefghi", "f", {"x": 1}), content=[thinking, text], prefix=False)
    turn = MISTRAL.extended(response)
    function = {"name": "f", "arguments": '{"x":1}'}
    calls = [{"id": "abcdefghi", "type": "function", "function": function}]
    assert turn[1] == {"role": "assistant", "content": [thinking, text], "tool_calls": calls}
    assert mistral_refused(turn, ()) is None  # the SDK's types; mistral-common has another form of thinking
    made = AssistantMessage(content=[ThinkChunk(thinking=[TextChunk(text="Hm.")]), TextChunk(text="Hello.")])
    assert MISTRAL.extended(made)[1]["content"] == [thinking, {"type": "text", "text": "Hello."}]
    for empty in (AssistantMessage(), mistral_chat(tool_calls=None, content=None), mistral_chat(content=" ")):
        assert MISTRAL.extended(empty) == [USER]


def test_every_result_is_text_by_default() -> None:
    """Nothing may follow the results, so what is no text is said in text: every tokenizer takes the turn (FIELD 111)."""
    response = mistral_chat(chat_call("abcdefghi"), chat_call("ihgfedcba"))
    snapshot = succeeded(mistral.calls(response), [Text("Look:"), PICTURE], "text")
    turn = MISTRAL.extended(response, snapshot)
    assert [message["role"] for message in turn] == ["user", "assistant", "tool", "tool"]
    assert turn[2]["content"] == "Look:\n[image: image/png, 8 bytes]"
    assert mistral_refused(turn) is None


@pytest.mark.parametrize("position", [0, 1, 2])
def test_nested_media_stay_in_their_result(position: int) -> None:
    """Wherever the picture stands, results stay together; v15 takes it, and older tokenizers say what they refuse (FIELD 112)."""
    response = mistral_chat(*[chat_call(call_id) for call_id in ("aaaaaaaaa", "bbbbbbbbb", "ccccccccc")])
    given = ["text"] * 3
    sound = Document.of(b"RIFF", "audio/wav")
    snapshot = succeeded(
        mistral.calls(response), *[[PICTURE, sound] if n == position else t for n, t in enumerate(given)]
    )
    turn: list[Any] = [USER]
    mistral.extend(turn, response, snapshot, media="nested")
    picture, recording = turn[2 + position]["content"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert recording == {"type": "input_audio", "input_audio": "UklGRg=="}
    assert mistral_refused(turn, (TokenizerVersion.v15,)) is None
    with pytest.raises(MistralCommonException, match="Unexpected content chunk types in tool message"):
        mistral_refused(turn, (TokenizerVersion.v13,))
    assert mistral.results(snapshot, media="nested") == turn[2:]


@settings(deadline=None)
@given(ends=st.lists(outcomes, min_size=3, max_size=3))
def test_nested_turns_obey_the_newest_rules(ends: list[Any]) -> None:
    """Any outcomes, nested as far as they go: v15 and the SDK take the turn (P5)."""
    response = mistral_chat(*[chat_call(call_id) for call_id in ("a", "b", "a")])
    turn: list[Any] = [USER]
    mistral.extend(turn, response, ended(mistral.calls(response), ends), media="nested")
    assert mistral_refused(turn, (TokenizerVersion.v15,)) is None
    json.dumps(turn, allow_nan=False)


def test_what_a_url_names_is_nested_only_where_it_can_be_fetched() -> None:
    """A picture or a recording on the web is; a bucket's, or another type, is not."""
    response = mistral_chat(chat_call("abcdefghi"))
    sound = Document(Url("https://example.org/a.mp3", "audio/mpeg"))
    parts = [
        Image(Url("https://example.org/a.png")),
        sound,
        Image(Url("s3://bucket/a.png")),
        Image.of(b"II", "image/tiff"),
    ]
    (result,) = mistral.results(succeeded(mistral.calls(response), parts), media="nested")
    assert [chunk["type"] for chunk in result["content"]] == ["image_url", "input_audio", "text", "text"]


@pytest.mark.parametrize("media", ["after", "", None, []])
def test_no_such_media(media: Any) -> None:
    """Another way than the lane's two is refused, and the list stays as it was."""
    response, messages = mistral_chat(chat_call()), [USER]
    snapshot = settled(mistral.calls(response))
    with pytest.raises(InvalidInputError, match="media must be one of text, nested"):
        mistral.extend(messages, response, snapshot, media=media)
    with pytest.raises(InvalidInputError, match="media"):
        mistral.results(snapshot, media=media)
    assert messages == [USER]


SEARCH = {
    "object": "entry",
    "type": "tool.execution",
    "id": "te_1",
    "name": "web_search",
    "arguments": "{}",
    "info": {},
}
HANDOFF: dict[str, Any] = {
    "object": "entry",
    "type": "agent.handoff",
    "id": "ah_1",
    **{f"{end}_agent_{what}": "x" for end in ("previous", "next") for what in ("id", "name")},
}
SAID = {"object": "entry", "type": "message.output", "id": "mo_1", "role": "assistant", "content": "Let me look."}


def test_a_conversations_entries() -> None:
    """`function.call` is answered by `function.result`; what the server ran is not; all goes back in its place (P3)."""
    response = conversation(SEARCH, SAID, entry("abcdefghi", "f", '{"x":1}'), HANDOFF, entry("call_2", "g", {"y": 2}))
    calls = mistral.calls(response)
    assert [(call.name, call.arguments) for call in calls] == [("f", {"x": 1}), ("g", {"y": 2})]
    for form in ENTRIES.forms(response):
        turn = ENTRIES.extended(form)
        assert turn[1:3] == [SEARCH, SAID]
        assert turn[4] == HANDOFF
        assert turn[3] == entry("abcdefghi", "f", '{"x":1}')
        assert turn[5] == entry(calls[1].id, "g", '{"y":2}')
        assert turn[6:] == [
            {"type": "function.result", "tool_call_id": "abcdefghi", "result": '{"position":0}'},
            {"type": "function.result", "tool_call_id": calls[1].id, "result": '{"position":1}'},
        ]
        assert entries_refused(turn) is None


def test_a_stored_conversation_gets_its_results_alone() -> None:
    """`conversations.append` takes what `results` gives, under the ids that the server knows."""
    calls = mistral.calls(conversation(entry("call_2", "g"), entry("abcdefghi", "f")))
    results = mistral.results(succeeded(calls, [Text("a"), PICTURE], ""), media="nested")
    assert [FunctionResultEntry.model_validate(result).tool_call_id for result in results] == ["call_2", "abcdefghi"]
    assert [result["result"] for result in results] == ["a\n[image: image/png, 8 bytes]", ""]


def test_a_servers_approval_is_no_call() -> None:
    """A pending `function.call` is the server's own tool, which waits for `tool_confirmations` (LANES 14.9)."""
    pending = entry("ppppppppp", "gmail_send", confirmation_status="pending")
    allowed = entry("abcdefghi", "f", confirmation_status="allowed")
    response = conversation(pending, allowed)
    assert [call.name for call in mistral.calls(response)] == ["f"]
    turn = ENTRIES.extended(response)
    assert turn[1:3] == [pending, allowed]
    assert len(turn) == 4
    messages = ENTRIES.extended(
        conversation(SAID), settled([]), turn
    )  # what is pending is no reason to refuse the next turn
    assert messages[-1] == SAID


def test_the_servers_clock_stays_out() -> None:
    """`created_at` is optional on input, and a `model_dump()` has a `datetime` there, which is no JSON."""
    now = datetime(2026, 11, 30, tzinfo=UTC).isoformat()
    wire = conversation({**SEARCH, "created_at": now, "completed_at": now}, entry("abcdefghi", created_at=now))
    first, *others = [ENTRIES.extended(form) for form in ENTRIES.forms(wire)]
    assert others == [first] * 4
    json.dumps(first)
    assert "_at" not in str(first)


def test_bare_entries() -> None:
    """The list of entries alone will do; a list of other things will not."""
    made = ConversationResponse.model_validate(conversation(entry("abcdefghi")))
    assert mistral.calls(made.outputs) == mistral.calls([entry("abcdefghi")])
    for stranger in ([1], [{"role": "user"}], {"outputs": ["x"]}):
        with pytest.raises(InvalidTypeError, match="response must be a ConversationResponse"):
            mistral.calls(stranger)


class Server:
    """Answers the real client, turn by turn, and refuses what Mistral would refuse."""

    def __init__(self, *responses: Any) -> None:
        self.responses = list(responses)
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.requests.append(body)
        try:
            mistral_refused(body["messages"])
        except MistralCommonException as error:
            return httpx2.Response(400, json={"object": "error", "message": str(error)})
        return httpx2.Response(200, json=self.responses.pop(0))


async def test_the_real_client_takes_the_turn_back() -> None:
    """A whole loop through the SDK, with ids that its own validator refuses: the second request is lawful."""
    first = mistral_chat(chat_call("functions.add:0", "add", '{"a": 1, "b": 2}'), chat_call("functions.add:0", "hang"))
    server = Server(first, mistral_chat(content="3", tool_calls=None, finish_reason="stop"))
    with httpx2.Client(transport=httpx2.MockTransport(server)) as http:
        client = Mistral(api_key="none", client=http)
        messages: list[Any] = [USER]
        while True:
            response = client.chat.complete(model="m", messages=messages)
            calls = mistral.calls(response)
            batch = ToolBatch(calls, tools={"add": lambda a, b: {"sum": a + b}}, timeout=5)
            async with batch:
                batch.start_all()
            mistral.extend(messages, response, batch.result)
            if not calls:
                break
    contents = [message["content"] for message in server.requests[1]["messages"]]
    assert contents[2] == '{"sum":3}'
    assert json.loads(contents[3])["error"]["code"] == "unknown_tool"
    assert messages[-1] == {"role": "assistant", "content": "3"}


def test_calls_of_two_turns_do_not_answer_each_other() -> None:
    """Ids that restart with each turn are told apart by their turn: a snapshot of another response is refused (FIELD 49)."""
    first, second = (mistral_chat(chat_call("lookup:0", name)) for name in ("lookup", "search"))
    with pytest.raises(InvalidInputError, match="another response"):
        mistral.extend([USER], second, settled(mistral.calls(first)))
    assert mistral.calls(first) != [ToolCall("lookup:0", "lookup", "{}")]


def test_the_sdks_word_for_no_id_gives_the_same_calls() -> None:
    """The snapshot of a response's calls answers its dump too, in which an id that is not there is not "null"."""
    wire = mistral_chat({"type": "function", "function": {"name": "f", "arguments": "{}"}})
    made = ChatCompletionResponse.model_validate(wire)
    assert made.choices[0].message.tool_calls[0].id == "null"  # type: ignore[index, union-attr]
    (ours,) = {call.id for form in (wire, made, made.model_dump()) for call in mistral.calls(form)}
    messages: list[Any] = []
    mistral.extend(messages, wire, settled(mistral.calls(made)))
    assert messages[1]["tool_call_id"] == ours
