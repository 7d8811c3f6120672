"""Arguments that strict servers refuse become an object, by a step of their own, and the original is kept (LANES 14.3)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transcript.kit import frozen
from tests.transcript.test_law import calls
from toolbatch import transcript
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.transcript import LaneName

CUT = '{"path":"a.py","body":"import o'
UNREADABLE = {"INVALID_JSON": CUT}
TEXT = json.dumps(UNREADABLE, separators=(",", ":"))


def one(lane: LaneName, arguments: Any) -> Any:
    """One message with one call that has these arguments."""
    made: dict[LaneName, Any] = {
        "openai_chat": {
            "role": "assistant",
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": arguments}}],
        },
        "openai_responses": {"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments},
        "anthropic": {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "f", "input": arguments}],
        },
        "bedrock": {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": arguments}}]},
        "gemini": {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "f", "args": arguments}}]},
        "langchain": {"type": "ai", "content": "", "tool_calls": [{"id": "a", "name": "f", "args": arguments}]},
    }
    return made[lane]


@pytest.mark.parametrize(("lane", "given", "becomes"), [
    ("openai_chat", CUT, TEXT),
    ("openai_chat", "", "{}"),
    ("openai_chat", None, "{}"),
    ("openai_chat", "[1]", '{"INVALID_JSON":"[1]"}'),
    ("openai_chat", '{"x":NaN}', '{"INVALID_JSON":"{\\"x\\":NaN}"}'),
    ("openai_chat", {"x": 1}, '{"x":1}'),
    ("openai_responses", CUT, TEXT),
    ("anthropic", CUT, UNREADABLE),
    ("anthropic", '{"x":1}', {"x": 1}),
    ("anthropic", None, {}),
    ("anthropic", [1], {"INVALID_JSON": "[1]"}),
    ("bedrock", CUT, UNREADABLE),
    ("gemini", CUT, UNREADABLE),
    ("langchain", CUT, UNREADABLE),
])  # fmt: skip
def test_unusable_arguments_become_an_object(lane: LaneName, given: Any, becomes: Any) -> None:
    """Each lane gets what it carries, text or an object; the original is in the report, and the input is as it was."""
    listed = [one(lane, given)]
    before = frozen(listed)
    view = transcript.repair_arguments(listed, lane)
    assert view.messages == [one(lane, becomes)]
    assert [(repair.call_id, repair.position, repair.original) for repair in view.repairs] == [("a", 0, given)]
    assert "messages[0]: the arguments of a are no JSON object" in view.repairs[0].text
    assert listed == before
    assert transcript.repair_arguments(view.messages, lane).messages is view.messages


@pytest.mark.parametrize(("lane", "arguments"), [
    ("openai_chat", '{ "x" : 1 }'), ("openai_responses", "{}"), ("anthropic", {"x": 1}), ("bedrock", {}), ("gemini", None),
    ("langchain", {"x": [1]}),
])  # fmt: skip
def test_usable_arguments_stay(lane: LaneName, arguments: Any) -> None:
    """To the byte, and as the same list."""
    listed = [one(lane, arguments)]
    assert transcript.repair_arguments(listed, lane).messages is listed


def test_free_text_and_hosted_calls_stay() -> None:
    """A custom call's input is no JSON by design; a server's call is the server's (P3)."""
    custom = [
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "select"}}]}
    ]
    assert transcript.repair_arguments(custom, "openai_chat").messages is custom
    hosted = [
        {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{"},
        {"type": "custom_tool_call", "input": "{"},
    ]
    assert transcript.repair_arguments(hosted, "openai_responses").messages is hosted
    server = [
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": None}]}
    ]
    assert transcript.repair_arguments(server, "anthropic").messages is server


def test_langchains_unparsed_calls_and_legacy_calls_are_read() -> None:
    """Both are sent as calls, so both are refused with cut arguments (LANES 10, 14.13)."""
    message = {
        "type": "ai",
        "content": "",
        "tool_calls": [],
        "invalid_tool_calls": [{"id": "a", "name": "f", "args": CUT}],
    }
    (mended,) = transcript.repair_arguments([message], "langchain").messages
    assert mended["invalid_tool_calls"] == [{"id": "a", "name": "f", "args": TEXT}]
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": CUT}}
    (mended,) = transcript.repair_arguments([legacy], "openai_chat").messages
    assert mended["function_call"] == {"name": "f", "arguments": TEXT}


def test_the_law_does_not_do_it() -> None:
    """`repair` leaves the text of a cut call byte for byte (case 14)."""
    message = one("openai_chat", CUT)
    assert transcript.repair([message], "openai_chat").messages[0] is message


def test_what_does_not_change_keeps_its_identity() -> None:
    """Other messages, and other calls of the same message, are the same objects (L4)."""
    both = calls("a", "b")
    both["tool_calls"][0]["function"] = {"name": "f", "arguments": CUT}
    listed = [calls("z"), both]
    view = transcript.repair_arguments(listed, "openai_chat").messages
    assert view[0] is listed[0]
    assert view[1]["tool_calls"][1] is both["tool_calls"][1]


@settings(deadline=None)
@given(text=st.text(st.characters(), max_size=12))
def test_any_text_becomes_an_object(text: str) -> None:
    """Whatever a model wrote, lone surrogates too: afterwards it is an object's text, in strict JSON."""
    (mended,) = transcript.repair_arguments([one("openai_chat", text)], "openai_chat").messages
    arguments = mended["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(arguments), dict)
    arguments.encode()


def test_mistakes_are_named() -> None:
    """As in `check` and `repair`."""
    with pytest.raises(InvalidInputError, match="lane must be one of"):
        transcript.repair_arguments([], "chat")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="messages must be a list"):
        transcript.repair_arguments(None, "openai_chat")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"messages\[0\] must be a mapping"):
        transcript.repair_arguments(["x"], "openai_chat")
