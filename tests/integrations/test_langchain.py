"""LangChain's messages: every announced call is read, and every answer is one that LangChain and providers take."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    ToolMessage,
    convert_to_openai_messages,
    is_data_content_block,
)
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.tools import ToolException
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.chat_agent_executor import _validate_chat_history

from tests.batch.kit import instant
from toolbatch import Document, Image, ResourceLink, Text, ToolBatch, ToolCall, Url, tool, transcript
from toolbatch.core import InvalidInputError, InvalidTypeError, ProviderMismatchError, Snapshot, ToolCallClosure
from toolbatch.integrations import langchain
from toolbatch.ports import LateNote
from toolbatch.testing import check_chat


def call(name: Any = "f", call_id: Any = "a", **args: Any) -> Any:
    """An entry of `tool_calls`."""
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def bad(name: Any = "f", call_id: Any = "a", args: Any = '{"x": ') -> Any:
    """An entry of `invalid_tool_calls`."""
    return {"name": name, "args": args, "id": call_id, "error": None, "type": "invalid_tool_call"}


def chunk(*calls: tuple[str, str | None], **fields: Any) -> AIMessageChunk:
    """A chunk that announces these calls, `f` with each text as arguments and that id."""
    chunks = [tool_call_chunk(name="f", args=args, id=i, index=n) for n, (args, i) in enumerate(calls)]
    return AIMessageChunk(content="", tool_call_chunks=chunks, **fields)


def closed(calls: Sequence[ToolCall], *contents: Any) -> Snapshot:
    """A closed snapshot of these calls: each that can be run has succeeded with the content beside it."""
    closure = ToolCallClosure()
    handle = closure.begin(calls).handle
    for announced, content in zip(calls, contents, strict=False):
        if announced.problem is None:
            closure.start(handle, announced.id)
            closure.succeed(handle, announced.id, content)
        else:
            closure.close_call(
                handle, announced.id, "error", announced.problem.code, announced.problem.message, "not_started"
            )
    closure.close(handle, side_effect_state=None)
    snapshot = closure.snapshot()
    assert snapshot is not None
    return snapshot


def problems(calls: Sequence[ToolCall]) -> list[str | None]:
    """The calls' problems, short."""
    return [None if each.problem is None else each.problem.code for each in calls]


# -- reading ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dumped", [False, True])
def test_both_lists_are_announced(dumped: bool) -> None:
    """What LangChain could not parse is sent to providers all the same, so it is announced too (LANES 10, 14.14)."""
    message: Any = AIMessage("", tool_calls=[call(x=1), call(call_id="b")], invalid_tool_calls=[bad("g", "c")])
    calls = langchain.calls(message.model_dump() if dumped else message)
    assert [(each.id, each.name, each.arguments) for each in calls] == [
        ("a", "f", {"x": 1}),
        ("b", "f", {}),
        ("c", "g", {}),
    ]
    assert problems(calls) == [None, None, "malformed_arguments"]
    assert langchain.calls(AIMessage("Hi.")) == []


def test_other_objects_are_refused() -> None:
    """What is no message of the model's has no calls to read; the error shows it."""
    for wrong in (HumanMessage("Hi."), ToolMessage("x", tool_call_id="a"), {"role": "assistant"}, None, "text"):
        with pytest.raises(InvalidTypeError, match="must be an AIMessage"):
            langchain.calls(wrong)


def test_a_forced_choice_is_checked() -> None:
    """A model that called another tool is found out before anything runs (P7)."""
    message = AIMessage("", tool_calls=[call()])
    assert langchain.calls(message, expect="f") == langchain.calls(message)
    with pytest.raises(ProviderMismatchError):
        langchain.calls(message, expect="g")


