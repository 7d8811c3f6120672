"""Where the parts of a rich result go, whatever a lane can carry (P5)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.outcomes import PNG, parts
from toolbatch.core import Data, Document, Image, InvalidInputError, Json, Part, ResourceLink, Text, Url, text_of
from toolbatch.providers._content import (
    CARRIED,
    Carrier,
    carrier_for,
    carries,
    content_of,
    data_url,
    document_text,
    file_name,
    in_blocks,
    place,
    unsent,
    web_url,
)

IMAGE = Image.of(b"123", "image/png")
LINK = ResourceLink("db://rows/1", "rows")
JPEG = b"\xff\xd8\xff\xe0"


def image_block(part: Part) -> dict[str, Any] | None:
    return {"image": part.source} if isinstance(part, Image) else None


def any_block(part: Part) -> dict[str, Any]:
    return {"part": part.type}


def text_block(text: str) -> dict[str, Any]:
    return {"text": text}


NESTS = Carrier(nest=image_block)
CARRIES_AFTER = Carrier(after=image_block)
WORDS = Carrier()


def test_a_part_that_nests_stands_in_its_place() -> None:
    """The order of the parts is the order of what the model reads."""
    placed = place([Text("a"), IMAGE, Text("b")], NESTS, "f", "1")
    assert placed == (["a", {"image": IMAGE.source}, "b"], [])


def test_a_part_that_travels_later_leaves_word_and_says_whose_it_is() -> None:
    """What stands in the result tells of the part, and what travels tells of the call (FIELD 111)."""
    placed = place([IMAGE, Text("b"), IMAGE], CARRIES_AFTER, "screenshot", "call_1")
    left = "[image: image/png, 3 bytes] (it follows the tool results)"
    assert placed.inside == [left, "b", left]
    block = {"image": IMAGE.source}
    assert placed.behind == ["From the result of screenshot (call call_1):", block, block]


def test_nesting_comes_before_traveling() -> None:
    """A lane that can do both keeps the part with its call (FIELD 113)."""
    placed = place([IMAGE], Carrier(nest=image_block, after=any_block), "f", "1")
    assert placed == ([{"image": IMAGE.source}], [])


@pytest.mark.parametrize("part", [IMAGE, Document(Url("https://example.org/a")), LINK, Json([1])])
def test_what_a_lane_can_not_carry_is_said(part: Part) -> None:
    """In the words that the core has for it."""
    assert place([part], WORDS, "f", "1") == ([text_of((part,))], [])


@pytest.mark.parametrize("carrier", [WORDS, Carrier(nest=any_block), Carrier(after=any_block)])
def test_text_is_text_in_every_lane(carrier: Carrier) -> None:
    """No lane is asked for it."""
    assert place([Text("a")], carrier, "f", "1") == (["a"], [])


def test_a_lane_may_have_its_own_words() -> None:
    """Where it carries a sort of part, but not this one, it says why."""
    why = "[image: image/png, 3 bytes] (not sent: too large)"
    assert unsent(IMAGE, "too large") == why
    assert place([IMAGE], Carrier(nest=lambda part: unsent(part, "too large")), "f", "1") == ([why], [])
    assert place([IMAGE], Carrier(after=lambda part: unsent(part, "too large")), "f", "1") == ([why], [])


@pytest.mark.parametrize("nothing", [[Text("")], [Text(" \n"), Text("")], [Document.of(b" ", "text/plain")]])
def test_there_is_always_something_to_read(nothing: list[Part]) -> None:
    """A result of nothing is refused by some providers, and misread by every model."""
    placed = place(nothing, WORDS, "f", "1")
    assert placed.inside
    assert all(isinstance(entry, str) and entry.strip() for entry in placed.inside)


def test_blank_text_stays_out() -> None:
    """Anthropic refuses a text block of nothing."""
    assert place([Text(""), IMAGE, Text(" ")], NESTS, "f", "1").inside == [{"image": IMAGE.source}]


def test_text_files_are_read_out() -> None:
    """A text file loses nothing as text; what only says that it is text is not (openai: file inputs)."""
    document = Document.of("é,1\n".encode(), "text/csv", "a.csv")
    said = '[document "a.csv": text/csv, 5 bytes]\né,1\n'
    assert place([document], WORDS, "f", "1").inside == [said]
    assert place([document], Carrier(nest=any_block), "f", "1").inside == [{"part": "document"}]


@pytest.mark.parametrize(
    ("data", "media_type", "text"),
    [
        (b"a", "text/plain", "a"),
        (b"\xef\xbb\xbfa", "text/markdown", "a"),
        (b"{}", "application/json", "{}"),
        (b"{}", "application/ld+json", "{}"),
        (b"<a/>", "image/svg+xml", "<a/>"),
        (b"a: 1", "application/yaml", "a: 1"),
        (b"\xff\xfea", "text/plain", None),
        (b" \n", "text/plain", None),
        (b"a", "application/pdf", None),
        (b"a", "application/octet-stream", None),
    ],
)
def test_what_is_a_text_file(data: bytes, media_type: str, text: str | None) -> None:
    """The media type and the bytes must both say so."""
    assert document_text(Document.of(data, media_type)) == text


def test_what_is_no_document_has_no_document_text() -> None:
    """Only bytes that are there can be read."""
    assert document_text(Document(Url("https://example.org/a.txt", "text/plain"))) is None
    assert document_text(Text("a")) is None


def test_one_result_does_not_read_out_a_library() -> None:
    """Files have a bound together, or the text would be refused for its length; the one that fits is read."""
    large, small = Document.of(b"x" * 1_000_000, "text/plain"), Document.of(b"y" * 48_576, "text/plain")
    placed = place([large, large, small, small], WORDS, "f", "1").inside
    assert [len(str(entry)) > 1_000 for entry in placed] == [True, False, True, False]
    assert placed[1] == "[document: text/plain, 1,000,000 bytes]"


@pytest.mark.parametrize(
    ("data", "declared", "true"),
    [
        (PNG, "image/jpeg", "image/png"),
        (JPEG, "image/png", "image/jpeg"),
        (JPEG, "image/jpg", "image/jpeg"),
        (b"123", "image/jpg", "image/jpeg"),
        (b"GIF89a..", "image/png", "image/gif"),
        (b"RIFF\n\n\n\nWEBP", "image/png", "image/webp"),
        (b"RIFF1234WAVE", "image/tiff", "image/tiff"),
        (b"123", "image/png", "image/png"),
    ],
)
def test_an_image_goes_under_the_type_of_its_bytes(data: bytes, declared: str, true: str) -> None:
    """A wrong type in the history is refused for ever (LANES 3); what the bytes don't show is taken on trust."""
    (block,) = place([Image.of(data, declared)], NESTS, "f", "1").inside
    assert block == {"image": Data(data, true)}


