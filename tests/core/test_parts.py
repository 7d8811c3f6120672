"""P5: rich content is made of frozen, checked values, and a success made of them keeps them whole."""

import base64
import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.kit import BLANK, LONE, NOT_TEXT, opened, shown, view
from toolbatch.core import (
    Data,
    Document,
    EncodingError,
    Image,
    InvalidInputError,
    InvalidTypeError,
    Json,
    Limits,
    ResourceLink,
    RichSucceeded,
    Succeeded,
    Text,
    Url,
    as_parts,
    described,
)

PNG = b"\x89PNG\r\n\x1a\n"
PICTURE = Image.of(PNG, "image/png")
EVERY_PART = (
    Text("hello"),
    Json({"b": 1, "a": [2]}),
    PICTURE,
    Image(Url("https://example.org/a.png")),
    Document.of(b"%PDF-", "application/pdf", "terms"),
    Document(Url("https://example.org/t.pdf", "application/pdf")),
    ResourceLink("file:///a", "a", "text/plain", "the a"),
)


def test_a_success_keeps_its_parts_and_a_text_of_them() -> None:
    """P5: the parts are there for the lanes that can carry them, and the text for all else."""
    closure, handle = opened("a")
    assert closure.succeed(handle, "a", ["look:", *EVERY_PART]).accepted
    end = shown(closure).calls[0].settlement
    assert isinstance(end, RichSucceeded)
    assert end.parts == (Text("look:"), *EVERY_PART)
    assert end.content.splitlines() == [
        "look:",
        "hello",
        '{"b":1,"a":[2]}',
        "[image: image/png, 8 bytes]",
        "[image: https://example.org/a.png]",
        '[document "terms": application/pdf, 5 bytes]',
        "[document: https://example.org/t.pdf (application/pdf)]",
        '[resource "a": file:///a (text/plain), the a]',
    ]
    assert view(closure)["calls"][0]["settlement"]["parts"][3] == {
        "type": "image",
        "media_type": "image/png",
        "data": base64.b64encode(PNG).decode(),
    }


@pytest.mark.parametrize("part", EVERY_PART)
def test_one_part_is_a_result_by_itself(part: Any) -> None:
    """P5: no list is needed around one part."""
    closure, handle = opened("a")
    closure.succeed(handle, "a", part)
    assert shown(closure).calls[0].settlement == RichSucceeded((part,), described(part))


@pytest.mark.parametrize("value", ["text", ["text"], [], (), [["x", PICTURE.type]], {"image": 1}, None, {Text("set")}])
def test_plain_data_stays_plain(value: Any) -> None:
    """C7: only a list or tuple that holds a part itself is rich; all else is text or JSON as before."""
    assert as_parts(value) is None


@pytest.mark.parametrize("stray", [1, None, {"a": 1}, ["x"], b"x"])
def test_data_among_parts_is_refused_and_the_call_stays_pending(stray: Any) -> None:
    """P5, C7: data is wrapped in Json by whoever means it; nothing is guessed, and nothing has changed."""
    closure, handle = opened("a")
    before = view(closure)
    with pytest.raises(EncodingError, match="wrap data in Json"):
        closure.succeed(handle, "a", [PICTURE, stray])
    assert view(closure) == before