def test_hostile_entries_are_announced() -> None:
    """Missing, empty and repeated ids, names and arguments give a call each, with an id of its own (P6)."""
    message = AIMessage(
        "",
        tool_calls=[call(call_id=None), call(call_id=None), call("", "b"), call(call_id="b")],
        invalid_tool_calls=[bad(None, None, None), bad("f", "d", "[1]"), bad("f", "", "null")],
        id="run-1",
    )
    calls = langchain.calls(message)
    assert len({each.id for each in calls}) == 7
    assert [each.wire_id for each in calls] == ["", "", None, "b", "", None, ""]
    codes = [None, None, "unknown_tool", None, "unknown_tool", "malformed_arguments", "malformed_arguments"]
    assert problems(calls) == codes
    assert langchain.calls(message.model_copy()) == calls  # the same ids when read again


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({"finish_reason": "length"}, "response_truncated"),
        ({"finish_reason": "content_filter"}, "response_truncated"),
        ({"finish_reason": "MAX_TOKENS"}, "response_truncated"),
        ({"finish_reason": "SAFETY"}, "response_truncated"),
        ({"finish_reason": "MALFORMED_FUNCTION_CALL"}, "response_truncated"),
        ({"stop_reason": "max_tokens"}, "response_truncated"),
        ({"finish_reason": "MODEL_ARMOR"}, "response_truncated"),
        ({"finish_reason": "MALFORMED_RESPONSE"}, "response_truncated"),
        ({"finish_reason": "UNEXPECTED_TOOL_CALL"}, "not_requested"),
        ({"finish_reason": "TOO_MANY_TOOL_CALLS"}, "not_requested"),
        ({"stop_reason": "pause_turn"}, "not_requested"),
        ({"stop_reason": "refusal"}, "not_requested"),
        ({"stopReason": "max_tokens"}, "response_truncated"),
        ({"done_reason": "length"}, "response_truncated"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "response_truncated"),
        ({"status": "failed"}, "response_truncated"),
        ({"finish_reason": "tool_calls"}, None),
        ({"stop_reason": "tool_use"}, None),
        ({"status": "completed"}, None),
        ({"finish_reason": None}, None),
        ({"finish_reason": 5}, None),
        ({}, None),
    ],
)
def test_only_the_stop_reason_tells_of_a_cut(metadata: dict[str, Any], code: str | None) -> None:
    """LangChain completes the arguments of a response that was cut off; no such call may run (LANES 14.4)."""
    assert problems(langchain.calls(AIMessage("", tool_calls=[call()], response_metadata=metadata))) == [code]


def test_a_chunks_arguments_are_what_the_model_wrote() -> None:
    """A chunk's parsed arguments are a guess: its text decides, so a cut call does not run though it looks whole."""
    cut = chunk(('{"x": 1, "y": [1,', "a"), ('{"x": 2}', "b"), ("", None), chunk_position="last")
    assert [entry["args"] for entry in cut.tool_calls] == [{"x": 1, "y": [1]}, {"x": 2}, {}]
    calls = langchain.calls(cut)
    assert problems(calls) == ["malformed_arguments", None, None]
    assert [each.arguments for each in calls] == [{}, {"x": 2}, {}]


def test_a_stream_that_was_cut_is_announced_and_not_run() -> None:
    """The sum of chunks without the last one is of a stream that ended early; a stop reason is word enough (LANES 14.11)."""
    first = chunk(('{"x": 1}', "a"))
    assert problems(langchain.calls(first)) == ["response_truncated"]
    whole = first + AIMessageChunk(content="", chunk_position="last")
    assert problems(langchain.calls(whole)) == [None]
    twice = AIMessageChunk(content="", response_metadata={"finish_reason": "length"})
    joined = (
        first + twice + twice + AIMessageChunk(content="", chunk_position="last")
    )  # LangChain joins the two words to one
    assert joined.response_metadata == {"finish_reason": "lengthlength"}
    assert problems(langchain.calls(joined)) == ["response_truncated"]
    told = first + AIMessageChunk(content="", response_metadata={"finish_reason": "tool_calls"})
    assert problems(langchain.calls(told)) == [None]


# -- writing ---------------------------------------------------------------------------------------------------------------


def test_results_carry_status_and_artifact() -> None:
    """A dict is JSON and no Python repr; a failure is marked; what the host is told is the artifact (P4, T9)."""
    calls = langchain.calls(
        AIMessage("", tool_calls=[call(), call(call_id="b")], invalid_tool_calls=[bad(call_id="c")])
    )
    done = langchain.results(closed(calls, {"ok": True, "n": None}, "text", None), meta={"a": {"rows": 2}})
    assert [each.content for each in done[:2]] == ['{"ok":true,"n":null}', "text"]
    assert [each.status for each in done] == ["success", "success", "error"]
    assert [each.tool_call_id for each in done] == ["a", "b", "c"]
    assert [each.name for each in done] == ["f", "f", "f"]
    assert [each.artifact for each in done] == [{"rows": 2}, None, None]
    assert json.loads(str(done[2].content))["error"]["side_effect_state"] == "not_started"


