"""Whatever JSON comes in, it is accepted or refused: a judge that crashes has not judged.

The values are drawn from the words that the lanes' own shapes are made of, so that many of them get past the first checks.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.testing.transcripts import Json
from toolbatch.testing import check_anthropic, check_chat, check_responses
from toolbatch.testing._anthropic import check_anthropic_body
from toolbatch.testing._chat import check_chat_body
from toolbatch.testing._responses_memory import ResponsesMemory

KEYS = st.sampled_from(
    [
        "role",
        "content",
        "type",
        "id",
        "call_id",
        "tool_call_id",
        "tool_use_id",
        "tool_calls",
        "function",
        "custom",
        "name",
        "arguments",
        "input",
        "output",
        "text",
        "is_error",
        "caller",
        "toolset_name",
        "source",
        "status",
        "signature",
        "thinking",
        "async",
        "execution",
        "function_call",
    ]
)
WORDS = st.sampled_from(
    [
        "user",
        "assistant",
        "tool",
        "system",
        "function",
        "text",
        "a",
        "b",
        "fc_1",
        "rs_1",
        "tool_use",
        "tool_result",
        "server_tool_use",
        "web_search_tool_result",
        "thinking",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "reasoning",
        "message",
        "custom",
        "item_reference",
        "local_shell_call",
        "local_shell_call_output",
        "program",
        "mcp_call",
        "input_text",
        "output_text",
        "image",
    ]
)
LEAVES = st.none() | st.booleans() | st.integers(0, 3) | WORDS | st.just("")
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=20
)

BLOCKS = st.fixed_dictionaries(
    {"type": WORDS},
    optional={"id": WORDS, "tool_use_id": WORDS, "name": WORDS, "input": VALUES, "content": VALUES, "text": WORDS},
)
CALLS = st.fixed_dictionaries(
    {"id": WORDS, "type": st.just("function")},
    optional={"function": st.just({"name": "f", "arguments": ""}), "custom": VALUES},
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]) | VALUES},
    optional={
        "content": st.just("x") | st.lists(BLOCKS, max_size=4) | VALUES,
        "tool_calls": st.lists(CALLS, max_size=3),
        "tool_call_id": WORDS,
    },
)
ITEMS = st.fixed_dictionaries(
    {"type": WORDS},
    optional={
        "call_id": WORDS,
        "id": WORDS,
        "name": WORDS,
        "arguments": WORDS,
        "input": WORDS,
        "output": WORDS | VALUES,
        "role": WORDS,
        "content": VALUES,
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(MESSAGES, max_size=5) | VALUES)
def test_messages(messages: object) -> None:
    check_chat(messages)
    check_anthropic(messages)


@settings(max_examples=150, deadline=None)
@given(st.lists(ITEMS, max_size=6) | VALUES)
def test_items(items: object) -> None:
    check_responses(items)
    check_responses(items, stored={})


@settings(max_examples=100, deadline=None)
@given(
    st.fixed_dictionaries(
        {"model": VALUES},
        optional={
            "messages": VALUES,
            "input": VALUES,
            "tools": VALUES,
            "max_tokens": VALUES,
            "previous_response_id": VALUES,
        },
    )
)
def test_bodies(body: Json) -> None:
    check_chat_body(body)
    check_anthropic_body(body)
    ResponsesMemory().check(body)
