"""The checks against transcripts from public reports: each was refused as it is and is accepted once repaired."""

from collections.abc import Callable

import pytest

from tests.testing.transcripts import Transcript, collected
from toolbatch.testing import Rejection, check_anthropic, check_chat, check_responses

CHECKS: dict[str, Callable[[object], Rejection | None]] = {
    "openai_chat": check_chat,
    "openai_responses": check_responses,
    "anthropic": check_anthropic,
}
TRANSCRIPTS = collected()

# Broken for the law of tool turns, not for the provider: an output may stand behind a message (Responses), and messages
# of one role in a row are one turn (Anthropic). Their repairs differ between careful implementations.
LENIENT = {"47-or-message-behind-call", "50-an-chunked-assistant"}


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda t: t.name)
def test_repaired_transcripts_are_accepted(transcript: Transcript) -> None:
    assert CHECKS[transcript.lane](transcript.expected) is None


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda t: t.name)
def test_broken_transcripts_are_refused(transcript: Transcript) -> None:
    broken = bool(transcript.broken_forms) and transcript.name not in LENIENT
    assert (CHECKS[transcript.lane](transcript.input) is not None) == broken
