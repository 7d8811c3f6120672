"""Bedrock Converse: what is refused, in which words, and what is not."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.testing.transcripts import Json
from toolbatch.testing import Rule, check_bedrock
from toolbatch.testing._anthropic_blocks import sign
from toolbatch.testing._bedrock import check_bedrock_body

START = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
ALTERNATE = (
    "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and "
    "assistant roles and try again."
)
CONFIG = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
FILE_NAME = (
    "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square "
    "brackets. The name can't contain more than one consecutive whitespace character."
)
BLOCKS = (
    "text, image, document, video, audio, toolUse, toolResult, guardContent, cachePoint, reasoningContent, citationsContent, "
    "searchResult, toolAddition, toolRemoval"
)


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str) -> Json:
    return {"text": words}


def use(use_id: Any = "a", name: Any = "f", **more: Any) -> Json:
    return {"toolUse": {"toolUseId": use_id, "name": name, "input": {}, **more}}


def result(use_id: Any = "a", *content: Json, **more: Any) -> Json:
    return {"toolResult": {"toolUseId": use_id, "content": list(content) or [text("ok")], **more}}


def image(form: str = "png", data: Any = "AA==") -> Json:
    return {"image": {"format": form, "source": {"bytes": data}}}


def document(name: Any = "a", form: str = "pdf", data: Any = b"x") -> Json:
    return {"document": {"format": form, "name": name, "source": {"bytes": data}}}


def reasoning(words: str, signature: str) -> Json:
    return {"reasoningContent": {"reasoningText": {"text": words, "signature": signature}}}


ASKED = user(text("Hi."))
HOSTED = use("s", "code", type="server_tool_use")
FOUND = result("s", text("1"), type="code_result")


def turn(*blocks: Json) -> list[Json]:
    return [ASKED, assistant(use()), user(*blocks)]


def holding(*content: Json) -> list[Json]:
    return turn(result("a", *content))


def constraint(path: str, value: str, problem: str) -> str:
    return f"1 validation error detected: {value} at '{path}' failed to satisfy constraint: {problem}"


def expected(index: int, *ids: str) -> str:
    return f"Expected toolResult blocks at messages.{index}.content for the following Ids: {', '.join(ids)}"


def exceeds(index: int) -> str:
    return f"The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of previous turn."


def blank(path: str, shape: str = "ContentBlock") -> str:
    return f"The text field in the {shape} object at {path} is blank. Add text to the text field, and try again."


def no_object(path: str) -> str:
    return f"The format of the value at {path} is invalid. Provide a json object for the field and try again."


VALID: dict[str, list[Json]] = {
    "a question": [ASKED],
    "a turn": turn(result()),
    "results in another order": [ASKED, assistant(use("a"), use("b")), user(result("b"), result("a"))],
    "text before the calls": [ASKED, assistant(text("Well"), use()), user(result())],
    "text behind the results": turn(result(), text("And now?")),
    "an image behind the results": turn(result(), image()),
    "an error": turn(result(status="error")),
    "a success": turn(result(status="success")),
    "every sort of content": holding(
        {"json": {"a": [1]}}, text("x"), image(), document(), {"video": {}}, {"searchResult": {}}
    ),
    "an empty result": turn({"toolResult": {"toolUseId": "a", "content": []}}),
    "data with a type at its top": holding({"json": {"__type": 1}}),
    "a name that is nearly a type": holding({"json": {"q": {"__typename": 1}}}),
    "the longest id and name": [ASKED, assistant(use("a" * 64, "f" * 64)), user(result("a" * 64))],
    "every sign of an id": [ASKED, assistant(use("aZ0_.:-")), user(result("aZ0_.:-"))],
    "hosted tools": [ASKED, assistant(HOSTED, FOUND, text("1")), ASKED],
    "hosted tools beside a call": [ASKED, assistant(HOSTED, FOUND, use()), user(result())],
    "reasoning": [ASKED, assistant(reasoning("hm", "other"), use()), user(result())],
    "reasoning of ours": [ASKED, assistant(reasoning("hm", sign("hm")), use()), user(result())],
    "reasoning that is hidden": [
        ASKED,
        assistant({"reasoningContent": {"redactedContent": "AA=="}}, use()),
        user(result()),
    ],
    "a cache point": [ASKED, assistant(use(), {"cachePoint": {"type": "default"}}), user(result())],
    "bytes as bytes": holding(image(data=b"x")),
    "twenty images and five documents": holding(text("x"), *[image()] * 20, *[document(f"d {n}") for n in range(5)]),
    "a document of text": [user(text("x"), {"document": {"name": "a", "source": {"text": "a"}}})],
    "an image from elsewhere": holding({"image": {"format": "gif", "source": {"s3Location": {"uri": "s3://b/a"}}}}),
    "an id that comes again": [*turn(result()), assistant(use()), user(result())],
    "a system message": [ASKED, {"role": "system", "content": [text("Be brief.")]}, assistant(text("x"))],
}


@pytest.mark.parametrize("messages", VALID.values(), ids=VALID)
def test_accepted(messages: list[Json]) -> None:
    """What the API takes is taken."""
    assert check_bedrock(messages) is None


ID = "messages.2.member.content.1.member.toolUse.toolUseId"
NAME = "messages.2.member.content.1.member.toolUse.name"
INNER = "messages.3.member.content.1.member.toolResult"
IN_RESULT = f"{INNER}.content.1.member"

# name -> messages, rule, the API's sentence
BROKEN: dict[str, tuple[Any, Rule, str]] = {
    # pairing
    "no result at the end": ([ASKED, assistant(use())], "missing_result", expected(2, "a")),
    "no result before the user": (turn(text("Well?")), "missing_result", expected(2, "a")),
    "some results": (
        [ASKED, assistant(use("a"), use("b"), use("c")), user(result("b"))],
        "missing_result",
        expected(2, "a", "c"),
    ),
    "results in two messages": (
        [ASKED, assistant(use("a"), use("b")), user(result("a")), user(result("b"))],
        "missing_result",
        expected(2, "b"),
    ),
    "a result of another call": (turn(result("z")), "missing_result", expected(2, "a")),
    "one result too many": (turn(result("a"), result("z")), "unknown_result_id", exceeds(2)),
    "a result without a call": ([user(result())], "orphan_result", exceeds(0)),
    "a result too late": ([*turn(result()), assistant(text("x")), user(result())], "orphan_result", exceeds(4)),
    "an answer to a hosted call": ([ASKED, assistant(HOSTED), user(result("s"))], "orphan_result", exceeds(2)),
    "a result twice": (
        turn(result("a"), result("a")),
        "duplicate_result",
        "The toolResult blocks at messages.2.content contain duplicate Ids: a",
    ),
    "a call twice": (
        [ASKED, assistant(use("a"), use("a")), user(result("a"))],
        "duplicate_call",
        "The toolUse blocks at messages.1.content contain duplicate Ids: a",
    ),
    # the conversation
    "no messages": ([], "bad_request", START),
    "an assistant first": ([assistant(text("x")), ASKED], "bad_request", START),
    "a user twice": ([ASKED, ASKED], "bad_request", ALTERNATE),
    "an assistant twice": ([ASKED, assistant(text("x")), assistant(text("y"))], "bad_request", ALTERNATE),
    "a document's name twice": (
        [*holding(text("x"), document("A b")), assistant(text("x")), user(text("y"), document("a B"))],
        "bad_name",
        "Messages can't contain duplicate document names. Rename the document and retry your request.",
    ),
    # shape
    "no message": ([1], "bad_request", "The value at messages.0 is invalid. Provide an object."),
    "another role": (
        [{"role": "tool", "content": [text("x")]}],
        "bad_request",
        constraint(
            "messages.1.member.role", "Value 'tool'", "Member must satisfy enum value set: [user, assistant, system]"
        ),
    ),
    "no content": (
        [user()],
        "bad_content",
        (
            "The content field in the Message object at messages.0 is empty. Add a ContentBlock object to the content field and "
            "try again."
        ),
    ),
    "another lane's block": (
        [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
        "bad_content",
        f"The ContentBlock object at messages.0.content.0 must set exactly one of the following keys: {BLOCKS}.",
    ),
    "blank text": ([user(text(" \n"))], "bad_content", blank("messages.0.content.0")),
    "text that is none": ([user({"text": 5})], "bad_content", blank("messages.0.content.0")),
    "blank text in a result": (
        holding(text("")),
        "bad_content",
        blank("messages.2.content.0.toolResult.content.0", "ToolResultContentBlock"),
    ),
    "no id": ([ASKED, assistant(use(None))], "bad_id", constraint(ID, "Value null", "Member must not be null")),
    "an empty id": (
        [ASKED, assistant(use(""))],
        "bad_id",
        constraint(ID, "Value ''", "Member must have length greater than or equal to 1"),
    ),
    "a long id": (
        [ASKED, assistant(use("a" * 65))],
        "bad_id",
        constraint(ID, f"Value '{'a' * 65}'", "Member must have length less than or equal to 64"),
    ),
    "another id": (
        [ASKED, assistant(use("a|b"))],
        "bad_id",
        constraint(ID, "Value 'a|b'", "Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+"),
    ),
    "another id of a result": (
        turn(result("a b")),
        "bad_id",
        constraint(
            f"{INNER}.toolUseId", "Value 'a b'", "Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+"
        ),
    ),
    "a name with a dot": (
        [ASKED, assistant(use("a", "a.b"))],
        "bad_name",
        constraint(NAME, "Value 'a.b'", "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+"),
    ),
    "input as text": (
        [ASKED, assistant(use(input="{}"))],
        "bad_arguments",
        no_object("messages.1.content.0.toolUse.input"),
    ),
    "a call of the user's": (
        [user(use())],
        "misplaced_content",
        "toolUse blocks can only be in assistant messages, not at messages.0.content.0",
    ),
    "a result of the assistant's": (
        [ASKED, assistant(result())],
        "misplaced_content",
        "toolResult blocks can only be in user messages, not at messages.1.content.0",
    ),
    "a call that is none": (
        [ASKED, assistant({"toolUse": "x"})],
        "bad_content",
        constraint("messages.2.member.content.1.member.toolUse", "Value null", "Member must not be null"),
    ),
    "a result that is none": (
        turn({"toolResult": "x"}),
        "bad_content",
        constraint(INNER, "Value null", "Member must not be null"),
    ),
    "a call of another type": (
        [ASKED, assistant(use(type="x"))],
        "bad_content",
        constraint(
            "messages.2.member.content.1.member.toolUse.type",
            "Value 'x'",
            "Member must satisfy enum value set: [server_tool_use]",
        ),
    ),
    "another status": (
        turn(result(status="failed")),
        "bad_content",
        constraint(f"{INNER}.status", "Value 'failed'", "Member must satisfy enum value set: [success, error]"),
    ),
    "content as text": (
        turn({"toolResult": {"toolUseId": "a", "content": "ok"}}),
        "bad_content",
        constraint(f"{INNER}.content", "Value null", "Member must not be null"),
    ),
    "another block in a result": (
        holding({"toolUse": {}}),
        "bad_content",
        (
            "The ToolResultContentBlock object at messages.2.content.0.toolResult.content.0 must set exactly one of the following "
            "keys: json, text, image, document, video, searchResult."
        ),
    ),
    "data that is a list": (
        holding({"json": [1]}),
        "bad_content",
        no_object("messages.2.content.0.toolResult.content.0.json"),
    ),
    "data with a type inside": (
        holding({"json": {"q": [{"__type": 1}]}}),
        "bad_content",
        no_object("messages.2.content.0.toolResult.content.0.json"),
    ),
    "another image": (
        holding(image("tiff")),
        "bad_content",
        constraint(
            f"{IN_RESULT}.image.format", "Value 'tiff'", "Member must satisfy enum value set: [png, jpeg, gif, webp]"
        ),
    ),
    "another document": (
        holding(text("x"), document(form="ppt")),
        "bad_content",
        constraint(
            f"{INNER}.content.2.member.document.format",
            "Value 'ppt'",
            "Member must satisfy enum value set: [pdf, csv, doc, docx, xls, xlsx, html, txt, md]",
        ),
    ),
    "no bytes": (
        holding(image(data=b"")),
        "bad_content",
        constraint(f"{IN_RESULT}.image.source.bytes", "Value ''", "Member must have length greater than or equal to 1"),
    ),
    "an image without a source": (
        holding({"image": {"format": "png"}}),
        "bad_content",
        constraint(f"{IN_RESULT}.image.source", "Value null", "Member must not be null"),
    ),
    "an image that is none": (
        holding({"image": "x"}),
        "bad_content",
        constraint(f"{IN_RESULT}.image", "Value null", "Member must not be null"),
    ),
    "a big image": (
        holding(image(data=b"x" * 3_932_161)),
        "bad_content",
        "The image at messages.2.content.0.toolResult.content.0 has 3932161 bytes, more than 3932160",
    ),
    "a document's name with a dot": (holding(text("x"), document("a.pdf")), "bad_name", FILE_NAME),
    "a document's name with two blanks": (holding(text("x"), document("a  b")), "bad_name", FILE_NAME),
    "a document without a name": (
        holding(text("x"), document(None)),
        "bad_name",
        constraint(f"{INNER}.content.2.member.document.name", "Value null", "Member must not be null"),
    ),
    "a document alone": (
        holding(document()),
        "bad_content",
        "A document at messages.2.content.0.toolResult.content needs a text block beside it",
    ),
    "a document alone in a message": (
        [user(document())],
        "bad_content",
        "A document at messages.0.content needs a text block beside it",
    ),
    "an image of the assistant's": (
        [ASKED, assistant(image())],
        "bad_content",
        "You can only include images and documents if the role is user, not at messages.1.content.0",
    ),
    "too many images": (holding(*[image()] * 21), "bad_content", "messages.2: you can include up to 20 images, not 21"),
    "too many documents": (
        holding(text("x"), *[document(f"d {n}") for n in range(6)]),
        "bad_content",
        "messages.2: you can include up to five documents, not 6",
    ),
    "reasoning that was changed": (
        [ASKED, assistant(reasoning("hm!", sign("hm")), use()), user(result())],
        "reasoning_pair",
        "The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
}


@pytest.mark.parametrize(("messages", "rule", "message"), BROKEN.values(), ids=BROKEN)
def test_refused(messages: Any, rule: Rule, message: str) -> None:
    """What the API refuses is refused, by this rule, in these words."""
    refusal = check_bedrock(messages)
    assert refusal is not None
    assert (refusal.rule, refusal.message, refusal.status) == (rule, message, 400)


STATUS = "This model doesn't support the status field. Remove status and try again."
ALONE = "Conversation blocks and tool result blocks cannot be provided in the same turn."
FAMILIES: dict[str, tuple[list[Json], str, str]] = {
    "a mark": (turn(result(status="error")), "writer.palmyra-x5-v1:0", STATUS),
    "text beside results": (turn(result(), text("x")), "us.meta.llama4-maverick-17b-instruct-v1:0", ALONE),
    "an image beside results": (turn(result(), image()), "mistral.pixtral-large-2502-v1:0", ALONE),
}


@pytest.mark.parametrize(("messages", "model", "message"), FAMILIES.values(), ids=FAMILIES)
def test_refused_by_some_models(messages: list[Json], model: str, message: str) -> None:
    """Families of models have rules of their own (LANES 5)."""
    refusal = check_bedrock(messages, model=model)
    assert refusal is not None
    assert refusal.message == message
    for other in (None, "anthropic.claude-sonnet-4-5"):
        assert check_bedrock(messages, model=other) is None
    assert check_bedrock(turn(result(), {"cachePoint": {"type": "default"}}), model=model) is None


TOOLS = {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}]}


def test_tools_must_be_declared_as_long_as_the_conversation_has_them() -> None:
    """Even for a last turn without any (LANES 5)."""
    messages = [*turn(result()), assistant(text("x")), ASKED]
    refusal = check_bedrock_body({"messages": messages}, "m")
    assert refusal is not None
    assert refusal.message == CONFIG
    assert check_bedrock_body({"messages": messages, "toolConfig": TOOLS}, "m") is None
    assert check_bedrock_body({"messages": [ASKED]}, "m") is None
    nameless = {"tools": [{"toolSpec": {"name": "a b"}}]}
    refusal = check_bedrock_body({"messages": [ASKED], "toolConfig": nameless}, "m")
    assert refusal is not None
    assert "toolConfig.tools.1.member.toolSpec.name" in refusal.message


WORDS = st.sampled_from(
    [
        "role",
        "content",
        "text",
        "user",
        "assistant",
        "toolUse",
        "toolResult",
        "toolUseId",
        "name",
        "input",
        "json",
        "image",
        "document",
        "format",
        "source",
        "bytes",
        "type",
        "server_tool_use",
        "status",
        "error",
        "png",
        "a",
        "reasoningContent",
        "reasoningText",
        "signature",
        "__type",
        "cachePoint",
        "tools",
        "toolSpec",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | WORDS | st.just(""),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)
BLOCK = st.one_of(
    st.fixed_dictionaries({"text": WORDS | VALUES}),
    st.fixed_dictionaries(
        {"toolUse": st.fixed_dictionaries({"toolUseId": WORDS, "name": WORDS, "input": VALUES}) | VALUES}
    ),
    st.fixed_dictionaries(
        {"toolResult": st.fixed_dictionaries({"toolUseId": WORDS, "content": st.lists(VALUES, max_size=2)}) | VALUES}
    ),
    st.fixed_dictionaries({"document": VALUES}),
    st.fixed_dictionaries({"image": VALUES}),
    st.fixed_dictionaries({"reasoningContent": VALUES}),
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.lists(BLOCK, max_size=3)}),
    max_size=5,
)


@settings(max_examples=300, deadline=None)
@given(MESSAGES | VALUES, st.sampled_from([None, "writer.x", "meta.x"]))
def test_whatever_comes_is_judged(messages: object, name: str | None) -> None:
    """A judge that crashes has not judged."""
    check_bedrock(messages, model=name)


@settings(max_examples=100, deadline=None)
@given(st.fixed_dictionaries({"messages": MESSAGES | VALUES}, optional={"toolConfig": VALUES}))
def test_whatever_body_comes_is_judged(body: Json) -> None:
    """So it is with whole bodies."""
    check_bedrock_body(body, "m")
