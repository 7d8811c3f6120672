"""The lane of a list is found by what only that lane has."""

from typing import Any

import pytest

from tests.transcript.kit import Case, cases
from toolbatch import transcript
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.transcript import LaneName


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_collected_transcript_is_recognised(case: Case) -> None:
    """Broken or not, its lane is found (L8)."""
    assert transcript.detect(case.input) == case.lane


@pytest.mark.parametrize(("message", "lane"), [
    ({"role": "user", "content": "Hi."}, "openai_chat"),
    ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "openai_chat"),
    ({"role": "user", "content": [{"text": "Hi."}]}, "bedrock"),
    ({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}, "anthropic"),
    ({"role": "user", "content": [{"type": "input_text", "text": "x"}]}, "openai_responses"),
    ({"type": "item_reference", "id": "rs_1"}, "openai_responses"),
    ({"role": "user", "parts": []}, "gemini"),
    ({"type": "human", "content": "x"}, "langchain"),
])  # fmt: skip
def test_one_message_can_be_enough(message: Any, lane: LaneName) -> None:
    """The first message that only one lane can have decides."""
    assert transcript.detect([message]) == lane


def test_a_strange_list_has_no_lane() -> None:
    """The error asks for the lane's name and lists them; entries that are no messages are named as everywhere."""
    with pytest.raises(InvalidInputError, match="name the lane, one of openai_chat"):
        transcript.detect([{"a": 1}])
    with pytest.raises(InvalidTypeError, match=r"messages\[0\]"):
        transcript.detect(["x"])
    assert transcript.detect([]) == "openai_chat"