@pytest.mark.parametrize("part", EVERY_PART)
def test_parts_are_frozen_equal_by_value_and_survive_pickling(part: Any) -> None:
    """STYLE: values are immutable; a part that crossed a process is the same part."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(part, dataclasses.fields(part)[0].name, None)
    assert pickle.loads(pickle.dumps(part)) == part
    assert hash(part) == hash(dataclasses.replace(part) if not isinstance(part, Json) else part)


def test_json_is_written_down_at_once() -> None:
    """C7: what is changed after the part was made is not in it."""
    value = {"a": 1}
    part = Json(value)
    value["a"] = 2
    assert part.text == '{"a":1}'
    assert Json(value, encode=lambda _: "[]").text == "[]"


@given(st.binary(min_size=1))
def test_bytes_and_their_base64_are_the_same_data(data: bytes) -> None:
    """P5: base64 or bytes, as the tool has them."""
    assert Data(base64.b64encode(data).decode(), "image/png") == Data(data, "image/png")  # type: ignore[arg-type]
    assert base64.b64decode(Data(data, "image/png").base64) == data


@pytest.mark.parametrize("data", ["", b"", "a", "ä", "AAAA\n", "****", bytearray()])
def test_data_must_be_bytes_or_base64(data: Any) -> None:
    """P5: nothing, or what is no base64, is refused before it reaches a provider."""
    with pytest.raises(InvalidInputError):
        Data(data, "image/png")


@pytest.mark.parametrize("data", [None, 1, ["a"], object()])
def test_data_of_another_type_is_a_type_error(data: Any) -> None:
    """P5: the message says what is wanted."""
    with pytest.raises(InvalidTypeError, match="bytes or base64"):
        Data(data, "image/png")


@pytest.mark.parametrize(
    "media_type", ["", "png", "image/", "/png", "image/png; q=1", "image/png\n", "im age/png", "image/p/g"]
)
def test_media_types_have_a_type_and_a_subtype(media_type: str) -> None:
    """P5: RFC 6838's form, without parameters, since no lane takes them."""
    with pytest.raises(InvalidInputError, match="media_type"):
        Data(b"x", media_type)
    assert Data(b"x", "IMAGE/PNG").media_type == "image/png"


@pytest.mark.parametrize(
    "url", ["", "a.png", "/a.png", "data:image/png;base64,AAAA", "DATA:,x", "https://a b", "https:", *LONE]
)
def test_urls_are_absolute_and_hold_no_data(url: str) -> None:
    """P5: a provider can't resolve a relative one, and a data URL hides bytes from the size bound."""
    with pytest.raises(InvalidInputError):
        Url(url)


def test_an_image_is_an_image() -> None:
    """P5: a PDF as an image is refused here and not by the provider."""
    with pytest.raises(InvalidInputError, match="use Document"):
        Image.of(b"%PDF-", "application/pdf")
    with pytest.raises(InvalidInputError, match="use Document"):
        Image(Url("https://example.org/a", "text/plain"))


@pytest.mark.parametrize("value", [value for value in NOT_TEXT if value is not None])
def test_what_is_no_text_is_refused_in_every_place(value: Any) -> None:
    """P5: the wrong type is named at the border."""
    for make in (
        lambda: Text(value),
        lambda: Url(value),
        lambda: Data(b"x", value),
        lambda: ResourceLink(value, "a"),
        lambda: ResourceLink("a:b", value),
        lambda: ResourceLink("a:b", "a", value),
        lambda: ResourceLink("a:b", "a", None, value),
        lambda: Image(value),
        lambda: Document(value),
        lambda: Document(Url("a:b"), value),
    ):
        with pytest.raises(InvalidTypeError):
            make()


@pytest.mark.parametrize("blank", BLANK)
def test_names_are_not_blank(blank: str) -> None:
    """P5: a blank name says nothing; None does."""
    for make in (
        lambda: ResourceLink("a:b", blank),
        lambda: ResourceLink("a:b", "a", None, blank),
        lambda: Document(Url("a:b"), blank),
    ):
        with pytest.raises(InvalidInputError, match="blank"):
            make()


@pytest.mark.parametrize("text", LONE)
def test_a_lone_surrogate_is_in_no_part(text: str) -> None:
    """C7: no provider can be sent one."""
    for make in (lambda: Text(text), lambda: Json(text), lambda: Json(0, encode=lambda _: text)):
        with pytest.raises(InvalidInputError, match="surrogate"):
            make()


def test_media_and_text_have_a_bound_each() -> None:
    """C7, P5: over either, the call stays pending."""
    closure, handle = opened("a", limits=Limits(max_media_bytes=8, max_result_bytes=30))
    before = view(closure)
    with pytest.raises(EncodingError, match="max_media_bytes, which is 8"):
        closure.succeed(handle, "a", [PICTURE, Image.of(b"x", "image/gif")])
    with pytest.raises(EncodingError, match="max_result_bytes, which is 30"):
        closure.succeed(handle, "a", [PICTURE, "four"])
    assert view(closure) == before
    assert closure.succeed(handle, "a", PICTURE).accepted
    assert not isinstance(shown(closure).calls[0].settlement, Succeeded)
