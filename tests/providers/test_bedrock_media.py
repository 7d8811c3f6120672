"""Bedrock: what a result holds, and what the message has room for."""

import re
from typing import Any

import pytest

from tests.providers.google_and_aws import CONVERSE, USER, bedrock_refused, collect, converse, settled, use
from toolbatch.core import Data, Document, Image, Json, Part, ResourceLink, Text, Url
from toolbatch.providers import bedrock

extended = collect(bedrock, bedrock_refused)
PNG = Image.of(b"png", "image/png")
PDF = Document.of(b"pdf", "application/pdf", "report.pdf")
OFFICE = "application/vnd.openxmlformats-officedocument"
LEGAL_NAME = re.compile(r"[a-zA-Z0-9 ()\[\]-]{1,200}")


def content(value: Any, **options: Any) -> list[Any]:
    """The content of the one result of a call that returned `value`."""
    turn = extended(converse(use("a")), value, **options)
    blocks: list[Any] = turn[2]["content"][0]["toolResult"]["content"]
    return blocks


def test_a_result_is_text() -> None:
    """Text goes to the byte; data goes as the JSON that every lane sends, which no server can misread."""
    assert content("4 degrees") == [{"text": "4 degrees"}]
    assert content({"a": 1}) == [{"text": '{"a":1}'}]
    assert content({"q": {"__type": 1}}) == [{"text": '{"q":{"__type":1}}'}]


@pytest.mark.parametrize("blank", ["", " ", "\n\t", [Text("")], [Text(" "), Text("")]])
def test_a_blank_result_says_so(blank: Any) -> None:
    """The API refuses blank text, in results too."""
    assert content(blank) == [{"text": "[the result is empty]"}]


def test_data_on_request() -> None:
    """Models that read `json` alone get it, for objects: `Provide a json object for the field`."""
    assert content({"a": [1]}, data=True) == [{"json": {"a": [1]}}]
    assert content([1], data=True) == [{"text": "[1]"}]
    assert content("4 degrees", data=True) == [{"text": "4 degrees"}]
    failed = content(ValueError("no"), data=True)
    assert failed == [{"text": '{"error":{"code":"tool_error","message":"no"}}'}]


@pytest.mark.parametrize(
    "text", ['{"q":{"__type":1}}', '{"id":9007199254740993}', '{"a":1,"a":2}', '{"a":[{"__type":"x"}]}']
)
def test_data_that_would_change_or_be_refused_stays_text(text: str) -> None:
    """One result that the API refuses would be refused in every later request."""
    assert content(text, data=True) == [{"text": text}]


def test_data_in_parts_that_would_be_refused_stays_text() -> None:
    """A part that is data has no other rule."""
    assert content([Json({"q": {"__type": 1}}), Json({"n": 2**53})]) == [
        {"text": '{"q":{"__type":1}}'},
        {"json": {"n": 2**53}},
    ]


def test_parts() -> None:
    """Each part is a block of its own, in its place; data is an object, or text."""
    parts = [Text("Here:"), Json({"k": 1}), Json([1]), PNG, PDF, Text(" ")]
    assert content(parts) == [
        {"text": "Here:"},
        {"json": {"k": 1}},
        {"text": "[1]"},
        {"image": {"format": "png", "source": {"bytes": b"png"}}},
        {"document": {"format": "pdf", "name": "report pdf", "source": {"bytes": b"pdf"}}},
    ]


IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    f"{OFFICE}.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    f"{OFFICE}.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}


def formats(kind: str) -> list[str]:
    """The formats that botocore knows."""
    known: list[str] = (
        CONVERSE.members["messages"].member.members["content"].member.members[kind].members["format"].enum
    )
    return known


def test_every_format_of_the_api() -> None:
    """Each format that the API has is reached from a media type, and no other."""
    images = [content(Image.of(b"x", media_type))[0]["image"]["format"] for media_type in IMAGES]
    assert images == list(IMAGES.values())
    assert set(images) == set(formats("image"))
    documents = [content([Text("a"), Document.of(b"x", kind)])[1]["document"]["format"] for kind in DOCUMENTS]
    assert documents == list(DOCUMENTS.values())
    assert set(documents) == set(formats("document"))


def test_a_document_has_text_beside_it() -> None:
    """A document alone is refused, so the result says what it is."""
    assert content(PDF) == [
        {"text": '[document "report.pdf": application/pdf, 3 bytes]'},
        {"document": {"format": "pdf", "name": "report pdf", "source": {"bytes": b"pdf"}}},
    ]
    assert "text" in content([Json({"a": 1}), PDF])[0]
    assert content(PNG) == [{"image": {"format": "png", "source": {"bytes": b"png"}}}]


@pytest.mark.parametrize("name", ["a/b\\c:d*e?.pdf", "a  b", "n" * 300, "日本語.pdf", "(1) [x]-y_z.pdf", "..."])
def test_names_of_documents(name: str) -> None:
    """The API checks a document's name, and refuses one that comes twice: each is made fit, and distinct."""
    twice = [Text("a"), Document.of(b"a", "application/pdf", name), Document.of(b"b", "application/pdf", name.upper())]
    names = [block["document"]["name"] for block in content(twice)[1:]]
    assert all(LEGAL_NAME.fullmatch(one) and "  " not in one for one in names)
    assert len({one.lower() for one in names}) == 2


