"""Late successes, told on a later turn (B20), and what importing the lanes loads (P8)."""

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.providers.support import LANES, USER, Lane, exhaust
from toolbatch.core import InvalidTypeError

EACH_LANE = pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)


@dataclass(frozen=True)
class Note:
    call_id: str
    name: str
    generation: int
    content: Any


@EACH_LANE
def test_notes_are_one_new_user_message(lane: Lane) -> None:
    """They say which call it was and what it returned, and rewrite nothing that was sent."""
    late = [Note("a", "lookup", 1, '{"x": "é"}'), Note("b", "search", 2, "lone \ud800")]
    notes = lane.module.notes(late)
    history = lane.extended(lane.respond(lane.call("a"))) + notes
    assert lane.refused(history) is None
    exhaust(lane.adapter.validate_python(history))
    (entry,) = notes
    assert entry["role"] == "user"
    text = entry["content"] if isinstance(entry["content"], str) else entry["content"][0]["text"]
    assert "lookup (call a, tool turn 1) returned:\n" + '{"x": "é"}' in text
    assert text.index("call a") < text.index("call b")
    text.encode()
    assert lane.refused([USER, *notes]) is None


@EACH_LANE
def test_no_notes_and_bad_ones(lane: Lane) -> None:
    """Nothing late, nothing to say; a note without text is the caller's mistake."""
    assert lane.module.notes([]) == []
    with pytest.raises(InvalidTypeError, match="late result of call 'a'"):
        lane.module.notes([Note("a", "f", 1, None)])


def test_importing_the_lanes_loads_no_sdk() -> None:
    """Our module `anthropic` is not the SDK, and no lane imports one (P8)."""
    probe = (
        "import sys; from toolbatch.providers import anthropic, openai_chat, openai_responses; "
        "loaded = {'anthropic', 'openai', 'pydantic'} & set(sys.modules); "
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", probe], check=True, timeout=30)
