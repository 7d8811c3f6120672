"""Chat Completions: what is refused, in which words, and what is not."""

from typing import Any

import pytest

from tests.testing.transcripts import USER, Json, chat_call, chat_result
from toolbatch.testing import Rejection, Rule, check_chat
from toolbatch.testing._chat import check_chat_body

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
PDF = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}}
UNSUPPORTED = (
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
    "['png', 'jpeg', 'gif', 'webp']."
)
NOT_A_PDF = (
    "Invalid file data: 'messages[0].content[0].file.file_data'. Expected a base64-encoded data URL with an application/pdf "
    "MIME type (e.g. 'data:application/pdf;base64,SGVsbG8sIFdvcmxkIQ=='), but got "
)


def shown(**image_url: object) -> Any:
    """A message of the user's with this image."""
    return [{"role": "user", "content": [{"type": "image_url", "image_url": image_url}]}]


def given(**file: object) -> Any:
    """A message of the user's with this file."""
    return [{"role": "user", "content": [{"type": "file", "file": file}]}]


UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."


def call_without(key: str) -> Json:
    message = chat_call("a")
    del message["tool_calls"][0][key]
    return message


def function(**change: object) -> Json:
    return chat_call("a", function={"name": "f", "arguments": "{}", **change})


VALID: dict[str, list[Json]] = {
    "a question": [USER],
    "a turn": [USER, chat_call("a", "b"), chat_result("a"), chat_result("b")],
    "results in another order": [USER, chat_call("a", "b"), chat_result("b"), chat_result("a")],
    "an id used again in a later turn": [USER, chat_call("a"), chat_result("a"), chat_call("a"), chat_result("a")],
    "text beside the calls": [USER, chat_call("a") | {"content": "Let me look."}, chat_result("a")],
    "no content beside the calls": [
        USER,
        {k: v for k, v in chat_call("a").items() if k != "content"},
        chat_result("a"),
    ],
    "an id of 40 characters": [USER, chat_call("a" * 40), chat_result("a" * 40)],
    "an id with foreign characters": [USER, chat_call("functions.f:0"), chat_result("functions.f:0")],
    "arguments that are no JSON": [USER, function(arguments='{"a": '), chat_result("a")],
    "arguments that are empty": [USER, function(arguments=""), chat_result("a")],
    "an empty result": [USER, chat_call("a"), chat_result("a", "")],
    "a result in text parts": [USER, chat_call("a"), chat_result("a", [{"type": "text", "text": "ok"}])],
    "a custom call": [
        USER,
        chat_call("a", type="custom", custom={"name": "sql", "input": "select 1"}),
        chat_result("a"),
    ],
    "an image from the user": [{"role": "user", "content": [IMAGE]}],
    "an image behind an address": shown(url="https://example.org/a", detail="low"),
    "a file from the user": [{"role": "user", "content": [PDF]}],
    "a file that was uploaded": given(file_id="file_1"),
    "a refusal played back": [USER, {"role": "assistant", "content": None, "refusal": "No."}],
    "the deprecated pair": [
        USER,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "ok"},
    ],
    "any message after the results": [
        USER,
        chat_call("a"),
        chat_result("a"),
        {"role": "system", "content": "Be brief."},
    ],
}

