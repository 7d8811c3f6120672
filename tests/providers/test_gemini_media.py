"""Gemini: what a result says, and what it holds."""

import base64
import json
from typing import Any

import pytest
from google.genai import types

from tests.providers.google_and_aws import ASKED, call, candidate, collect, gemini_refused, settled
from toolbatch.core import Document, Image, Json, Part, ResourceLink, Text, Url
from toolbatch.providers import gemini

extended = collect(gemini, gemini_refused)
PNG = Image.of(b"png", "image/png")
PDF = Document.of(b"pdf", "application/pdf", "report.pdf")
DEEP = json.loads("[" * 31 + "]" * 31)


def result(value: Any, **options: Any) -> dict[str, Any]:
    """The one result of a call that returned `value`."""
    turn = extended(candidate(call("a")), value, **options)
    response: dict[str, Any] = turn[2]["parts"][0]["functionResponse"]
    return response


def said(value: Any, **options: Any) -> Any:
    return result(value, **options)["response"]


# --- results that are text or data


@pytest.mark.parametrize(
    "value", [{"a": 1}, {"result": None}, {"a": {"output": 1, "error": 2}}, {"n": 2**53}, {"x": 0.1, "y": [1.5, -3e-7]}]
)
def test_an_object_is_the_response(value: dict[str, Any]) -> None:
    """`If "output" and "error" keys are not specified, then whole "response" is treated as function output`."""
    assert said(value) == value


@pytest.mark.parametrize("value", [{"output": 1}, {"error": "none found"}, {"error": None, "rows": []}, {}])
def test_an_object_that_would_be_misread_is_the_output(value: dict[str, Any]) -> None:
    """A success with a key of Gemini's own is no failure and no part of itself (O4)."""
    assert said(value) == {"output": value}


@pytest.mark.parametrize("value", [[], [1, "a"], [{"a": 1}]])
def test_a_list_is_the_output(value: list[Any]) -> None:
    """`response` is an object, so what is none goes in one."""
    assert said(value) == {"output": value}


@pytest.mark.parametrize("text", ["", "4 degrees", "null", "1", "true", '"x"', "{", "[1", "{'a': 1}", "007"])
def test_text_stays_text(text: str) -> None:
    """A tool's own text goes as it is, also where it looks like a number (C7)."""
    assert said(text) == {"output": text}


UNSAFE = {
    "a reference": '{"schema":{"$ref":"#/$defs/A"}}',
    "a reference in a list": '[{"a":[{"$ref":"x"}]}]',
    "a big integer": '{"id":9007199254740993}',
    "a huge integer": '{"id":123456789012345678901234567890}',
    "a long fraction": '{"x":3.14159265358979323846}',
    "an infinity": '{"x":1e999}',
    "a name twice": '{"a":1,"a":2}',
    "half a pair": '{"a":"\\ud83d"}',
    "half a pair in a name": '{"\\ud83d":1}',
    "no JSON": '{"x":NaN}',
    "too deep": json.dumps(DEEP),
}


@pytest.mark.parametrize("text", UNSAFE.values(), ids=UNSAFE)
def test_data_that_would_change_or_be_refused_stays_text(text: str) -> None:
    """What the server would read otherwise, or refuse for ever, is sent to the byte, as text."""
    assert said(text) == {"output": text}


def test_the_deepest_data() -> None:
    """Thirty levels are still data."""
    assert said(DEEP[0]) == {"output": DEEP[0]}


def test_a_failure_is_an_error() -> None:
    """The key is the lane's error mark; its value is the failure that every lane sends (P4)."""
    assert said(ValueError('a "bad" value')) == {"error": {"code": "tool_error", "message": 'a "bad" value'}}


# --- parts


def test_text_and_data_in_parts() -> None:
    """Texts are one text, a line a part; with data among them they are a list; data alone is as if returned alone."""
    assert said([Text("a"), Text("b")]) == {"output": "a\nb"}
    assert said([Text("a"), Json({"k": 1}), Json([2])]) == {"output": ["a", {"k": 1}, [2]]}
    assert said(Json({"k": 1})) == {"k": 1}
    assert said(Json({"output": 1})) == {"output": {"output": 1}}
    assert said([Json({"$ref": "x"}), Text("a")]) == {"output": '{"$ref":"x"}\na'}
    assert said(Text(" ")) == {"output": "[the result is empty]"}


