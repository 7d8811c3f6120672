"""Request bodies are read as strictly as the providers read them."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbatch.testing._body import BodyError, parse_body

REFUSED = {
    "half a document": (b'{"a": ', "expecting value: line 1 column 7 (char 6)"),
    "a control character": (b'{"a": "\n"}', "invalid control character at: line 1 column 8 (char 7)"),
    "NaN": (b'{"a": NaN}', "NaN is not a JSON value"),
    "infinity": (b'{"a": -Infinity}', "-Infinity is not a JSON value"),
    "a high surrogate alone": (rb'{"a": "\ud83d"}', "no low surrogate in string: line 1 column 14 (char 13)"),
    "a high surrogate before text": (rb'{"a": "\ud83dx\n"}', "no low surrogate in string: line 1 column 14 (char 13)"),
    "a high surrogate before an escape": (
        rb'{"a": "\ud83d\n"}',
        "no low surrogate in string: line 1 column 14 (char 13)",
    ),
    "a low surrogate alone": (rb'{"a": "\ude00"}', "no low surrogate in string: line 1 column 8 (char 7)"),
    "surrogates the wrong way round": (rb'{"a": "\ude00\ud83d"}', "no low surrogate in string"),
    "a raw surrogate": (b'{"a": "\xed\xa0\x80"}', "invalid continuation byte"),
    "a list": (b"[]", "expected an object"),
    "nothing": (b"", "expecting value"),
    "a pit of brackets": (b"[" * 100_000, "recursion"),
}


@pytest.mark.parametrize(("raw", "reason"), REFUSED.values(), ids=REFUSED)
def test_bodies_that_no_provider_reads_are_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(BodyError) as refusal:
        parse_body(raw)
    assert reason in str(refusal.value)


def test_a_surrogate_pair_and_an_escaped_backslash_are_fine() -> None:
    assert parse_body(rb'{"a": "\ud83d\ude00", "b": "\\ud83d"}') == {"a": "\N{GRINNING FACE}", "b": "\\ud83d"}


@given(st.dictionaries(st.text(), st.text()), st.booleans())
def test_what_python_can_encode_is_read_back(body: dict[str, str], ascii_only: bool) -> None:
    assert parse_body(json.dumps(body, ensure_ascii=ascii_only).encode()) == body


@given(st.binary())
def test_any_bytes_are_either_read_or_refused(raw: bytes) -> None:
    with contextlib.suppress(BodyError):
        assert isinstance(parse_body(raw), dict)
