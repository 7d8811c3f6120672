"""Rich results in the first three lanes: shapes, places, and what a strict server says of them (P5, FIELD O)."""

import base64
import json
from itertools import product
from typing import Any

import pytest

from tests.providers.outcomes import PNG, ended, succeeded
from tests.providers.support import (
    ANTHROPIC,
    CHAT,
    LANES,
    RESPONSES,
    USER,
    Lane,
    chat,
    exhaust,
    item,
    message,
    responses,
    use,
)
from toolbatch.core import Data, Document, Image, InvalidInputError, Json, Part, ResourceLink, Text, ToolCall, Url
from toolbatch.providers import anthropic, openai_chat, openai_responses
from toolbatch.providers._content import CARRIED

EACH_LANE = pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
PNG64 = base64.b64encode(PNG).decode()
IMAGE = Image.of(PNG, "image/png")
IMAGE_URL = Image(Url("https://example.org/a.png"))
PDF = Document.of(b"%PDF-1.7", "application/pdf", "Report")
PDF64 = base64.b64encode(b"%PDF-1.7").decode()
PDF_URL = Document(Url("https://example.org/a.pdf", "application/pdf"), "Report")
NOTES = Document.of(b"a,b\n", "text/csv", "notes.csv")
FILM = Document.of(b"1", "video/mp4", "film.mp4")
LINK = ResourceLink("db://rows/1", "rows", "text/html", "All rows.")
CODE = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
PROGRAM = {"type": "program", "caller_id": "call_prog"}


def accepted(lane: Lane, messages: list[Any]) -> None:
    """Every judge takes it, and so do the SDK's own types, to the last block."""
    assert lane.refused(messages) is None
    exhaust(lane.adapter.validate_python(messages))
    json.dumps(messages, allow_nan=False).encode()


def content(lane: Lane, *parts: Part | str) -> Any:
    """What stands in the result of one call that returned these parts."""
    response = lane.respond(lane.call("a"))
    snapshot = succeeded(lane.module.calls(response), list(parts))
    turn = lane.extended(response, snapshot)
    accepted(lane, turn)
    (first, *_) = lane.module.results(snapshot)
    return first.get("content", first.get("output"))


@EACH_LANE
@pytest.mark.parametrize("part", CARRIED.values(), ids=CARRIED)
def test_every_sort_of_part_is_accepted(lane: Lane, part: Part) -> None:
    """Alone, among text, in `results` and in `extend`, and with a type that the lane may not know."""
    content(lane, part)
    content(lane, "See.", part, part)


@EACH_LANE
def test_text_and_data_are_one_text(lane: Lane) -> None:
    """What is all text goes as one text: JSON as it was encoded, a link in words."""
    said = 'See.\n{"a":[1]}\n[resource "rows": db://rows/1 (text/html), All rows.]'
    assert content(lane, "See.", Json({"a": [1]}), LINK) == said
    assert content(lane, Json({"a": 1})) == '{"a":1}'


def test_anthropic_nests() -> None:
    """Images and documents stand in the result, in the parts' order (FIELD 113)."""
    assert content(ANTHROPIC, "See.", IMAGE, Json(1), IMAGE_URL, PDF, PDF_URL, NOTES) == [
        {"type": "text", "text": "See."},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG64}},
        {"type": "text", "text": "1"},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF64},
            "title": "Report",
        },
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}, "title": "Report"},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "a,b\n"},
            "title": "notes.csv",
        },
    ]


@pytest.mark.parametrize(
    "part",
    [
        Image.of(b"1", "image/tiff"),
        Image(Url("https://example.org/a.svg", "image/svg+xml")),
        Image(Url("s3://bucket/a.png", "image/png")),
        Document(Url("https://example.org/a")),
        Document(Url("s3://bucket/a.pdf", "application/pdf")),
        FILM,
        LINK,
    ],
)
def test_anthropic_says_the_rest(part: Part) -> None:
    """Types that the API refuses, and addresses that it can't fetch from, are said."""
    assert content(ANTHROPIC, part).startswith("[")


def test_anthropic_images_have_a_bound() -> None:
    """5 MB of base64, which Bedrock and Google Cloud take too: more is said, since a refused image is refused for ever."""
    largest = Image.of(PNG + b"\0" * (3_932_160 - len(PNG)), "image/png")
    (block,) = content(ANTHROPIC, largest)
    assert len(block["source"]["data"]) == 5_242_880
    too_large = Image.of(PNG + b"\0" * (3_932_161 - len(PNG)), "image/png")
    why = "(not sent: its base64 text is longer than 5,242,880 bytes)"
    assert content(ANTHROPIC, too_large) == f"[image: image/png, 3,932,161 bytes] {why}"