def test_an_address_goes_under_its_declared_type() -> None:
    """Nothing is fetched."""
    for declared, sent in [("image/jpg", "image/jpeg"), ("image/gif", "image/gif"), (None, None)]:
        (block,) = place([Image(Url("https://example.org/a", declared))], NESTS, "f", "1").inside
        assert block == {"image": Url("https://example.org/a", sent)}


def test_hostile_names_and_ids_make_a_label_that_can_be_sent() -> None:
    """A gateway's id may be text that no request can carry, or of any length."""
    (label, _) = place([IMAGE], CARRIES_AFTER, "n" * 9_999, "\ud800" * 9).behind
    assert isinstance(label, str)
    label.encode()
    assert len(label) < 300


def test_content_is_text_where_all_of_it_is() -> None:
    """One text is what every server takes; blocks are for what is no text."""
    assert content_of(["a", "b"], text_block) == "a\nb"
    assert content_of(["a", {"x": 1}], text_block) == [{"text": "a"}, {"x": 1}]
    assert in_blocks(["a"], text_block) == [{"text": "a"}]


def test_addresses() -> None:
    """Providers fetch from the web alone."""
    assert data_url(Data(b"123", "image/png")) == "data:image/png;base64,MTIz"
    assert web_url(Url("https://example.org/a")) == "https://example.org/a"
    assert web_url(Url("HTTP://example.org/a")) == "HTTP://example.org/a"
    for url in ("s3://bucket/key", "file:///etc/passwd", "httpx://example.org"):
        assert web_url(Url(url)) is None
    assert web_url(Data(b"1", "image/png")) is None


def test_files_have_names_with_an_ending() -> None:
    """Providers tell types by it."""
    assert file_name(Document.of(b"1", "application/pdf"), "pdf") == "document.pdf"
    assert file_name(Document.of(b"1", "application/pdf", "Report"), "pdf") == "Report.pdf"
    assert file_name(Document.of(b"1", "application/pdf", "a.PDF"), "pdf") == "a.PDF"


@pytest.mark.parametrize("media", ["sideways", "", None, [], {"words": 1}, 1])
def test_a_way_that_a_lane_does_not_have(media: Any) -> None:
    """The error names what was asked for and what there is."""
    carriers = {"words": WORDS, "nested": NESTS}
    assert carrier_for("nested", carriers) is NESTS
    with pytest.raises(InvalidInputError) as caught:
        carrier_for(media, carriers)
    assert str(caught.value) == f"media must be one of words, nested, not {media!r}"


def test_what_a_lane_carries_is_found_out() -> None:
    """The table is made of placings, so the page that shows it can't be wrong."""
    images = {sort for sort, part in CARRIED.items() if isinstance(part, Image)}
    assert set(carries(WORDS).values()) == {"text"}
    assert {sort for sort, where in carries(NESTS).items() if where == "nested"} == images
    assert {sort for sort, where in carries(CARRIES_AFTER).items() if where == "after"} == images
    assert {type(part) for part in CARRIED.values()} == {Text, Json, Image, Document, ResourceLink}


CARRIERS = [WORDS, NESTS, CARRIES_AFTER, Carrier(nest=any_block), Carrier(after=any_block)]


@given(given_parts=st.lists(parts, min_size=1, max_size=6), carrier=st.sampled_from(CARRIERS))
def test_nothing_is_lost(given_parts: list[Part], carrier: Carrier) -> None:
    """Each part is in the result as a block or in words, and what travels is labeled and told of in the result."""
    before = repr(given_parts)
    placed = place(given_parts, carrier, "f", "1")
    assert repr(given_parts) == before
    blank = sum(isinstance(part, Text) and not part.text.strip() for part in given_parts)
    assert len(placed.inside) == max(1, len(given_parts) - blank)
    traveling = [entry for entry in placed.behind if isinstance(entry, dict)]
    assert len(placed.behind) == (1 + len(traveling) if traveling else 0)
    assert sum("(it follows the tool results)" in entry for entry in placed.inside if isinstance(entry, str)) == len(
        traveling
    )