# name -> messages, rule, param, the provider's sentence
BROKEN: dict[str, tuple[list[object], Rule, str | None, str]] = {
    # pairing
    "no result at the end": ([USER, chat_call("a", "b")], "missing_result", "messages.[1].role", UNANSWERED + "a, b"),
    "one of two results": (
        [USER, chat_call("a", "b"), chat_result("a"), USER],
        "missing_result",
        "messages.[3].role",
        UNANSWERED + "b",
    ),
    "a user message between": (
        [USER, chat_call("a"), USER, chat_result("a")],
        "missing_result",
        "messages.[2].role",
        UNANSWERED + "a",
    ),
    "a user message between two results": (
        [USER, chat_call("a", "b"), chat_result("a"), USER, chat_result("b")],
        "missing_result",
        "messages.[3].role",
        UNANSWERED + "b",
    ),
    "a second calling turn before the results": (
        [USER, chat_call("a"), chat_call("b"), chat_result("a"), chat_result("b")],
        "missing_result",
        "messages.[2].role",
        UNANSWERED + "a",
    ),
    "a result without a turn": ([USER, chat_result("a")], "orphan_result", "messages.[1].role", ORPHAN),
    "a result before its call": ([chat_result("a"), chat_call("a")], "orphan_result", "messages.[0].role", ORPHAN),
    "a result after an answer": (
        [USER, chat_call("a"), chat_result("a"), {"role": "assistant", "content": "ok"}, chat_result("a")],
        "orphan_result",
        "messages.[4].role",
        ORPHAN,
    ),
    "a result for another id": (
        [USER, chat_call("a"), chat_result("b")],
        "unknown_result_id",
        "messages.[2].tool_call_id",
        "Invalid parameter: 'tool_call_id' of 'b' not found in 'tool_calls' of previous message.",
    ),
    "two results for one call": (
        [USER, chat_call("a"), chat_result("a"), chat_result("a")],
        "duplicate_result",
        "messages.[3]",
        "Duplicate value for 'tool_call_id' of a in message[3]",
    ),
    "two calls with one id": (
        [USER, chat_call("a", "a"), chat_result("a")],
        "duplicate_call",
        "messages.[1]",
        "Duplicate value for 'tool_call_id' of a in message[1]",
    ),
    # ids
    "a call without an id": (
        [USER, call_without("id"), chat_result("a")],
        "bad_id",
        "messages[1].tool_calls[0].id",
        "Missing required parameter: 'messages[1].tool_calls[0].id'.",
    ),
    "a call with an empty id": (
        [USER, chat_call(""), chat_result("")],
        "bad_id",
        "messages[1].tool_calls[0].id",
        (
            "Invalid 'messages[1].tool_calls[0].id': empty string. "
            "Expected a string with minimum length 1, but got an empty string instead."
        ),
    ),
    "an id of 41 characters": (
        [USER, chat_call("b", "a" * 41), chat_result("b")],
        "bad_id",
        "messages[1].tool_calls[1].id",
        (
            "Invalid 'messages[1].tool_calls[1].id': string too long. "
            "Expected a string with maximum length 40, but got a string with length 41 instead."
        ),
    ),
    "a result with a long id": (
        [USER, chat_result("a" * 41)],
        "bad_id",
        "messages[1].tool_call_id",
        (
            "Invalid 'messages[1].tool_call_id': string too long. "
            "Expected a string with maximum length 40, but got a string with length 41 instead."
        ),
    ),
    "a result without an id": (
        [USER, chat_call("a"), {"role": "tool", "content": "ok"}],
        "bad_id",
        "messages[2].tool_call_id",
        "Missing required parameter: 'messages[2].tool_call_id'.",
    ),
    # calls
    "a call without a type": (
        [USER, call_without("type")],
        "bad_request",
        "messages[1].tool_calls[0].type",
        "Missing required parameter: 'messages[1].tool_calls[0].type'.",
    ),
    "a call of an unknown type": (
        [USER, chat_call("a", type="tool")],
        "bad_request",
        "messages[1].tool_calls[0].type",
        "Invalid value: 'tool'. Supported values are: 'function' and 'custom'.",
    ),
    "a call without its function": (
        [USER, call_without("function")],
        "bad_request",
        "messages[1].tool_calls[0].function",
        "Missing required parameter: 'messages[1].tool_calls[0].function'.",
    ),
    "arguments that are an object": (
        [USER, function(arguments={})],
        "bad_arguments",
        "messages[1].tool_calls[0].function.arguments",
        (
            "Invalid type for 'messages[1].tool_calls[0].function.arguments': "
            "expected a string, but got an object instead."
        ),
    ),
    "a name with a blank": (
        [USER, function(name="my tool")],
        "bad_name",
        "messages[1].tool_calls[0].function.name",
        (
            "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        ),
    ),
    "a name with a line break at its end": (
        [USER, function(name="f\n")],
        "bad_name",
        "messages[1].tool_calls[0].function.name",
        "string does not match pattern",
    ),
    "a name of 65 characters": (
        [USER, function(name="f" * 65)],
        "bad_name",
        "messages[1].tool_calls[0].function.name",
        "string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
    ),
    "an empty list of calls": (
        [USER, chat_call()],
        "bad_request",
        "messages[1].tool_calls",
        "Invalid 'messages[1].tool_calls': empty array.",
    ),
    "null instead of calls": (
        [USER, {"role": "assistant", "content": "ok", "tool_calls": None}],
        "bad_request",
        "messages[1].tool_calls",
        "Invalid type for 'messages[1].tool_calls': expected an array of objects, but got null instead.",
    ),
    "a custom call without input": (
        [USER, chat_call("a", type="custom", custom={"name": "sql"})],
        "bad_arguments",
        "messages[1].tool_calls[0].custom.input",
        "Missing required parameter: 'messages[1].tool_calls[0].custom.input'.",
    ),
    "a deprecated call with an object": (
        [USER, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": {}}}],
        "bad_arguments",
        "messages[1].function_call.arguments",
        "expected a string, but got an object instead.",
    ),
    "a deprecated result without a name": (
        [USER, {"role": "function", "content": "ok"}],
        "bad_name",
        "messages[1].name",
        "Missing required parameter: 'messages[1].name'.",
    ),
    # content
    "a result of null": (
        [USER, chat_call("a"), chat_result("a", None)],
        "bad_content",
        "messages[2].content",
        "Invalid value for 'content': expected a string, got null.",
    ),
    "a result without content": (
        [USER, chat_call("a"), {"role": "tool", "tool_call_id": "a"}],
        "bad_content",
        "messages[2].content",
        "Missing required parameter: 'messages[2].content'.",
    ),
    "a result that is an object": (
        [USER, chat_call("a"), chat_result("a", {"degrees": 4})],
        "bad_content",
        "messages[2].content",
        (
            "Invalid type for 'messages[2].content': "
            "expected one of a string or array of objects, but got an object instead."
        ),
    ),
    "a result of no parts": (
        [USER, chat_call("a"), chat_result("a", [])],
        "bad_content",
        "messages[2].content",
        "Invalid 'messages[2].content': empty array.",
    ),
    "a result of bare strings": (
        [USER, chat_call("a"), chat_result("a", ["ok"])],
        "bad_content",
        "messages[2].content[0]",
        "Invalid type for 'messages[2].content[0]': expected an object, but got a string instead.",
    ),
    "an image in a result": (
        [USER, chat_call("a"), chat_result("a", [IMAGE])],
        "bad_content",
        "messages[2]",
        (
            "Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', "
            "but this message with role 'tool' contains an image URL."
        ),
    ),
    "an image of another type": (shown(url="data:image/tiff;base64,AA=="), "bad_content", None, UNSUPPORTED),
    "an image of no base64": (shown(url="data:image/png;base64,%"), "bad_content", None, UNSUPPORTED),
    "an image of nothing": (shown(url="data:image/png;base64,"), "bad_content", None, UNSUPPORTED),
    "an image without a place": (
        shown(),
        "bad_content",
        "messages[0].content[0].image_url.url",
        "Missing required parameter: 'messages[0].content[0].image_url.url'.",
    ),
    "an image that is a text": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": "https://example.org/a"}]}],
        "bad_content",
        "messages[0].content[0].image_url",
        "Invalid type for 'messages[0].content[0].image_url': expected an object, but got a string instead.",
    ),
    "an image part of nothing": (
        [{"role": "user", "content": [{"type": "image_url"}]}],
        "bad_content",
        "messages[0].content[0].image_url",
        "Missing required parameter: 'messages[0].content[0].image_url'.",
    ),
    "a file in a result": (
        [USER, chat_call("a"), chat_result("a", [PDF])],
        "bad_content",
        "messages[2].content[0].type",
        "Invalid value: 'file'. Supported values are: 'text'.",
    ),
    "a file of another type": (
        given(filename="a.md", file_data="data:text/markdown;base64,AA=="),
        "bad_content",
        "messages[0].content[0].file.file_data",
        f"{NOT_A_PDF}unsupported MIME type 'text/markdown'.",
    ),
    "a file of bare base64": (
        given(filename="a.pdf", file_data="AA=="),
        "bad_content",
        "messages[0].content[0].file.file_data",
        f"{NOT_A_PDF}an invalid base64-encoded value.",
    ),
    "a file without a name": (
        given(file_data="data:application/pdf;base64,AA=="),
        "bad_content",
        "messages[0].content[0].file.filename",
        "Missing required parameter: 'messages[0].content[0].file.filename'.",
    ),
    "a file of nothing": (
        given(),
        "bad_content",
        "messages[0].content[0].file.file_id",
        "Missing required parameter: 'messages[0].content[0].file.file_id'.",
    ),
    "a Responses part in a result": (
        [USER, chat_call("a"), chat_result("a", [{"type": "input_text", "text": "ok"}])],
        "bad_content",
        "messages[2].content[0].type",
        "Invalid value: 'input_text'. Supported values are: 'text'.",
    ),
    "an assistant message of nothing": (
        [USER, {"role": "assistant", "content": None}],
        "bad_content",
        "messages[1].content",
        "Invalid value for 'content': expected a string, got null.",
    ),
    "a text of more than 10 MiB": (
        [USER, chat_call("a"), chat_result("a", "x" * 10_485_761)],
        "bad_content",
        "messages[2].content",
        "Invalid 'messages[2].content': string too long. Expected a string with maximum length 10485760",
    ),
    # messages
    "an unknown role": (
        [{"role": "bot", "content": "Hi."}],
        "bad_request",
        "messages[0].role",
        (
            "Invalid value: 'bot'. Supported values are: "
            "'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
        ),
    ),
    "a message without a role": (
        [{"content": "Hi."}],
        "bad_request",
        "messages[0].role",
        "Missing required parameter: 'messages[0].role'.",
    ),
    "a message that is a string": (
        [USER, "Hi."],
        "bad_request",
        "messages[1]",
        "Invalid type for 'messages[1]': expected an object, but got a string instead.",
    ),
    "no messages": ([], "bad_request", "messages", "Invalid 'messages': empty array."),
}


@pytest.mark.parametrize("messages", VALID.values(), ids=VALID)
def test_valid_lists_are_accepted(messages: list[Json]) -> None:
    assert check_chat(messages) is None


@pytest.mark.parametrize(("messages", "rule", "param", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_lists_are_refused_in_the_providers_words(
    messages: list[object], rule: Rule, param: str | None, message: str
) -> None:
    rejection = check_chat(messages)
    assert rejection is not None
    assert (rejection.rule, rejection.param, rejection.status) == (rule, param, 400)
    assert message in rejection.message


def test_the_shape_of_every_message_is_checked_before_any_pairing() -> None:
    rejection = check_chat([chat_result("a"), {"role": "bot"}])
    assert rejection is not None
    assert rejection.param == "messages[1].role"


def test_messages_that_are_no_list_are_refused() -> None:
    rejection = check_chat("Hi.")
    assert rejection == Rejection(
        rule="bad_request",
        message="Invalid type for 'messages': expected an array of objects, but got a string instead.",
        param="messages",
        code="invalid_type",
    )


BODIES: dict[str, tuple[Json, str]] = {
    "no model": ({"messages": [USER]}, "you must provide a model parameter"),
    "no messages": ({"model": "m"}, "Missing required parameter: 'messages'."),
    "a bad tool name": (
        {"model": "m", "messages": [USER], "tools": [{"type": "function", "function": {"name": "a.b"}}]},
        "Invalid 'tools[0].function.name': string does not match pattern.",
    ),
}


@pytest.mark.parametrize(("body", "message"), BODIES.values(), ids=BODIES)
def test_bodies_are_checked_before_their_messages(body: Json, message: str) -> None:
    rejection = check_chat_body(body)
    assert rejection is not None
    assert message in rejection.message