def test_parts_are_standard_content_blocks() -> None:
    """Images and files are LangChain's own blocks, without random ids; a text file and a link are read out (P5, C16)."""
    parts = [
        "see",
        Image.of(b"png", "image/png"),
        Image(Url("https://example.org/a.png")),
        Document.of(b"%PDF", "application/pdf", "a.pdf"),
        Document.of(b"RIFF", "audio/wav"),
        Document.of(b"a,b", "text/csv"),
        ResourceLink("https://example.org/r", "r"),
    ]
    (message,) = langchain.results(closed([ToolCall("a", "f")], parts))
    blocks: Any = message.content
    assert blocks[0] == {"type": "text", "text": "see"}
    assert blocks[1] == {"type": "image", "base64": "cG5n", "mime_type": "image/png"}
    assert blocks[2] == {"type": "image", "url": "https://example.org/a.png"}
    assert blocks[3]["extras"] == {"filename": "a.pdf"}
    assert [block["type"] for block in blocks] == ["text", "image", "image", "file", "audio", "text", "text"]
    assert all(is_data_content_block(block) for block in blocks[1:5])
    assert "a,b" in blocks[5]["text"]
    assert "https://example.org/r" in blocks[6]["text"]
    assert langchain.results(closed([ToolCall("a", "f")], parts))[0] == message
    assert langchain.results(closed([ToolCall("a", "f")], [Text("only text")]))[0].content == "only text"


def test_a_whole_message_goes_back_as_it_is() -> None:
    """A message with nothing wrong is the same object, and the list has its answers right behind it (P2)."""
    message = AIMessage([{"type": "text", "text": "Let me see."}], tool_calls=[call(x=1), call(call_id="b")])
    history: list[Any] = [HumanMessage("Hi.")]
    langchain.extend(history, message, closed(langchain.calls(message), "1", "2"), meta={"b": 5})
    assert history[1] is message
    assert [(each.tool_call_id, each.content, each.artifact) for each in history[2:]] == [
        ("a", "1", None),
        ("b", "2", 5),
    ]
    langchain.extend(history, end := AIMessage("Done."))
    assert history[-1] is end


def test_a_message_that_providers_would_refuse_is_mended() -> None:
    """Repeated and missing ids, malformed arguments and impossible names are put right once, in the content too (P6)."""
    content: list[Any] = [
        {"type": "text", "text": "."},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        {"type": "tool_call", "id": "a", "name": "f", "args": {}},
        {"type": "invalid_tool_call", "id": "c", "name": "multi_tool_use.parallel", "args": "{", "error": "?"},
        {"type": "function_call", "call_id": "d", "name": "g", "arguments": "[", "id": "fc_1"},
    ]
    message = AIMessage(
        content,
        tool_calls=[call(x=1), call(call_id="a", x=2), call("f", None)],
        invalid_tool_calls=[bad("multi_tool_use.parallel", "c", "{"), bad("g", "d", "[")],
        additional_kwargs={"tool_calls": [1], "refusal": None},
        id="run-1",
    )
    before = message.model_dump()
    calls = langchain.calls(message)
    history: list[Any] = []
    langchain.extend(history, message, closed(calls, *"12345"))
    mended, *answers = history
    assert message.model_dump() == before
    assert (mended.id, mended.invalid_tool_calls, mended.additional_kwargs) == ("run-1", [], {"refusal": None})
    assert (
        [each["id"] for each in mended.tool_calls]
        == [each.tool_call_id for each in answers]
        == [each.id for each in calls]
    )
    assert [each["args"] for each in mended.tool_calls] == [
        {"x": 1},
        {"x": 2},
        {},
        {"INVALID_JSON": "{"},
        {"INVALID_JSON": "["},
    ]
    assert mended.tool_calls[3]["name"] == "multi_tool_use_parallel"
    assert mended.content[1:] == [
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"type": "tool_call", "id": calls[1].id, "name": "f", "args": {"x": 2}},
        {"type": "tool_call", "id": "c", "name": "multi_tool_use_parallel", "args": {"INVALID_JSON": "{"}},
        {"type": "function_call", "call_id": "d", "name": "g", "arguments": '{"INVALID_JSON":"["}', "id": "fc_1"},
    ]
    _validate_chat_history(history)
    plain = [mended.model_copy(update={"content": ""}), *answers]
    assert check_chat([{"role": "user", "content": "Hi."}, *convert_to_openai_messages(plain)]) is None


