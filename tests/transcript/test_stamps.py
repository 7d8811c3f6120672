"""Why a turn is incomplete, on the turn itself (L9)."""

from typing import Any

import pytest

from tests.transcript.test_law import calls, user
from toolbatch import transcript
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.transcript import STAMP_KEY, Stamp

TRUNCATED = Stamp("truncated", 2)
UNNAMED = Stamp("unnamed")


def test_a_stamp_is_written_and_read_back() -> None:
    """On a copy; counts of one cause add up (L9)."""
    message = calls("a")
    stamped = transcript.stamp(message, TRUNCATED, UNNAMED)
    assert STAMP_KEY not in message
    assert transcript.stamps_of(stamped) == (TRUNCATED, UNNAMED)
    assert transcript.stamps_of(transcript.stamp(stamped, Stamp("truncated"))) == (Stamp("truncated", 3), UNNAMED)
    assert transcript.stamp(message) == message


@pytest.mark.parametrize("written", [None, "x", {}, [None], [{"cause": "tired", "count": 1}], [{"cause": ["x"], "count": 1}],
                                     [{"cause": "unnamed", "count": 0}], [{"cause": "unnamed", "count": True}]])  # fmt: skip
def test_what_is_no_stamp_reads_as_none(written: Any) -> None:
    """A store may hold anything; reading it never fails (L9)."""
    assert transcript.stamps_of({STAMP_KEY: written}) == ()


def test_stamps_go_through_a_repair_and_are_taken_off_to_send() -> None:
    """A repaired turn keeps its stamps; providers refuse unknown members, so they leave before the request."""
    stamped = transcript.stamp(calls("a"), Stamp("missing_result"))
    view = transcript.repair([user(), stamped], "openai_chat").messages
    assert view[1] is stamped
    sent = transcript.unstamped(view)
    assert sent[1] == calls("a")
    assert sent[0] is view[0]
    assert transcript.unstamped(sent) is sent


def test_mistakes_are_named() -> None:
    """An unknown cause, a count that counts nothing, a message without room for a stamp."""
    with pytest.raises(InvalidInputError, match=r"cause must be one of truncated, .* not 'tired'"):
        Stamp("tired")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="count must be a positive int, not 0"):
        Stamp("unnamed", 0)
    with pytest.raises(InvalidTypeError, match="only a mapping can be stamped"):
        transcript.stamp(object(), UNNAMED)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="messages must be a list"):
        transcript.unstamped("x")  # type: ignore[arg-type]
