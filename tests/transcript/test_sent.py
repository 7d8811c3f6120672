"""Append-only: what was sent is signed or cached, so nothing before the border changes (B20, L6)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transcript.judges import JUDGES
from tests.transcript.kit import Json
from tests.transcript.test_law import FOLD, calls, close, result, user
from tests.transcript.worlds import Recorded, Writer, stories
from toolbatch import transcript
from toolbatch.ports import LATE_HEAD
from toolbatch.transcript import INTERRUPTED_TEXT, LANES, LaneName

EACH_LANE = pytest.mark.parametrize("lane", LANES)


def news(call_id: str, text: str) -> Json:
    """A late result as new content of a chat."""
    return user(f"{LATE_HEAD}\n\ntool_{call_id} (call {call_id}) returned:\n{text}")


def test_the_turn_at_the_border_is_still_closed() -> None:
    """Nothing but its results was sent behind it, so what was missing is closed right behind what was sent."""
    listed = [user(), calls("a", "b"), result("a"), user("next")]
    view = transcript.repair(listed, "openai_chat", sent=3)
    assert view.messages == [*listed[:3], close("b"), listed[3]]
    assert view.remaining == ()
    assert all(one is other for one, other in zip(view.messages, listed[:3], strict=False))


def test_a_late_result_of_the_border_turn_still_moves() -> None:
    """Up to the border, and no further: the answers that were sent keep their order."""
    listed = [calls("a", "b", "c"), result("b"), user("next"), result("c"), result("a")]
    assert transcript.repair(listed, "openai_chat", sent=2).messages == [
        *listed[:2],
        result("a"),
        result("c"),
        user("next"),
    ]


def test_a_late_result_of_a_closed_call_is_new_content() -> None:
    """The close was sent, so the result is told where it stands, in the words of `notes` (B20)."""
    listed = [user(), calls("a"), close("a"), user("next"), result("a", "42"), user("so?")]
    view = transcript.repair(listed, "openai_chat", sent=3)
    assert view.messages == [*listed[:4], news("a", "42"), listed[5]]
    assert [(repair.form, repair.action) for repair in view.repairs] == [("late_result", "delivered")]
    assert not view.lossy
    assert transcript.repair(view.messages, "openai_chat", sent=3).messages is view.messages
    assert transcript.check(view.messages, "openai_chat") == []


def test_a_second_result_is_new_content_too() -> None:
    """It can't be folded into one that was sent; a second close says nothing new and is left out."""
    listed = [calls("a"), result("a", "1"), user(), result("a", "2"), close("a")]
    view = transcript.repair(listed, "openai_chat", sent=2)
    assert view.messages == [*listed[:3], news("a", "2")]
    assert [(repair.form, repair.call_ids) for repair in view.repairs] == [("duplicate_result", ("a",))] * 2


def test_news_does_not_stand_between_results() -> None:
    """Where the late result stood among the results of another turn, the news goes behind them all."""
    listed = [calls("a"), close("a"), calls("b", "c"), result("b"), result("a", "42"), result("c")]
    view = transcript.repair(listed, "openai_chat", sent=2)
    assert view.messages == [*listed[:4], listed[5], news("a", "42")]
    assert transcript.check(view.messages, "openai_chat") == []


def test_what_is_wrong_in_what_was_sent_is_reported() -> None:
    """A gap, an orphan, a repeated call, a second result: all stay, and `remaining` names each."""
    listed = [result("z"), calls("a", "a"), result("a"), result("a"), calls("b"), user(), calls("c"), result("c")]
    view = transcript.repair(listed, "openai_chat", sent=len(listed))
    assert view.messages is listed
    assert [violation.form for violation in view.remaining] == [
        "orphan_result",
        "duplicate_call",
        "duplicate_result",
        "missing_result",
    ]