def test_a_chunk_becomes_a_message() -> None:
    """A sum of chunks goes into the conversation as an `AIMessage` whose calls say what was run (LANES 10)."""
    message = chunk(('{"x": 1, "y": [', "a"), ('{"x": 2}', "b"), chunk_position="last", id="run-1")
    history: list[Any] = []
    langchain.extend(history, message, closed(langchain.calls(message), "1", "2"))
    assert type(history[0]) is AIMessage
    assert [each["args"] for each in history[0].tool_calls] == [{"INVALID_JSON": '{"x": 1, "y": ['}, {"x": 2}]
    assert history[0].id == "run-1"


def test_an_id_of_an_earlier_turn_is_not_used_again() -> None:
    """Gateways that count from `call_0` in every turn meet providers that want ids unique over the conversation (FIELD 49)."""
    history: list[Any] = []
    for _ in range(2):
        message = AIMessage("", tool_calls=[call(call_id="call_0")])
        langchain.extend(history, message, closed(langchain.calls(message), "x"))
    ids = [each.tool_call_id for each in history if isinstance(each, ToolMessage)]
    assert len(set(ids)) == 2
    assert [each.tool_calls[0]["id"] for each in history if isinstance(each, AIMessage)] == ids


def test_an_unanswered_turn_is_not_built_on() -> None:
    """Behind a turn without its answers nothing is appended, and the list is as it was (L2)."""
    history: list[Any] = [AIMessage("", tool_calls=[call(call_id="open")]), HumanMessage("So?")]
    with pytest.raises(InvalidInputError, match="'open'"):
        langchain.extend(history, AIMessage("Hm."))
    assert len(history) == 2
    history[1:1] = [ToolMessage("x", tool_call_id="open")]
    langchain.extend(history, AIMessage("Hm."))


def test_extend_refuses_what_it_cannot_answer() -> None:
    """A snapshot of other calls, none at all, no list, and a message that is no object: the list stays as it was."""
    message = AIMessage("", tool_calls=[call()])
    history: list[Any] = []
    with pytest.raises(InvalidInputError):
        langchain.extend(history, message)
    with pytest.raises(InvalidInputError, match="another response"):
        langchain.extend(history, message, closed([ToolCall("z", "f")], "x"))
    with pytest.raises(InvalidTypeError, match="must be a list"):
        langchain.extend((), message, closed([ToolCall("a", "f")], "x"))  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="LangChain's AIMessage"):
        langchain.extend(history, message.model_dump(), closed([ToolCall("a", "f")], "x"))
    with pytest.raises(InvalidTypeError):
        langchain.results("nonsense")  # type: ignore[arg-type]
    assert history == []


def test_late_results_are_new_content() -> None:
    """A late success is told in a message of a later turn (B20)."""
    late = LateNote(call_id="a", name="f", generation=1, content="found")
    (note,) = langchain.notes([late])
    assert isinstance(note, HumanMessage)
    assert "found" in str(note.content)
    assert langchain.notes([]) == []


entries = st.builds(
    call, st.sampled_from(["f", "g.h", ""]), st.sampled_from(["a", "b", "", None, "x" * 70, "é"]), x=st.integers()
)
broken = st.builds(
    bad, st.sampled_from(["f", None]), st.sampled_from(["a", "c", None]), st.sampled_from(["{", "", "1", None])
)