def test_anthropic_code_is_given_text() -> None:
    """Code on the server takes strings: "Image, document, and other content block types are rejected"."""
    response = message(use("a", caller=CODE), use("b", caller={"type": "direct"}), use("c"))
    calls = anthropic.calls(response)
    snapshot = succeeded(calls, [Json({"a": 1}), IMAGE], [IMAGE], [IMAGE])
    code, direct, plain = anthropic.message(snapshot)["content"]
    assert code["content"] == f'{{"a":1}}\n[image: image/png, {len(PNG)} bytes]'
    assert direct["content"] == plain["content"]
    assert direct["content"][0]["type"] == "image"
    accepted(ANTHROPIC, ANTHROPIC.extended(response, snapshot))
    assert [block["type"] for block in anthropic.message(snapshot)["content"]] == ["tool_result"] * 3


def test_chat_carries_behind_the_run() -> None:
    """The tool messages are one unbroken run of text; one message of the user's follows with the rest (FIELD 111, 112)."""
    response = chat(*[CHAT.call(call_id) for call_id in "abc"])
    calls = openai_chat.calls(response)
    snapshot = succeeded(calls, ["See.", IMAGE, IMAGE_URL], "plain", [PDF, NOTES])
    turn = CHAT.extended(response, snapshot)
    size = f"[image: image/png, {len(PNG)} bytes] (it follows the tool results)"
    address = "[image: https://example.org/a.png] (it follows the tool results)"
    report = '[document "Report": application/pdf, 8 bytes] (it follows the tool results)'
    notes = '[document "notes.csv": text/csv, 4 bytes]\na,b\n'
    assert turn[2:5] == [
        {"role": "tool", "tool_call_id": "a", "content": f"See.\n{size}\n{address}"},
        {"role": "tool", "tool_call_id": "b", "content": "plain"},
        {"role": "tool", "tool_call_id": "c", "content": f"{report}\n{notes}"},
    ]
    carried = {
        "role": "user",
        "content": [
            {"type": "text", "text": "From the result of lookup (call a):"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG64}"}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            {"type": "text", "text": "From the result of lookup (call c):"},
            {
                "type": "file",
                "file": {"filename": "Report.pdf", "file_data": f"data:application/pdf;base64,{PDF64}"},
            },
        ],
    }
    assert turn[5:] == [carried]
    assert openai_chat.results(snapshot) == turn[2:]
    accepted(CHAT, turn)


@pytest.mark.parametrize("values", list(product([IMAGE, "text"], repeat=3)))
def test_an_image_at_each_position(values: tuple[Any, ...]) -> None:
    """Only an image that is not the last broke the others' turns (FIELD 112)."""
    response = chat(*[CHAT.call(call_id) for call_id in "abc"])
    turn = CHAT.extended(response, succeeded(openai_chat.calls(response), *values))
    assert [entry["role"] for entry in turn[:5]] == ["user", "assistant", "tool", "tool", "tool"]
    assert len(turn) == (6 if IMAGE in values else 5)
    accepted(CHAT, turn)


def test_the_conversation_goes_on_behind_what_was_carried() -> None:
    """The next turn finds the last one answered, and a turn whose results are missing is still found out."""
    messages: list[Any] = [USER]
    for _ in range(3):
        response = chat(CHAT.call("a"))
        CHAT.extended(response, succeeded(openai_chat.calls(response), IMAGE), messages)
    accepted(CHAT, messages)
    assert [entry["role"] for entry in messages] == ["user", *["assistant", "tool", "user"] * 3]


def test_chat_labels_say_what_stands_in_the_turn() -> None:
    """The id and the name in a label are those of the message beside it: ours where theirs had to go (P6)."""
    response = chat(CHAT.call("x" * 66))
    (call,) = openai_chat.calls(response)
    snapshot = succeeded([call], IMAGE)
    label = CHAT.extended(response, snapshot)[3]["content"][0]["text"]
    assert label == f"From the result of lookup (call {call.id}):"
    assert openai_chat.results(snapshot)[1]["content"][0]["text"] == f"From the result of lookup (call {'x' * 66}):"


def test_chat_legacy_and_custom_carry_too() -> None:
    """The deprecated pair and free-form calls have the same place for images."""
    legacy = chat(function_call={"name": "f", "arguments": "{}"}, finish_reason="function_call")
    turn = CHAT.extended(legacy, succeeded(openai_chat.calls(legacy), IMAGE))
    assert [entry["role"] for entry in turn] == ["user", "assistant", "function", "user"]
    accepted(CHAT, turn)
    custom = chat({"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select"}}, CHAT.call("b"))
    turn = CHAT.extended(custom, succeeded(openai_chat.calls(custom), IMAGE, IMAGE))
    assert [entry["role"] for entry in turn] == ["user", "assistant", "tool", "tool", "user"]
    accepted(CHAT, turn)


