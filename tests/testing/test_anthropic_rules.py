"""Anthropic Messages: what is refused, in which words, and what is not."""

import pytest

from tests.testing.transcripts import USER, Json, assistant, result, text, use, user, uses
from toolbatch.testing import Rule, check_anthropic
from toolbatch.testing._anthropic import check_anthropic_body
from toolbatch.testing._anthropic_blocks import sign

SEARCH: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
MCP: Json = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "f", "server_name": "s", "input": {}}
MCP_RESULT: Json = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": []}
THOUGHT: Json = {"type": "thinking", "thinking": "hm", "signature": "sig"}
IMAGE: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
PDF: Json = {"type": "base64", "media_type": "application/pdf", "data": "AA=="}
NOTE: Json = {"type": "text", "media_type": "text/plain", "data": "a"}
DOCUMENTS: list[Json] = [
    {"type": "document", "source": PDF, "title": "a", "context": "b", "citations": {"enabled": True}},
    {"type": "document", "source": NOTE},
    {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
    {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
    {"type": "document", "source": {"type": "content", "content": "a"}},
    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
]
IN_RESULT = "messages.2.content.0.tool_result.content.0"


def holding(block: Json) -> list[Json]:
    """A turn whose one result holds this block."""
    return [USER, uses("a"), user(result("a", content=[block]))]


def image(**source: object) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA==", **source}}


CODE = {"type": "code_execution_20250825", "tool_id": "srvtoolu_2"}
PREFILL = "This model does not support assistant message prefill. The conversation must end with a user message."


def unanswered(index: int, *ids: str) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(ids)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def unexpected(path: str, use_id: str) -> str:
    return (
        f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {use_id}. "
        "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
    )


VALID: dict[str, list[Json]] = {
    "a question": [USER],
    "a turn": [USER, uses("a", "b"), user(result("b"), result("a"))],
    "text before the calls": [USER, assistant(text("Let me look."), use("a")), user(result("a"))],
    "text after the results": [USER, uses("a"), user(result("a"), text("And now?"))],
    "results split over two messages": [USER, uses("a", "b"), user(result("a")), user(result("b"))],
    "the user's words in a message after the results": [USER, uses("a"), user(result("a")), USER],
    "calls split over two messages": [USER, uses("a"), uses("b"), user(result("a"), result("b"))],
    "a result without content": [USER, uses("a"), user(result("a"))],
    "an empty result": [USER, uses("a"), user(result("a", content=""))],
    "a result in blocks": [USER, uses("a"), user(result("a", content=[text("ok"), IMAGE]))],
    "a result of documents": [USER, uses("a"), user(result("a", content=DOCUMENTS))],
    "documents of the user's": [user(*DOCUMENTS)],
    "the largest image": holding(image(data="A" * 5_242_880)),
    "waiting code with text blocks": [USER, uses("a", caller=CODE), user(result("a", content=[text("ok")]))],
    "an image beside waiting code's text": [
        USER,
        assistant(use("a", caller=CODE), use("b")),
        user(result("a", content="ok"), result("b", content=[IMAGE])),
    ],
    "an error": [USER, uses("a"), user(result("a", content="no", is_error=True))],
    "an error in text blocks": [USER, uses("a"), user(result("a", content=[text("no")], is_error=True))],
    "thinking before and between calls": [
        USER,
        assistant(THOUGHT, use("a"), THOUGHT, use("b")),
        user(result("a"), result("b")),
    ],
    "hosted calls with their results": [USER, assistant(SEARCH, FOUND, MCP, MCP_RESULT, text("ok"))],
    "a hosted call that is paused": [USER, assistant(SEARCH)],
    "a hosted call that waits for results": [USER, assistant(SEARCH, use("a")), user(result("a"))],
    "a hosted result in a later turn": [
        USER,
        assistant(SEARCH, use("a")),
        user(result("a")),
        assistant(FOUND, text("ok")),
    ],
    "a system message after the results": [USER, uses("a"), user(result("a")), {"role": "system", "content": "Brief."}],
    "a toolset's call": [USER, uses("a", toolset_name="t"), user(result("a", toolset_name="t"))],
    "an empty prefill": [USER, {"role": "assistant", "content": ""}],
    "waiting code": [USER, uses("a", caller=CODE), user(result("a"))],
}

# name -> messages, rule, the provider's sentence
BROKEN: dict[str, tuple[object, Rule, str]] = {
    # missing results
    "no results at the end": ([USER, uses("a", "b")], "missing_result", unanswered(1, "a", "b")),
    "no results before a user message": ([USER, uses("a"), USER], "missing_result", unanswered(1, "a")),
    "one of two results": ([USER, uses("a", "b"), user(result("a"))], "missing_result", unanswered(1, "b")),
    "a system message between": (
        [USER, uses("a"), {"role": "system", "content": "Brief."}, user(result("a"))],
        "missing_result",
        unanswered(1, "a"),
    ),
    "a later result": (
        [USER, uses("a"), USER, assistant(text("ok")), user(result("a"))],
        "missing_result",
        unanswered(1, "a"),
    ),
    # misplaced
    "text before the result": (
        [USER, uses("a"), user(text("ok"), result("a"))],
        "misplaced_content",
        unanswered(1, "a"),
    ),
    "text between results": (
        [USER, uses("a", "b"), user(result("a"), text("ok"), result("b"))],
        "misplaced_content",
        unanswered(1, "b"),
    ),
    "a user message before the results": (
        [USER, uses("a"), USER, user(result("a"))],
        "misplaced_content",
        unanswered(1, "a"),
    ),
    "text after a call": ([USER, assistant(use("a"), text("ok")), user(result("a"))], "misplaced_content", PREFILL),
    "text between calls": (
        [USER, assistant(use("a"), text("ok"), use("b")), user(result("a"), result("b"))],
        "misplaced_content",
        PREFILL,
    ),
    "a hosted call after a call": (
        [USER, assistant(use("a"), SEARCH, FOUND), user(result("a"))],
        "misplaced_content",
        unanswered(1, "a"),
    ),
    "text beside results for waiting code": (
        [USER, uses("a", caller=CODE), user(result("a"), text("ok"))],
        "misplaced_content",
        "messages.2.content.1: only `tool_result` blocks",
    ),
    # orphans and duplicates
    "a result in the first message": (
        [user(result("a"))],
        "orphan_result",
        unexpected("messages.0.content.0", "a"),
    ),
    "a result for another id": (
        [USER, uses("a"), user(result("a"), result("b"))],
        "unknown_result_id",
        unexpected("messages.2.content.1", "b"),
    ),
    "an answer to a hosted call": (
        [USER, assistant(SEARCH), user(result("srvtoolu_1"))],
        "orphan_result",
        unexpected("messages.2.content.0", "srvtoolu_1"),
    ),
    "two results": (
        [USER, uses("a"), user(result("a"), result("a"))],
        "duplicate_result",
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
    ),
    "two results in two messages": (
        [USER, uses("a"), user(result("a")), user(result("a"))],
        "duplicate_result",
        "messages.3.content.0: each tool_use must have a single result.",
    ),
    "one id twice in a turn": (
        [USER, uses("a", "a"), user(result("a"))],
        "duplicate_call",
        "messages.1.content.1: `tool_use` ids must be unique",
    ),
    "one id in two turns": (
        [USER, uses("a"), user(result("a")), assistant(text("x"), use("a")), user(result("a"))],
        "duplicate_call",
        "messages.3.content.1: `tool_use` ids must be unique",
    ),
    # hosted calls
    "a hosted result without its call": (
        [USER, assistant(FOUND)],
        "server_tool",
        (
            "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1. "
            "Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it."
        ),
    ),
    "an MCP result without its call": (
        [USER, assistant(MCP_RESULT)],
        "server_tool",
        "corresponding `mcp_tool_use` block",
    ),
    "a hosted call that was cut off": (
        [USER, assistant(SEARCH), USER],
        "server_tool",
        (
            "messages.1: `web_search` tool use with id `srvtoolu_1` was found "
            "without a corresponding `web_search_tool_result` block"
        ),
    ),
    "more than results for a pending hosted call": (
        [USER, assistant(SEARCH, use("a")), user(result("a"), text("ok"))],
        "server_tool",
        "`web_search` tool use with id `srvtoolu_1` was found without",
    ),
    "an MCP call that was cut off": (
        [USER, assistant(MCP), USER],
        "server_tool",
        "corresponding `mcp_tool_result` block",
    ),
    # ids, names, arguments
    "an id with foreign characters": (
        [USER, uses("functions.f:0"), user(result("functions.f:0"))],
        "bad_id",
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "an empty id": ([USER, uses("")], "bad_id", "messages.1.content.0.tool_use.id: String should match pattern"),
    "a result with a foreign id": (
        [USER, uses("a"), user(result("call|x"))],
        "bad_id",
        "messages.2.content.0.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "a result without an id": (
        [USER, uses("a"), user({"type": "tool_result"})],
        "bad_id",
        "messages.2.content.0.tool_result.tool_use_id: Field required",
    ),
    "a name with a dot": (
        [USER, uses("a", name="a.b")],
        "bad_name",
        "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    "a name of 129 characters": (
        [USER, uses("a", name="f" * 129)],
        "bad_name",
        "messages.1.content.0.tool_use.name: String should have at most 128 characters",
    ),
    "arguments as a string": (
        [USER, uses("a", input="{}")],
        "bad_arguments",
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    ),
    "another toolset": (
        [USER, uses("a", toolset_name="t"), user(result("a", toolset_name="u"))],
        "result_kind",
        "messages.2.content.0.tool_result.toolset_name",
    ),
    "a toolset left out": ([USER, uses("a", toolset_name="t"), user(result("a"))], "result_kind", "toolset_name"),
    # results
    "an error without content": (
        [USER, uses("a"), user(result("a", is_error=True))],
        "bad_content",
        "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
    ),
    "an error with an empty text": (
        [USER, uses("a"), user(result("a", content="", is_error=True))],
        "bad_content",
        "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
    ),
    "an error with an image": (
        [USER, uses("a"), user(result("a", content=[text("no"), IMAGE], is_error=True))],
        "bad_content",
        "messages.2.content.0.tool_result: all content must be type `text` if `is_error` is true",
    ),
    "an image of another type": (
        holding(image(media_type="image/jpg")),
        "bad_content",
        (
            f"{IN_RESULT}.image.source.base64.media_type: "
            "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        ),
    ),
    "an image that is too large": (
        holding(image(data="AAAA" * 1_524_070)),
        "bad_content",
        f"{IN_RESULT}.image.source.base64: image exceeds 5 MB maximum: 6096280 bytes > 5242880 bytes",
    ),
    "an image of no base64": (holding(image(data="%")), "bad_content", f"{IN_RESULT}.image.source.base64.data"),
    "an image of nothing": (holding(image(data="")), "bad_content", f"{IN_RESULT}.image.source.base64.data"),
    "an image of bytes in no text": (holding(image(data=[1])), "bad_content", f"{IN_RESULT}.image.source.base64.data"),
    "an image without a source": (
        holding({"type": "image"}),
        "bad_content",
        f"{IN_RESULT}.image.source: Field required",
    ),
    "an image of text": (
        holding({"type": "image", "source": NOTE}),
        "bad_content",
        f"{IN_RESULT}.image.source: Input tag",
    ),
    "an image with a title": (
        holding({**IMAGE, "title": "a"}),
        "bad_content",
        f"{IN_RESULT}.image.title: Extra inputs are not permitted",
    ),
    "an image without its type": (
        holding({"type": "image", "source": {"type": "base64", "data": "AA=="}}),
        "bad_content",
        f"{IN_RESULT}.image.source.base64.media_type: Field required",
    ),
    "a document of another type": (
        holding({"type": "document", "source": {**PDF, "media_type": "text/csv"}}),
        "bad_content",
        f"{IN_RESULT}.document.source.base64.media_type: Input should be 'application/pdf'",
    ),
    "a text document of another type": (
        holding({"type": "document", "source": {**NOTE, "media_type": "text/csv"}}),
        "bad_content",
        f"{IN_RESULT}.document.source.text.media_type: Input should be 'text/plain'",
    ),
    "an empty text document": (
        holding({"type": "document", "source": {**NOTE, "data": " "}}),
        "bad_content",
        f"{IN_RESULT}.document.source.text.data",
    ),
    "a user's image of another type": (
        [user(image(media_type="image/tiff"))],
        "bad_content",
        "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg'",
    ),
    "an image for waiting code": (
        [USER, uses("a", caller=CODE), user(result("a", content=[text("ok"), IMAGE]))],
        "bad_content",
        "messages.2.content.0.tool_result: all content must be type `text`",
    ),
    "a result of no blocks": ([USER, uses("a"), user(result("a", content=[]))], "bad_content", "tool_result.content"),
    "a result of null": ([USER, uses("a"), user(result("a", content=None))], "bad_content", "tool_result.content"),
    "a result with an empty text block": (
        [USER, uses("a"), user(result("a", content=[text("")]))],
        "bad_content",
        "messages: text content blocks must be non-empty",
    ),
    "a result of another lane's parts": (
        [USER, uses("a"), user(result("a", content=[{"type": "input_text", "text": "ok"}]))],
        "bad_content",
        "messages.2.content.0.tool_result.content.0: Input tag 'input_text' found using 'type' does not match",
    ),
    "a result with a field too many": (
        [USER, uses("a"), user(result("a", name="f"))],
        "bad_content",
        "messages.2.content.0.tool_result.name: Extra inputs are not permitted",
    ),
    # content
    "an empty text block": ([user(text(""))], "bad_content", "messages: text content blocks must be non-empty"),
    "a blank text block": (
        [user(text("  "))],
        "bad_content",
        "messages: text content blocks must contain non-whitespace text",
    ),
    "an empty message": (
        [USER, {"role": "assistant", "content": []}, USER],
        "bad_content",
        "messages.1: all messages must have non-empty content except for the optional final assistant message",
    ),
    "an unknown block": (
        [user({"type": "tool_output"})],
        "bad_content",
        "messages.0.content.0: Input tag 'tool_output'",
    ),
    "a call from the user": ([user(use("a"))], "bad_content", "`tool_use` blocks can only be in `assistant` messages"),
    "a result from the assistant": (
        [USER, uses("a"), assistant(result("a"))],
        "bad_content",
        "messages.2: `tool_result` blocks can only be in `user` messages",
    ),
    "thinking at the end": (
        [USER, assistant(text("ok"), THOUGHT)],
        "bad_content",
        "messages.1: The final block in an assistant message cannot be `thinking`.",
    ),
    "thinking without its signature": (
        [USER, assistant({"type": "thinking", "thinking": "hm"}, text("ok"))],
        "bad_content",
        "messages.1.content.0.thinking.signature: Field required",
    ),
    "thinking that was changed": (
        [USER, assistant(THOUGHT | {"signature": sign("other")}, text("ok"))],
        "bad_content",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    # messages
    "the role tool": (
        [USER, {"role": "tool", "content": "ok"}],
        "bad_request",
        'messages: Unexpected role "tool". Allowed roles are "user" or "assistant".',
    ),
    "a role that is a list": ([{"role": [], "content": "Hi."}], "bad_request", "messages: Unexpected role"),
    "an assistant's message first": ([assistant(text("Hi."))], "bad_request", 'first message must use the "user" role'),
    "a field too many": (
        [USER | {"name": "kim"}],
        "bad_request",
        "messages.0.name: Extra inputs are not permitted",
    ),
    "no messages": ([], "bad_request", "messages: at least one message is required"),
    "messages that are a string": ("Hi.", "bad_request", "messages: Input should be a valid list"),
}


@pytest.mark.parametrize("messages", VALID.values(), ids=VALID)
def test_valid_lists_are_accepted(messages: list[Json]) -> None:
    assert check_anthropic(messages) is None


@pytest.mark.parametrize(("messages", "rule", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_lists_are_refused_in_the_providers_words(messages: object, rule: Rule, message: str) -> None:
    rejection = check_anthropic(messages)
    assert rejection is not None
    assert (rejection.rule, rejection.status) == (rule, 400)
    assert message in rejection.message


BODY: Json = {"model": "m", "max_tokens": 8, "messages": [USER]}
WAITING = [USER, uses("a", caller=CODE), user(result("a"))]
BODIES: dict[str, tuple[Json, str]] = {
    "no model": ({k: v for k, v in BODY.items() if k != "model"}, "model: Field required"),
    "no max_tokens": ({k: v for k, v in BODY.items() if k != "max_tokens"}, "max_tokens: Field required"),
    "no messages": ({k: v for k, v in BODY.items() if k != "messages"}, "messages: Field required"),
    "max_tokens of nothing": (BODY | {"max_tokens": 0}, "max_tokens: must be greater than or equal to 1"),
    "max_tokens of text": (BODY | {"max_tokens": "8"}, "max_tokens: Input should be a valid integer"),
    "a bad tool name": (
        BODY | {"tools": [{"name": "a.b"}]},
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    "a long tool name": (
        BODY | {"tools": [{"name": "f" * 129}]},
        "tools.0.custom.name: String should have at most 128 characters",
    ),
    "two tools of one name": (BODY | {"tools": [{"name": "f"}, {"name": "f"}]}, "tools: Tool names must be unique."),
    "code waiting in an unnamed container": (
        BODY | {"messages": WAITING},
        "container_id is required when there are pending tool uses generated by code execution with tools.",
    ),
}


@pytest.mark.parametrize(("body", "message"), BODIES.values(), ids=BODIES)
def test_bodies_are_checked(body: Json, message: str) -> None:
    rejection = check_anthropic_body(body)
    assert rejection is not None
    assert message in rejection.message


def test_a_container_lets_waiting_code_go_on() -> None:
    assert check_anthropic_body(BODY | {"messages": WAITING, "container": "container_1"}) is None
