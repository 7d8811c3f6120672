"""Responses: what is refused, in which words, and what is not."""

import pytest

from tests.testing.transcripts import USER, Json, call_item, output_item
from toolbatch.testing import Rule, check_responses

PROGRAM = {"type": "program", "caller_id": "prog_1"}
REASONING: Json = {"type": "reasoning", "id": "rs_1", "summary": []}
SAID: Json = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
WEB: Json = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
CUSTOM: Json = {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select 1"}
CUSTOM_OUTPUT: Json = {"type": "custom_tool_call_output", "call_id": "a", "output": "1"}
PARTS = [
    {"type": "input_text", "text": "ok"},
    {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
    {"type": "input_image", "file_id": "file_1"},
    {"type": "input_image", "image_url": "https://example.org/a", "detail": "low"},
    {"type": "input_file", "file_id": "file_1"},
    {"type": "input_file", "file_url": "https://example.org/a.csv"},
    {"type": "input_file", "filename": "a.csv", "file_data": "data:text/csv;base64,AA=="},
]


def turn_with(**part: object) -> list[Json]:
    """A call whose output is this one part."""
    return [call_item("a"), output_item("a", [part])]


VALID: dict[str, object] = {
    "a question": "Hi.",
    "a message": [USER],
    "a turn": [USER, call_item("a"), call_item("b"), output_item("b"), output_item("a")],
    "a message between call and output": [USER, call_item("a"), SAID, USER, output_item("a")],
    "a custom call": [CUSTOM, CUSTOM_OUTPUT],
    "an id used again after its output": [call_item("a"), output_item("a"), call_item("a"), output_item("a")],
    "an asynchronous call that is open": [call_item("a", **{"async": True}), USER],
    "an asynchronous call that is answered": [call_item("a", **{"async": True}), USER, output_item("a")],
    "a program's call": [call_item("a", caller=PROGRAM), output_item("a", caller=PROGRAM)],
    "a direct caller left out": [call_item("a", caller={"type": "direct"}), output_item("a")],
    "an output in parts": [call_item("a"), output_item("a", PARTS)],
    "an empty output": [call_item("a"), output_item("a", "")],
    "an output without a call": [{"type": "function_call_output", "name": "f", "output": "ok"}, USER],
    "an id of 64 characters": [call_item("a" * 64), output_item("a" * 64)],
    "hosted calls": [USER, WEB, {"type": "mcp_call", "id": "mcp_1", "name": "f", "arguments": "{}"}, SAID],
    "a tool search of the server": [{"type": "tool_search_call", "execution": "server"}],
    "reasoning and its call": [REASONING, call_item("a"), output_item("a")],
    "reasoning and its message": [REASONING, SAID],
    "reasoning and a hosted call": [REASONING, WEB, SAID],
    "reasoning without an id": [{"type": "reasoning", "summary": []}, USER],
    "an output for a call that a reference may stand for": [{"type": "item_reference", "id": "fc_9"}, output_item("z")],
    "a shell call that is known by its id": [
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "a", "status": "completed", "action": {}},
        {"type": "local_shell_call_output", "id": "a", "output": "ok"},
    ],
}

# name -> input, rule, param, the provider's sentence
BROKEN: dict[str, tuple[object, Rule, str, str]] = {
    # pairing
    "no output": ([USER, call_item("a")], "missing_result", "input", "No tool output found for function call a."),
    "one of two outputs": (
        [call_item("a"), call_item("b"), output_item("a")],
        "missing_result",
        "input",
        "No tool output found for function call b.",
    ),
    "no output for a custom call": (
        [CUSTOM, USER],
        "missing_result",
        "input",
        "No tool output found for custom tool call a.",
    ),
    "no output for a client's tool search": (
        [{"type": "tool_search_call", "call_id": "a", "execution": "client"}],
        "missing_result",
        "input",
        "No tool output found for tool search call a.",
    ),
    "async that is not true": (
        [call_item("a", **{"async": False})],
        "missing_result",
        "input",
        "No tool output found for function call a.",
    ),
    "no call": (
        [USER, output_item("a")],
        "orphan_result",
        "input",
        "No tool call found for function call output with call_id a.",
    ),
    "an output before its call": (
        [output_item("a"), call_item("a")],
        "orphan_result",
        "input",
        "No tool call found for function call output with call_id a.",
    ),
    "an answer to a hosted call": (
        [WEB, output_item("ws_1")],
        "orphan_result",
        "input",
        "No tool call found for function call output with call_id ws_1.",
    ),
    "an answer by item id": (
        [call_item("a", id="fc_1"), output_item("fc_1")],
        "orphan_result",
        "input",
        "No tool call found for function call output with call_id fc_1.",
    ),
    "two outputs": (
        [call_item("a"), output_item("a"), output_item("a")],
        "duplicate_result",
        "input",
        "Duplicate tool output for call_id: a",
    ),
    "two open calls with one id": (
        [call_item("a"), call_item("a"), output_item("a")],
        "duplicate_call",
        "input",
        "call_id a",
    ),
    "one item twice": (
        [call_item("a", id="fc_1"), output_item("a"), call_item("b", id="fc_1"), output_item("b")],
        "duplicate_call",
        "input",
        "Duplicate item found with id fc_1. Remove duplicate items from your input and try again.",
    ),
    "a function's output for a custom call": (
        [CUSTOM, output_item("a")],
        "result_kind",
        "input",
        "No tool call found for function call output with call_id a.",
    ),
    "a custom output for a function call": (
        [call_item("a"), CUSTOM_OUTPUT],
        "result_kind",
        "input",
        "No tool call found for custom tool call output with call_id a.",
    ),
    "a program's call answered without it": (
        [call_item("a", caller=PROGRAM), output_item("a")],
        "result_kind",
        "input",
        "does not match its call's",
    ),
    "a program's call answered for another": (
        [call_item("a", caller=PROGRAM), output_item("a", caller=PROGRAM | {"caller_id": "prog_2"})],
        "result_kind",
        "input",
        "does not match its call's",
    ),
    # reasoning
    "reasoning before a user's message": (
        [REASONING, USER],
        "reasoning_pair",
        "input",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    "reasoning at the end": (
        [USER, REASONING],
        "reasoning_pair",
        "input",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    "reasoning before an output": (
        [call_item("a"), REASONING, output_item("a")],
        "reasoning_pair",
        "input",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    # ids and names
    "an empty call_id": (
        [call_item(""), output_item("")],
        "bad_id",
        "input[0].call_id",
        (
            "Invalid 'input[0].call_id': empty string. "
            "Expected a string with minimum length 1, but got an empty string instead."
        ),
    ),
    "a call_id of 65 characters": (
        [USER, call_item("a" * 65)],
        "bad_id",
        "input[1].call_id",
        (
            "Invalid 'input[1].call_id': string too long. "
            "Expected a string with maximum length 64, but got a string with length 65 instead."
        ),
    ),
    "an output without anything to pair": (
        [{"type": "function_call_output", "output": "ok"}],
        "bad_id",
        "input[0].call_id",
        "Missing required parameter: 'input[0].call_id'.",
    ),
    "a custom output without call_id": (
        [{"type": "custom_tool_call_output", "name": "f", "output": "ok"}],
        "bad_id",
        "input[0].call_id",
        "Missing required parameter: 'input[0].call_id'.",
    ),
    "the call_id in place of the item's id": (
        [call_item("a", id="call_a"), output_item("a")],
        "bad_id",
        "input[0].id",
        "Invalid 'input[0].id': 'call_a'. Expected an ID that begins with 'fc'.",
    ),
    "a name with a dot": (
        [call_item("a", name="a.b")],
        "bad_name",
        "input[0].name",
        "Invalid 'input[0].name': string does not match pattern.",
    ),
    # content
    "arguments that are an object": (
        [call_item("a", arguments={})],
        "bad_arguments",
        "input[0].arguments",
        "Invalid type for 'input[0].arguments': expected a string, but got an object instead.",
    ),
    "a custom call without input": (
        [{k: v for k, v in CUSTOM.items() if k != "input"}],
        "bad_arguments",
        "input[0].input",
        "Missing required parameter: 'input[0].input'.",
    ),
    "an output that is an object": (
        [call_item("a"), output_item("a", {"degrees": 4})],
        "bad_content",
        "input[1].output",
        "Invalid type for 'input[1].output': expected one of an array of objects or string, but got an object instead.",
    ),
    "an output of null": (
        [call_item("a"), output_item("a", None)],
        "bad_content",
        "input[1].output",
        "but got null instead.",
    ),
    "no output field": (
        [call_item("a"), {"type": "function_call_output", "call_id": "a"}],
        "bad_content",
        "input[1].output",
        "Missing required parameter: 'input[1].output'.",
    ),
    "an output of the model's text parts": (
        [call_item("a"), output_item("a", [{"type": "output_text", "text": "ok"}])],
        "bad_content",
        "input[1].output[0]",
        "Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
    ),
    "an output of no parts": (
        [call_item("a"), output_item("a", [])],
        "bad_content",
        "input[1].output",
        "Invalid 'input[1].output': empty array.",
    ),
    "status as an error mark": (
        [call_item("a"), output_item("a", status="failed")],
        "bad_content",
        "input[1].status",
        "Invalid value: 'failed'. Supported values are: 'in_progress', 'completed', and 'incomplete'.",
    ),
    "an image without a source": (
        [call_item("a"), output_item("a", [{"type": "input_image"}])],
        "bad_content",
        "input[1].output[0].image_url",
        "Missing required parameter: 'input[1].output[0].image_url'.",
    ),
    "an image of another type": (
        turn_with(type="input_image", image_url="data:application/pdf;base64,AA=="),
        "bad_content",
        "input[1].output[0].image_url",
        (
            "Invalid 'input[1].output[0].image_url'. Expected a base64-encoded data URL with an image MIME type "
            "(e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got unsupported MIME type 'application/pdf'."
        ),
    ),
    "an image of no base64": (
        turn_with(type="input_image", image_url="data:image/png;base64,%"),
        "bad_content",
        "input[1].output[0].image_url",
        "but got an invalid base64-encoded value.",
    ),
    "a file of bare base64": (
        turn_with(type="input_file", filename="a.pdf", file_data="AA=="),
        "bad_content",
        "input[1].output[0].file_data",
        "Invalid 'input[1].output[0].file_data'.",
    ),
    "a file that is a film": (
        turn_with(type="input_file", filename="a.mp4", file_data="data:video/mp4;base64,AA=="),
        "bad_content",
        "input[1].output[0].file_data",
        "Invalid 'input[1].output[0].file_data'.",
    ),
    "a file without a name": (
        turn_with(type="input_file", file_data="data:text/csv;base64,AA=="),
        "bad_content",
        "input[1].output[0].filename",
        "Missing required parameter: 'input[1].output[0].filename'.",
    ),
    "a file of nothing": (
        turn_with(type="input_file"),
        "bad_content",
        "input[1].output[0].file_id",
        "Missing required parameter: 'input[1].output[0].file_id'.",
    ),
    "a file behind a number": (
        turn_with(type="input_file", file_url=7),
        "bad_content",
        "input[1].output[0].file_url",
        "Invalid type for 'input[1].output[0].file_url': expected a string, but got an integer instead.",
    ),
    "an assistant's message in input parts": (
        [{"role": "assistant", "content": [{"type": "input_text", "text": "ok"}]}],
        "bad_content",
        "input[0].content[0]",
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    "a patch output without its status": (
        [{"type": "apply_patch_call_output", "call_id": "a"}],
        "bad_content",
        "input[0].status",
        "Supported values are: 'completed' and 'failed'.",
    ),
    "a shell output that is a string": (
        [{"type": "shell_call_output", "call_id": "a", "output": "ok"}],
        "bad_content",
        "input[0].output",
        "expected an array of objects, but got a string instead.",
    ),
    # items
    "a Chat message": ([{"role": "tool", "content": "ok"}], "bad_request", "input[0].role", "Invalid value: 'tool'."),
    "an unknown type": ([{"type": "tool_result"}], "bad_request", "input[0].type", "Invalid value: 'tool_result'."),
    "an item without a type": ([{}], "bad_request", "input[0].type", "Missing required parameter: 'input[0].type'."),
    "an item that is a string": (
        ["Hi."],
        "bad_request",
        "input[0]",
        "expected an input item, but got a string instead.",
    ),
    "an input that is an object": (USER, "bad_request", "input", "expected one of a string or array of input items"),
}


@pytest.mark.parametrize("items", VALID.values(), ids=VALID)
def test_valid_inputs_are_accepted(items: object) -> None:
    assert check_responses(items) is None


@pytest.mark.parametrize(("items", "rule", "param", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_inputs_are_refused_in_the_providers_words(items: object, rule: Rule, param: str, message: str) -> None:
    rejection = check_responses(items)
    assert rejection is not None
    assert (rejection.rule, rejection.param, rejection.status) == (rule, param, 400)
    assert message in rejection.message


def rule_of(items: object, previous: list[Json], stored: dict[str, Json] | None = None) -> Rule | None:
    rejection = check_responses(items, previous=previous, stored=stored)
    return None if rejection is None else rejection.rule


def test_calls_of_the_previous_response_must_be_answered() -> None:
    assert rule_of([output_item("a")], [USER, call_item("a")]) is None
    assert rule_of([USER], [USER, call_item("a")]) == "missing_result"
    assert rule_of("Hi.", [USER, call_item("a")]) == "missing_result"
    assert rule_of([output_item("b")], [USER, call_item("a")]) == "orphan_result"


def test_answers_of_the_previous_response_are_not_given_again() -> None:
    assert rule_of([output_item("a")], [call_item("a"), output_item("a")]) == "duplicate_result"


def test_an_asynchronous_call_may_be_answered_in_any_later_request() -> None:
    call = call_item("a", **{"async": True})
    assert rule_of([USER], [call]) is None
    assert rule_of([output_item("a")], [call, USER]) is None


def test_items_of_the_previous_response_are_not_sent_again() -> None:
    call = call_item("a", id="fc_1")
    assert rule_of([call, output_item("a")], [call]) == "duplicate_call"


def test_a_reference_stands_for_a_stored_item() -> None:
    reference = {"type": "item_reference", "id": "fc_1"}
    stored = {"fc_1": call_item("a", id="fc_1")}
    assert rule_of([reference, output_item("a")], [], stored) is None
    assert rule_of([reference, output_item("b")], [], stored) == "orphan_result"
    assert rule_of([{"id": "fc_1"}], [], stored) == "missing_result"
    assert rule_of([reference], [], {}) == "not_found"


def test_reasoning_that_the_previous_response_ended_with_is_not_judged_again() -> None:
    assert rule_of([USER], [REASONING]) is None