def test_anthropic_goes_on_in_the_next_user_message() -> None:
    """User messages in a row are one to the API: results sent in one are completed at the head of the next."""
    uses = [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in "ab"]
    done = [{"type": "tool_result", "tool_use_id": i, "content": i} for i in "ab"]
    listed: list[Any] = [
        user(),
        {"role": "assistant", "content": uses},
        {"role": "user", "content": done[:1]},
        user("next"),
    ]
    view = transcript.repair(listed, "anthropic", sent=3)
    closed = {"type": "tool_result", "tool_use_id": "b", "content": INTERRUPTED_TEXT, "is_error": True}
    assert view.messages == [*listed[:3], {"role": "user", "content": [closed, {"type": "text", "text": "next"}]}]
    for judge in JUDGES["anthropic"]:
        assert not judge(view.messages)


def test_anthropic_tells_news_behind_results() -> None:
    """In a message that also answers another turn, results come first; an image of the late result stays an image."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    late = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "seen"}, image]}
    use = [{"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "f", "input": {}}]} for i in "ab"]
    closed = {"type": "tool_result", "tool_use_id": "a", "content": INTERRUPTED_TEXT, "is_error": True}
    fine = {"type": "tool_result", "tool_use_id": "b", "content": "ok"}
    listed = [user(), use[0], {"role": "user", "content": [closed]}, use[1], {"role": "user", "content": [late, fine]}]
    blocks = transcript.repair(listed, "anthropic", sent=3).messages[4]["content"]
    assert blocks[0] is fine
    assert [block["type"] for block in blocks] == ["tool_result", "text", "text", "text", "image"]
    assert blocks[-1] is image


def test_responses_take_an_answer_anywhere() -> None:
    """A gap that was sent can still be closed behind the border, and a late output stays where it is (LANES 2)."""
    items = [{"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"} for i in "ab"]
    output = {"type": "function_call_output", "call_id": "b", "output": "1"}
    listed = [*items, user(), user("more"), output]
    view = transcript.repair(listed, "openai_responses", sent=3)
    closed = {"type": "function_call_output", "call_id": "a", "output": INTERRUPTED_TEXT}
    assert view.messages == [*listed[:3], closed, *listed[3:]]
    assert transcript.repair(view.messages, "openai_responses", sent=3).messages is view.messages


def test_an_asynchronous_call_that_was_sent_is_folded_where_its_answer_stands() -> None:
    """It has no home to be moved to, and none of its answers was sent (LANES 2)."""
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "async": True}
    output = {"type": "function_call_output", "call_id": "a", "output": "1"}
    view = transcript.repair([call, user(), output, user(), output], "openai_responses", sent=2)
    assert view.messages == [call, user(), {**output, "output": f"1{FOLD}1"}, user()]
    assert [repair.action for repair in view.repairs] == ["folded"]


@EACH_LANE
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_nothing_before_the_border_changes(lane: LaneName, data: Any) -> None:
    """Whatever is broken where: the part that was sent comes back object by object, and no content is lost unless named."""
    story = data.draw(stories(lane))
    broken = Writer().write(lane, story.broken)
    sent = data.draw(st.integers(0, len(broken)))
    view = transcript.repair(broken, lane, sent=sent)
    assert all(one is other for one, other in zip(view.messages, broken[:sent], strict=False))
    assert len(view.messages) >= sent
    text = str(view.messages)
    left_out = {i for repair in view.repairs if repair.form == "orphan_result" for i in repair.call_ids}
    for act in story.broken:
        if isinstance(act, Recorded):
            assert act.text in text or act.id in left_out or act.text == INTERRUPTED_TEXT
    again = transcript.repair(view.messages, lane, sent=sent)
    assert again.messages is view.messages
    assert again.remaining == view.remaining


@EACH_LANE
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_lawful_past_gives_a_lawful_whole(lane: LaneName, data: Any) -> None:
    """Where what was sent is lawful, or ends in an open turn, all that comes behind can be made lawful, and nothing remains."""
    story = data.draw(stories(lane))
    past = Writer().write(lane, story.lawful)
    sent = data.draw(st.integers(0, len(past)))
    while sent and transcript.check(past[:sent], lane, repair_last=False):
        sent -= 1
    listed = [*past[:sent], *Writer().write(lane, [act for act in story.broken[1:] if data.draw(st.booleans())])]
    view = transcript.repair(listed, lane, sent=sent)
    assert view.remaining == ()
    assert transcript.check(view.messages, lane) == []