def test_names_are_distinct_over_the_conversation() -> None:
    """`Messages can't contain duplicate document names`: neither with earlier turns nor with the user's own files."""
    own = {
        "role": "user",
        "content": [{"text": "Read."}, {"document": {"name": "report pdf", "source": {"text": "a"}}}],
    }
    history: list[Any] = [own]
    for _ in range(3):
        extended(converse(use("a"), use("b")), [Text("a"), PDF], [Text("b"), PDF], history=history)
        history.append({"role": "assistant", "content": [{"text": "I see."}]})
        history.append(USER)
    found = re.findall(r"'name': '(report[^']*)'", repr(history))
    assert found == ["report pdf", *[f"report pdf ({number})" for number in range(2, 8)]]


def test_images_and_documents_over_the_bounds_are_said() -> None:
    """What the API would refuse for its size or number is said in words, and why; the rest travels."""
    big = Image(Data(b"x" * 3_932_161, "image/png"))
    assert content(big) == [
        {"text": "[image: image/png, 3,932,161 bytes] (not sent: images of more than 3,932,160 bytes are refused)"}
    ]
    assert "image" in content(Image(Data(b"x" * 3_932_160, "image/png")))[0]
    thick = Document(Data(b"x" * 4_718_593, "application/pdf"), "a")
    assert "documents of more than 4,718,592 bytes are refused" in content(thick)[0]["text"]
    assert "document" in content([Text("a"), Document(Data(b"x" * 4_718_592, "application/pdf"))])[1]


def test_the_bounds_of_one_message() -> None:
    """Twenty images and five documents, over all results of the message together."""
    turn = extended(
        converse(use("a"), use("b")), [Text("a"), *[PNG] * 15, *[PDF] * 4], [Text("b"), *[PNG] * 15, *[PDF] * 4]
    )
    blocks = [block for result in turn[2]["content"] for block in result["toolResult"]["content"]]
    assert sum("image" in block for block in blocks) == 20
    assert sum("document" in block for block in blocks) == 5
    said = [block["text"] for block in blocks if "text" in block]
    assert sum("a message holds at most 20 images" in text for text in said) == 10
    assert sum("a message holds at most 5 documents" in text for text in said) == 3


def test_media_behind_the_results() -> None:
    """Models that take no media in results get it behind all of them, in the same message, which says whose it is."""
    response = converse(use("a", "draw"), use("b", "look"), use("c", "draw"))
    for image_at in range(3):
        ends: list[Any] = ["text", "text", "text"]
        ends[image_at] = [Text("Here:"), Json({"k": 1}), PNG, PDF]
        turn = extended(response, *ends, media="after")
        blocks = turn[2]["content"]
        assert [next(iter(block)) for block in blocks] == ["toolResult"] * 3 + ["text", "image", "document"]
        assert blocks[3]["text"] == f"From the result of {['draw', 'look', 'draw'][image_at]} (call {'abc'[image_at]}):"
        inside = blocks[image_at]["toolResult"]["content"]
        assert [next(iter(block)) for block in inside] == ["text", "json", "text", "text"]
        assert "it follows the tool results" in inside[2]["text"]
        snapshot = settled(bedrock.calls(response), *ends)
        assert bedrock.message(snapshot, media="after") == turn[2]


def test_media_in_words() -> None:
    """Models that read no media, or none in a turn with results, get words: a text file whole."""
    turn = extended(converse(use("a")), [PNG, Document.of(b"a,b", "text/csv", "a.csv")], media="text")
    assert turn[2]["content"][0]["toolResult"]["content"] == [
        {"text": "[image: image/png, 3 bytes]"},
        {"text": '[document "a.csv": text/csv, 3 bytes]\na,b'},
    ]
    for family in ("meta.llama3-1-70b", "mistral.mistral-large-2407", "writer.palmyra-x5"):
        assert bedrock_refused(turn, family) is None


WORDS: list[tuple[Part, str]] = [
    (Image.of(b"x", "image/tiff"), "[image: image/tiff, 1 bytes]"),
    (Document.of(b"x", "audio/wav"), "[document: audio/wav, 1 bytes]"),
    (Image(Url("https://example.org/a.png", "image/png")), "[image: https://example.org/a.png (image/png)]"),
    (Image(Url("s3://B/a.png", "image/png")), "[image: s3://B/a.png (image/png)]"),
    (Image(Url(f"s3://bucket/{'a' * 1024}", "image/png")), f"[image: s3://bucket/{'a' * 1024} (image/png)]"),
    (Image(Url("s3://bucket/a.png")), "[image: s3://bucket/a.png]"),
    (ResourceLink("https://example.org/a", "a"), '[resource "a": https://example.org/a]'),
]


@pytest.mark.parametrize(("part", "words"), WORDS, ids=[words[:40] for _, words in WORDS])
def test_what_is_not_sent_is_said(part: Part, words: str) -> None:
    """Other formats, and addresses that the API does not read, are said in text (P5)."""
    assert content(part) == [{"text": words}]


def test_files_in_s3() -> None:
    """S3 is where the API reads from by itself."""
    s3 = Url("s3://bucket/a.png", "image/png")
    assert content(Image(s3)) == [{"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a.png"}}}}]


def test_what_the_lane_says_it_carries() -> None:
    """The table for the documentation is found out by placing one part of each sort."""
    nested = {sort for sort, place in bedrock.CARRIES.items() if place == "nested"}
    assert nested == {"JSON", "PNG, JPEG", "GIF", "WebP", "PDF", "text file", "spreadsheet"}
    assert "after" not in bedrock.CARRIES.values()