def test_media_is_nested() -> None:
    """Images, PDFs and plain text stand in the result they belong to, and the result names them (FIELD 113)."""
    made = result([Text("Here:"), PNG, PDF, Document.of(b"plain", "text/plain")])
    assert made["response"] == {
        "output": "Here:\n[attached: file 1.png]\n[attached: report.pdf]\n[attached: file 3.txt]"
    }
    assert made["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "cG5n", "displayName": "file 1.png"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "cGRm", "displayName": "report.pdf"}},
        {"inlineData": {"mimeType": "text/plain", "data": "cGxhaW4=", "displayName": "file 3.txt"}},
    ]
    parts = types.FunctionResponse.model_validate(made).parts
    assert parts is not None
    assert parts[0].inline_data is not None
    assert parts[0].inline_data.data == b"png"


def test_the_developer_api_gets_no_references() -> None:
    """It refuses the documented `$ref`, so nothing points at media unless it is asked for."""
    assert "$ref" not in json.dumps(extended(candidate(call("a")), [PNG, PDF]))


def test_references_on_request() -> None:
    """Vertex AI resolves references: each name is there, and pointed at once."""
    made = result([Text("Here:"), PNG, PDF, PDF], media="referenced")
    assert made["response"] == {
        "output": ["Here:", {"$ref": "file 1.png"}, {"$ref": "report.pdf"}, {"$ref": "report.pdf (2)"}]
    }
    assert [part["inlineData"]["displayName"] for part in made["parts"]] == [
        "file 1.png",
        "report.pdf",
        "report.pdf (2)",
    ]
    assert said(PNG, media="referenced") == {"output": {"$ref": "file 1.png"}}


@pytest.mark.parametrize(
    "name", ["a/b\\c:d*e?.pdf", "  blank  s ", "n" * 300, "\x00\n", "日本語.pdf", "(1) [x]-y_z.pdf"]
)
def test_names_of_files(name: str) -> None:
    """A name is what the tool called it, without what is no name, and each once in a result."""
    parts = result([Document.of(b"a", "application/pdf", name), Document.of(b"b", "application/pdf", name)])["parts"]
    labels = [part["inlineData"]["displayName"] for part in parts]
    assert len(set(labels)) == 2
    assert all(label == label.strip() and 0 < len(label) <= 128 and label.isprintable() for label in labels)


def test_media_behind_the_results() -> None:
    """Gemini 2 takes no media in results: it follows all of them, in a content that says whose it is (FIELD 111, 112)."""
    response = candidate(call("a", "draw"), call(None, "look"), call("c", "draw"))
    for image_at in range(3):
        ends: list[Any] = ["text", "text", "text"]
        ends[image_at] = [Text("Here:"), PNG, PDF]
        turn = extended(response, *ends, media="after")
        assert gemini_refused(turn, "gemini-2.5-pro") is None
        assert [set(part) for part in turn[2]["parts"]] == [{"functionResponse"}] * 3
        label = f"{['draw', 'look', 'draw'][image_at]} (call {['a', 'number 2', 'c'][image_at]})"
        assert turn[3] == {
            "role": "user",
            "parts": [
                {"text": f"From the result of {label}:"},
                {"inlineData": {"mimeType": "image/png", "data": "cG5n"}},
                {"inlineData": {"mimeType": "application/pdf", "data": "cGRm"}},
            ],
        }
        assert "it follows the tool results" in turn[2]["parts"][image_at]["functionResponse"]["response"]["output"]


BESIDE = [("image/heic", Image), ("audio/wav", Document), ("video/mp4", Document)]


@pytest.mark.parametrize(("media_type", "kind"), BESIDE)
def test_what_only_a_users_content_holds_follows(media_type: str, kind: Any) -> None:
    """Recordings, films and the pictures of phones are not for results, but the model reads them beside."""
    turn = extended(candidate(call("a")), [kind.of(b"x", media_type)])
    assert turn[3]["parts"][1] == {"inlineData": {"mimeType": media_type, "data": "eA=="}}
    assert "parts" not in turn[2]["parts"][0]["functionResponse"]