def test_responses_nests() -> None:
    """Images and files stand in the output; bytes are `data:` URLs, which alone are taken there."""
    wanted = [
        {"type": "input_text", "text": "See."},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG64}", "detail": "auto"},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
        {"type": "input_file", "filename": "Report.pdf", "file_data": f"data:application/pdf;base64,{PDF64}"},
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        {"type": "input_file", "filename": "notes.csv", "file_data": "data:text/csv;base64,YSxiCg=="},
        {"type": "input_text", "text": '[document "film.mp4": video/mp4, 1 bytes]'},
    ]
    parts: list[Any] = ["See.", IMAGE, IMAGE_URL, PDF, PDF_URL, NOTES, FILM]
    assert content(RESPONSES, *parts) == wanted
    response = responses({"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "select 1"})
    snapshot = succeeded(openai_responses.calls(response), parts)
    assert openai_responses.results(snapshot)[0]["output"] == wanted
    accepted(RESPONSES, RESPONSES.extended(response, snapshot))


@pytest.mark.parametrize(
    "part",
    [
        Image.of(b"1", "image/tiff"),
        Image(Url("s3://bucket/a.png")),
        Document.of(b"1", "application/zip"),
        Document(Url("s3://bucket/a.pdf", "application/pdf")),
        Document(Url("https://example.org/a.mp4", "video/mp4")),
        FILM,
        LINK,
    ],
)
def test_openai_says_the_rest(part: Part) -> None:
    """Types that the API refuses, and addresses that it can't fetch from, are said in both lanes."""
    assert content(RESPONSES, part).startswith("[")
    assert len(CHAT.extended(chat(CHAT.call("a")), succeeded([ToolCall("a", "lookup")], part))) == 3


def test_text_files_of_types_that_responses_does_not_list_are_read_out() -> None:
    """They lose nothing by it."""
    assert content(RESPONSES, Document.of(b"a: 1", "application/yaml")).endswith("bytes]\na: 1")


TOOLS: list[Any] = [
    {"type": "function", "name": "lookup", "output_schema": {"type": "object"}},
    {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "search", "output_schema": {"a": 1}}]},
    {"type": "function", "name": "free"},
    None,
]


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ({"a": 1}, '{"a":1}'),
        ([1], "[1]"),
        ("done", '{"output":"done"}'),
        ("", '{"output":""}'),
        ('{"a": NaN}', '{"output":"{\\"a\\": NaN}"}'),
        ([Json({"a": 1})], '{"a":1}'),
        ([Json({"a": 1}), Text("b")], '{"output":"{\\"a\\":1}\\nb"}'),
    ],
)
def test_a_program_reads_json_where_it_was_promised(value: Any, output: str) -> None:
    """`output_schema` describes "the JSON value encoded in string outputs"; the response says which tools have one."""
    calls_made = [item("a", caller=PROGRAM), item("b", "search", caller=PROGRAM, namespace="crm")]
    others = [item("c", "free", caller=PROGRAM), item("d"), item("e", "search", caller=PROGRAM)]
    response = responses(*calls_made, *others, tools=TOOLS)
    for form in RESPONSES.forms(response)[:1]:
        calls = openai_responses.calls(form)
        first, second, *rest = openai_responses.results(succeeded(calls, *[value] * 5))
        assert [first["output"], second["output"]] == [output] * 2
        assert first["caller"] == second["caller"] == PROGRAM
        assert {entry["output"] for entry in rest} == {
            openai_responses.results(succeeded([ToolCall("a", "f")], value))[0]["output"]
        }
        accepted(RESPONSES, RESPONSES.extended(form, succeeded(calls, *[value] * 5)))


def test_a_program_gets_blocks_and_failures_as_they_are() -> None:
    """The schema "does not describe content-array outputs", and a failure is a JSON object already."""
    response = responses(item("a", caller=PROGRAM), item("b", caller=PROGRAM), tools=TOOLS)
    snapshot = ended(openai_responses.calls(response), [("success", [IMAGE]), ("error", "no")])
    first, second = openai_responses.results(snapshot)
    assert first["output"][0]["type"] == "input_image"
    assert json.loads(second["output"]) == {"error": {"code": "tool_error", "message": "no"}}
    accepted(RESPONSES, RESPONSES.extended(response, snapshot))


