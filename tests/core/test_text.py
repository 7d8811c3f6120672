"""Text with a bound: cut on characters, never over its bytes, always text that a provider can be sent (C8)."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.kit import BLANK, LONE, NOT_TEXT, HostileText, NoRepr
from toolbatch.core import InvalidInputError, InvalidTypeError, cut, preview, sound
from toolbatch.core._text import byte_length, exact, require_text

any_text = st.text(st.characters(exclude_categories=()), max_size=40)
"""Any Python text, lone surrogates included."""


@given(any_text, st.integers(1, 60))
@example("aé😀", 3)
@example("😀😀", 7)
@example("é" * 20, 2)
@example("\ufeffabc", 100)
def test_a_cut_text_keeps_its_bound(text: str, limit: int) -> None:
    """At most `limit` bytes; whole if it fits; else the longest beginning that leaves room for `...` (C8)."""
    kept = cut(text, limit)
    whole = sound(text)
    assert len(kept.encode()) <= limit
    if len(whole.encode()) <= limit:
        assert kept == whole
        return
    ending = "..." if limit >= 3 else ""
    assert kept.endswith(ending)
    body = kept.removesuffix(ending) if ending else kept
    assert whole.startswith(body)
    longer = whole[: len(body) + 1]
    assert len(longer.encode()) + len(ending) > limit, "one more character would have fitted"


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "ab..."),
        ("abcdef", 4, "a..."),
        ("abcdef", 3, "..."),
        ("abcdef", 2, "ab"),
        ("abcdef", 1, "a"),
        ("ééé", 5, "é..."),
        ("ééé", 4, "..."),
        ("ééé", 3, "..."),
        ("ééé", 2, "é"),
        ("ééé", 1, ""),
        ("😀😀", 7, "😀..."),
        ("😀😀", 6, "..."),
        ("😀", 4, "😀"),
        ("😀", 3, "..."),
        ("a\ud800b", 5, "a\ufffdb"),
        ("a\ud800b", 4, "a..."),
        ("", 1, ""),
    ],
)
def test_cuts_to_the_byte(text: str, limit: int, kept: str) -> None:
    """Each boundary comes out as reasoned by hand (C8)."""
    assert cut(text, limit) == kept


@given(any_text)
def test_sound_text_can_be_sent_and_is_changed_only_where_it_must(text: str) -> None:
    """Every lone surrogate becomes U+FFFD, two that make a pair become their character, and sound text stays the same."""
    mended = sound(text)
    mended.encode()
    assert sound(mended) == mended
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert mended == text


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("\ud800", "\ufffd"),
        ("a\udfffb", "a\ufffdb"),
        ("\ud800\ud800x", "\ufffd\ufffdx"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ufeffé", "\ufeffé"),
    ],
)
def test_surrogates_by_hand(text: str, mended: str) -> None:
    """A lone half is replaced, a pair is joined, and a byte-order mark is a character like any other."""
    assert sound(text) == mended


@given(st.text(max_size=40))
def test_byte_length_is_that_of_utf8(text: str) -> None:
    """The length is counted in UTF-8 bytes (C1)."""
    assert byte_length(text) == len(text.encode("utf-8"))


@pytest.mark.parametrize("text", LONE)
def test_a_lone_surrogate_has_no_length(text: str) -> None:
    """What can't be encoded has no number of bytes."""
    with pytest.raises(UnicodeEncodeError):
        byte_length(text)


def test_exact_text_is_plain_and_calls_nothing() -> None:
    """A subclass becomes a plain `str` without any of its methods being called; a plain one stays the same object."""
    HostileText.called.clear()
    plain = exact(HostileText("abc"))
    assert type(plain) is str
    assert plain == "abc"
    assert HostileText.called == []
    assert exact(plain) is plain


@pytest.mark.parametrize("value", NOT_TEXT, ids=type)
def test_what_is_no_text_is_refused(value: Any) -> None:
    """A value of another type raises a type error that names the field (C2)."""
    with pytest.raises(InvalidTypeError, match="the name must be a str"):
        require_text(value, "the name", 10)


@pytest.mark.parametrize("value", [*BLANK, *map(HostileText, BLANK)], ids=lambda value: str.__repr__(value))
def test_blank_text_is_refused(value: str) -> None:
    """Text with nothing to see raises a value error that names the field (C2)."""
    with pytest.raises(InvalidInputError, match="the name must not be blank"):
        require_text(value, "the name", 100)


@pytest.mark.parametrize("value", LONE, ids=ascii)
def test_text_that_no_provider_accepts_is_refused(value: str) -> None:
    """A lone surrogate raises a value error, not the codec's own (C2, C7)."""
    with pytest.raises(InvalidInputError, match="surrogate") as caught:
        require_text(value, "the name", 100)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_text_is_returned_plain_and_whole() -> None:
    """Blanks around text are part of it; a hostile subclass comes out plain, and none of its methods ran."""
    HostileText.called.clear()
    kept = require_text(HostileText(" a "), "the name", 3)
    assert type(kept) is str
    assert kept == " a "
    assert HostileText.called == []


def test_a_preview_is_bounded_and_never_raises() -> None:
    """A value is shown in so many characters; one that can't be shown is named by its type, whatever its `repr` does."""

    class LongRepr:
        def __repr__(self) -> str:
            return HostileText("x" * 100)

    assert preview("ab") == "'ab'"
    assert preview("a" * 78) == f"'{'a' * 78}'"
    assert preview("a" * 79) == f"'{'a' * 79}..."
    assert preview([1, 2, 3], 4) == "[1, ..."
    assert preview(NoRepr()) == "<NoRepr>"
    assert preview(10**5000) == "<int>"
    assert preview(LongRepr(), 5) == "xxxxx..."


def test_a_preview_does_not_hide_what_must_end_the_program() -> None:
    """Only errors are replaced; a KeyboardInterrupt out of a `repr` goes on."""

    class Stop:
        def __repr__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        preview(Stop())
