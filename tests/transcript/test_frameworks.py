"""Objects of frameworks that are no part of this project's own environment: each test runs where its framework is installed."""

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transcript.test_law import FOLD
from tests.transcript.worlds import Writer, stories
from toolbatch import transcript
from toolbatch.core import InvalidTypeError
from toolbatch.ports import LATE_HEAD
from toolbatch.testing import FakeProvider, Reply
from toolbatch.transcript import INTERRUPTED_TEXT


def test_langchains_objects_are_repaired_to_langchains_objects() -> None:
    """A close is a ToolMessage, a fold a copy of the first one, and an untouched message the same object (L6)."""
    lc = pytest.importorskip("langchain_core.messages")
    calls = [{"name": "f", "args": {}, "id": i, "type": "tool_call"} for i in "ab"]
    listed = [
        lc.HumanMessage("Hi."),
        lc.AIMessage("", tool_calls=calls),
        lc.ToolMessage("1", tool_call_id="a"),
        lc.HumanMessage("So?"),
        lc.ToolMessage("2", tool_call_id="a"),
    ]
    view = transcript.repair(listed, "langchain").messages
    assert [message.type for message in view] == ["human", "ai", "tool", "tool", "human"]
    assert view[1] is listed[1]
    assert (view[2].content, view[2].tool_call_id) == (f"1{FOLD}2", "a")
    assert (view[3].content, view[3].status, view[3].name) == (INTERRUPTED_TEXT, "error", "f")
    assert transcript.repair(view, "langchain").messages is view
    news = transcript.repair(
        [*listed[:2], lc.ToolMessage("1", tool_call_id="a"), *listed[3:]], "langchain", sent=3
    ).messages
    assert isinstance(news[-1], lc.HumanMessage)
    assert news[-1].content == f"{LATE_HEAD}\n\nf (call a) returned:\n2"


def test_objects_of_nobody_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside an object that is not LangChain's, no message of LangChain's can be made: the error shows it."""

    class Message:
        type = "ai"
        content = ""
        tool_calls: tuple[Any, ...] = ({"name": "f", "args": {}, "id": "a"},)

    monkeypatch.delitem(sys.modules, "langchain_core.messages", raising=False)
    with pytest.raises(InvalidTypeError, match="neither a dict nor LangChain's"):
        transcript.repair([Message()], "langchain")


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_langgraph_takes_every_repaired_list(data: Any) -> None:
    """Its check of a chat's history finds no call without a ToolMessage (LANES 13)."""
    lc = pytest.importorskip("langchain_core.messages")
    langgraph = pytest.importorskip("langgraph.prebuilt.chat_agent_executor")
    broken = Writer().write("langchain", data.draw(stories("langchain")).broken)
    view = transcript.repair(broken, "langchain").messages
    made = {"human": lc.HumanMessage, "ai": lc.AIMessage, "tool": lc.ToolMessage}
    langgraph._validate_chat_history(
        [made[m["type"]](**{name: value for name, value in m.items() if name != "type"}) for m in view]
    )


def test_googles_objects_are_repaired_to_googles_objects() -> None:
    """A close is a Part in a Content, and the parts that were there are the same objects (L6)."""
    types = pytest.importorskip("google.genai.types")
    calls = [types.Part(function_call=types.FunctionCall(name="f", id=i, args={})) for i in ("c1", "c2")]
    answer = types.Part(function_response=types.FunctionResponse(name="f", id="c1", response={"output": 1}))
    listed = [
        types.Content(role="model", parts=[calls[0], types.Part(text="x"), calls[1]]),
        types.Content(role="user", parts=[types.Part(text="so?")]),
        types.Content(role="user", parts=[answer]),
    ]
    view = transcript.repair(listed, "gemini").messages
    assert all(isinstance(content, types.Content) for content in view)
    assert [part.text for part in view[0].parts] == ["x", None, None]
    assert view[1].parts[0] is answer
    assert view[1].parts[1].function_response.response == {"error": INTERRUPTED_TEXT}
    assert view[2] is listed[1]
    assert transcript.repair(view, "gemini").messages is view


@pytest.mark.parametrize("style", ["camelCase", "snake_case"])
async def test_google_sends_all_of_a_list_in_which_dicts_and_objects_are_mixed(style: str) -> None:
    """The SDK sends a dict in a Content as an empty part, so a close that is a dict stands in a content that is one."""
    genai, types = pytest.importorskip("google.genai"), pytest.importorskip("google.genai.types")
    name, signature = (
        ("functionCall", "thoughtSignature") if style == "camelCase" else ("function_call", "thought_signature")
    )
    calls = [{name: {"name": "f", "id": i, "args": {}}, signature: "c2ln"} for i in ("c1", "c2")]
    answer = types.Part(function_response=types.FunctionResponse(name="f", id="c1", response={"output": 1}))
    listed = [
        types.Content(role="user", parts=[types.Part(text="Hi.")]),
        {"role": "model", "parts": calls},
        types.Content(role="user", parts=[answer]),
    ]
    view = transcript.repair(listed, "gemini").messages
    assert transcript.repair(view, "gemini").messages is view
    async with FakeProvider([Reply("Done.")]) as provider:
        with genai.Client(api_key="k", http_options=types.HttpOptions(base_url=provider.gemini_base_url)) as client:
            reply = await client.aio.models.generate_content(model="gemini-3-pro", contents=view)
            await client.aio.aclose()
    assert (reply.text, provider.rejected) == ("Done.", [])
    first, second = (part["functionResponse"] for part in provider.requests[0].body["contents"][2]["parts"])
    assert (first["response"], second["response"]) == ({"output": 1}, {"error": INTERRUPTED_TEXT})