WORDS: list[tuple[Part, str]] = [
    (Image.of(b"x", "image/gif"), "[image: image/gif, 1 bytes]"),
    (Image(Url("https://example.org/a.png", "image/png")), "[image: https://example.org/a.png (image/png)]"),
    (Document.of(b"x", "application/msword", "a.doc"), '[document "a.doc": application/msword, 1 bytes]'),
    (Document.of(b"a,b", "text/csv", "a.csv"), '[document "a.csv": text/csv, 3 bytes]\na,b'),
    (ResourceLink("https://example.org/a", "a"), '[resource "a": https://example.org/a]'),
    (Image(Url("gs://bucket/a.png")), "[image: gs://bucket/a.png]"),
    (Document(Url("gs://bucket/a.doc", "application/msword")), "[document: gs://bucket/a.doc (application/msword)]"),
]


@pytest.mark.parametrize(("part", "words"), WORDS, ids=[words for _, words in WORDS])
def test_what_is_not_sent_is_said(part: Part, words: str) -> None:
    """What neither a result nor a content holds is said in text, and a text file is read out (P5)."""
    assert result(part) == {"id": "a", "name": "lookup", "response": {"output": words}}


def test_addresses_that_every_server_reads() -> None:
    """Cloud Storage and the Files API are read by the server itself; other addresses are not everywhere."""
    files = "https://generativelanguage.googleapis.com/v1beta/files/abc-123"
    made = result(
        [Image(Url("gs://bucket/a.png", "image/png")), Document(Url(files)), Document(Url(files, "application/pdf"))]
    )
    assert [part["fileData"] for part in made["parts"]] == [
        {"mimeType": "image/png", "fileUri": "gs://bucket/a.png", "displayName": "file 1.png"},
        {"fileUri": files, "displayName": "file 2.bin"},
        {"mimeType": "application/pdf", "fileUri": files, "displayName": "file 3.pdf"},
    ]


def test_a_jpeg_by_its_other_name() -> None:
    """`image/jpg` is what many libraries say, and no server knows."""
    assert result(Image.of(b"x", "image/jpg"))["parts"][0]["inlineData"]["mimeType"] == "image/jpeg"


def test_bare_results_hold_what_a_content_of_results_can() -> None:
    """`results` and `message` have no place behind: what only fits there is said in words."""
    snapshot = settled(gemini.calls(candidate(call("a"))), [PNG, Document.of(b"x", "audio/wav")])
    nested = gemini.results(snapshot)[0]["functionResponse"]
    assert nested["response"] == {"output": "[attached: file 1.png]\n[document: audio/wav, 1 bytes]"}
    assert len(nested["parts"]) == 1
    behind = gemini.message(snapshot, media="after")["parts"][0]["functionResponse"]
    assert behind["response"] == {"output": "[image: image/png, 3 bytes]\n[document: audio/wav, 1 bytes]"}
    assert "parts" not in behind


def test_bytes_come_through() -> None:
    """Every byte of a picture is in the SDK's own object again."""
    data = bytes(range(256))
    turn = extended(candidate(call("a")), Image.of(data, "image/png"))
    (part,) = types.Content.model_validate(turn[2]).parts or []
    assert part.function_response is not None
    assert part.function_response.parts is not None
    assert part.function_response.parts[0].inline_data is not None
    assert part.function_response.parts[0].inline_data.data == data
    assert base64.b64decode(turn[2]["parts"][0]["functionResponse"]["parts"][0]["inlineData"]["data"]) == data


def test_what_the_lane_says_it_carries() -> None:
    """The table for the documentation is found out by placing one part of each sort."""
    nested = {sort for sort, place in gemini.CARRIES.items() if place == "nested"}
    assert nested == {"JSON", "PNG, JPEG", "WebP", "PDF", "text file"}
    assert {sort for sort, place in gemini.CARRIES.items() if place == "after"} == {"recording", "film"}


def test_the_turn_ends_in_its_own_contents() -> None:
    """Whatever travels, the contents before the turn are the same objects."""
    history: list[Any] = [ASKED]
    extended(candidate(call("a")), [PNG, Document.of(b"x", "audio/wav")], history=history)
    assert history[0] is ASKED
    assert [content["role"] for content in history] == ["user", "model", "user", "user"]