@EACH_LANE
def test_failures_among_rich_results_are_text(lane: Lane) -> None:
    """A failure has no parts, and its error mark stands beside text alone (P4)."""
    response = lane.respond(lane.call("a"), lane.call("b"), lane.call("c"))
    snapshot = ended(lane.module.calls(response), [("success", [IMAGE]), ("error", ""), ("closed", None)])
    _, failed, closed = lane.module.results(snapshot)[:3]
    for entry in (failed, closed):
        assert "error" in json.loads(entry.get("content", entry.get("output")))
        assert entry.get("is_error") is (True if lane is ANTHROPIC else None)
    accepted(lane, lane.extended(response, snapshot))


@EACH_LANE
def test_exports_share_nothing(lane: Lane) -> None:
    """Who changes a payload changes no other."""
    response = lane.respond(lane.call("a"))
    snapshot = succeeded(lane.module.calls(response), [IMAGE, PDF])
    first, second = lane.module.results(snapshot), lane.module.results(snapshot)
    assert first == second
    rich = first[-1]["content"] if lane is not RESPONSES else first[-1]["output"]
    rich[-1].clear()
    assert first != second
    assert lane.module.results(snapshot) == second


@EACH_LANE
def test_every_lane_says_what_it_carries(lane: Lane) -> None:
    """By the same sorts, and true: what is said to nest nests."""
    table: dict[str, str] = dict(lane.module.CARRIES)
    assert list(table) == list(CARRIED)
    for sort, where in table.items():
        body = content(lane, CARRIED[sort])
        assert (where == "nested") == isinstance(body, list), sort
        assert (where == "after") == (isinstance(body, str) and body.endswith("(it follows the tool results)")), sort
    images = {"chat": "after", "responses": "nested", "anthropic": "nested"}
    assert table["PNG, JPEG"] == images[lane.name]


@EACH_LANE
def test_models_that_see_nothing_are_told(lane: Lane) -> None:
    """Other servers speak these lanes for models that read text; what is refused once is refused for ever."""
    response = lane.respond(lane.call("a"))
    snapshot = succeeded(lane.module.calls(response), ["See.", IMAGE, PDF])
    messages: list[Any] = [USER]
    lane.module.extend(messages, response, snapshot, media="text")
    said = f'See.\n[image: image/png, {len(PNG)} bytes]\n[document "Report": application/pdf, 8 bytes]'
    (result,) = lane.module.results(snapshot, media="text")
    assert result.get("content", result.get("output")) == said
    assert json.dumps(messages[2:]) == json.dumps(
        [{"role": "user", "content": [result]}] if lane is ANTHROPIC else [result]
    )
    others: list[Any] = ["nested" if lane is CHAT else "after", "", None, []]
    for bad in others:
        with pytest.raises(InvalidInputError, match="media must be one of"):
            lane.module.results(snapshot, media=bad)
        with pytest.raises(InvalidInputError, match="media must be one of"):
            lane.module.extend(messages, response, snapshot, media=bad)
    assert len(messages) == 3


def test_chat_servers_that_take_no_files() -> None:
    """Many take images of the user's, and refuse every `file` part."""
    snapshot = succeeded([ToolCall("a", "f")], [IMAGE, PDF])
    result, carried = openai_chat.results(snapshot, media="images")
    assert result["content"].endswith('\n[document "Report": application/pdf, 8 bytes]')
    assert [part["type"] for part in carried["content"]] == ["text", "image_url"]


def test_anthropic_message_and_late_outputs_too() -> None:
    """Whatever writes results can be told."""
    (block,) = anthropic.message(succeeded([ToolCall("a", "f")], IMAGE), media="text")["content"]
    assert block["content"] == f"[image: image/png, {len(PNG)} bytes]"
    response = responses(item("a", **{"async": True}))
    calls = openai_responses.calls(response)
    messages: list[Any] = []
    openai_responses.extend(messages, response, leave_open=calls)
    (late,) = openai_responses.late_results(messages, [succeeded(calls, IMAGE)], media="text")
    assert late["output"] == block["content"]
    messages = []
    late_too = [succeeded(calls, IMAGE)]
    openai_responses.extend(messages, response, leave_open=calls, late=late_too, media="text")
    assert messages[1] == late


def test_bytes_of_another_type_are_sent_as_what_they_are() -> None:
    """ "Image does not match the provided media type" would come back with every later request."""
    (block,) = content(ANTHROPIC, Image(Data(PNG, "image/jpg")))
    assert block["source"]["media_type"] == "image/png"
    (output,) = content(RESPONSES, Image.of(b"1", "image/jpg"))
    assert output["image_url"].startswith("data:image/jpeg;")