@settings(deadline=None, max_examples=60)
@given(
    turns=st.lists(st.tuples(st.lists(entries, max_size=4), st.lists(broken, max_size=3)), max_size=3),
    contents=st.lists(
        st.sampled_from(["text", "", {"a": 1}, [Text("t"), Image.of(b"x", "image/png")]]), min_size=7, max_size=7
    ),
    ends=st.integers(min_value=0, max_value=7),
)
def test_any_turns_make_a_lawful_conversation(turns: Any, contents: list[Any], ends: int) -> None:
    """Whatever a model announces and however its calls end, LangGraph's check and our law find nothing wrong (L2)."""
    history: list[Any] = [HumanMessage("Hi.")]
    for good, malformed in turns:
        message = AIMessage("", tool_calls=good, invalid_tool_calls=malformed)
        langchain.extend(history, message, closed(langchain.calls(message), *contents[:ends]))
    _validate_chat_history(history)
    assert transcript.check(history, "langchain") == []
    assert all(isinstance(each.content, str | list) and each.content is not None for each in history)


# -- toolbatch's tools in LangChain ----------------------------------------------------------------------------------------


@tool(meta=lambda rows: {"count": len(rows)}, render=lambda rows: f"{len(rows)} rows")
async def rows(n: int) -> list[int]:
    """Make rows."""
    return list(range(n))


@tool
def picture(color: str = "red") -> Any:
    """Paint."""
    return [color, Image.of(b"png", "image/png")]


@tool
async def steps(n: int) -> Any:
    """Count."""
    for i in range(n):
        yield i


class Box:
    """Has a tool of its instances."""

    @tool
    async def look(self) -> str:
        """Look."""
        return "empty"


async def test_a_tool_of_ours_is_one_of_langchains(nothing_left: None) -> None:
    """Name, description, schema, result and artifact arrive in LangChain's own node, also of sync tools and generators."""
    tools = [langchain.structured_tool(each) for each in (rows, picture, steps, Box().look)]
    assert (tools[0].name, tools[0].description) == ("rows", "Make rows.")
    assert tools[0].args == {"n": {"type": "integer"}}
    asked = [
        call("rows", "a", n=3),
        call("picture", "b"),
        call("steps", "c", n=2),
        call("look", "d"),
        call("rows", "e", n="x"),
    ]
    graph = StateGraph(MessagesState).add_node("tools", ToolNode(tools)).add_edge(START, "tools").add_edge("tools", END)
    state = await graph.compile().ainvoke({"messages": [AIMessage("", tool_calls=asked)]})
    answers: list[AnyMessage] = state["messages"][1:]
    assert all(isinstance(each, ToolMessage) for each in answers)
    a, b, c, d, e = answers
    assert (a.content, getattr(a, "artifact")) == ("3 rows", {"count": 3})  # noqa: B009  typed as any message
    assert b.content == [{"type": "text", "text": "red"}, {"type": "image", "base64": "cG5n", "mime_type": "image/png"}]
    assert (c.content, d.content) == ("1", "empty")
    assert getattr(e, "status") == "error"  # noqa: B009  likewise
    assert "n: Input should be a valid integer" in str(e.content)


async def test_the_tool_itself_raises_what_langchain_expects() -> None:
    """Arguments that don't fit are a `ToolException`, which LangChain turns into an answer for the model."""
    made = langchain.structured_tool(rows)
    with pytest.raises(ToolException, match="don't fit"):
        await made.coroutine(n="x")  # type: ignore[misc]
    assert "don't fit" in await made.ainvoke({"n": "x"})


def test_names_that_langchain_takes_are_refused() -> None:
    """A parameter called `config` would silently be LangChain's own; a method needs its instance."""

    @tool
    def settings_of(config: str) -> str:
        """Look up."""
        return config

    with pytest.raises(InvalidInputError, match="'config'"):
        langchain.structured_tool(settings_of)
    with pytest.raises(InvalidTypeError, match="instance"):
        langchain.structured_tool(Box.look)


async def test_a_real_batch_end_to_end(nothing_left: None) -> None:
    """The lines of the module's docstring, with a real batch: `meta` becomes the artifact."""
    message = AIMessage("", tool_calls=[call("rows", "a", n=2), call("echo", "b", value="x")])
    history: list[Any] = [HumanMessage("Hi.")]
    async with ToolBatch(langchain.calls(message), tools={"rows": rows, "echo": instant}) as batch:
        batch.start_all()
    assert batch.result is not None
    langchain.extend(history, message, batch.result, meta=batch.meta)
    assert [(each.content, each.artifact) for each in history[2:]] == [("2 rows", {"count": 2}), ("x", None)]
