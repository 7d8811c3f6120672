"""What holds for any conversation, broken in any way (L1 to L5)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transcript.judges import JUDGES
from tests.transcript.kit import frozen, summed
from tests.transcript.worlds import Recorded, Writer, stories
from toolbatch import transcript
from toolbatch.transcript import INTERRUPTED_TEXT, LANES, LaneName

EACH_LANE = pytest.mark.parametrize("lane", LANES)
MANY = settings(deadline=None, max_examples=60)


def text_of(messages: Any) -> str:
    """All that stands in messages, as one text."""
    return json.dumps(messages, ensure_ascii=False)


@EACH_LANE
@MANY
@given(data=st.data())
def test_every_judge_takes_the_repaired_list(lane: LaneName, data: Any) -> None:
    """Whatever was broken: our check finds nothing, nor does the strict provider, nor any validator, nor the SDK's types (L1)."""
    story = data.draw(stories(lane))
    broken = Writer().write(lane, story.broken)
    view = transcript.repair(broken, lane)
    assert transcript.check(view.messages, lane) == []
    for judge in JUDGES[lane]:
        assert not judge(view.messages), (judge, view.messages)


@EACH_LANE
@MANY
@given(data=st.data())
def test_a_lawful_list_comes_back_as_the_same_object(lane: LaneName, data: Any) -> None:
    """A story that nobody broke has nothing to repair; and no judge thinks otherwise (L4)."""
    messages = Writer().write(lane, data.draw(stories(lane)).lawful)
    for judge in JUDGES[lane]:
        assert not judge(messages), judge
    view = transcript.repair(messages, lane)
    assert view.messages is messages
    assert (view.repairs, transcript.check(messages, lane)) == ((), [])


@EACH_LANE
@MANY
@given(data=st.data())
def test_twice_changes_nothing_and_the_input_stays(lane: LaneName, data: Any) -> None:
    """Repair is idempotent, deterministic and pure (L4)."""
    broken = Writer().write(lane, data.draw(stories(lane)).broken)
    before = frozen(broken)
    view = transcript.repair(broken, lane)
    assert broken == before
    assert transcript.repair(broken, lane) == view
    assert transcript.repair(view.messages, lane).messages is view.messages


@EACH_LANE
@MANY
@given(data=st.data())
def test_check_and_repair_name_the_same_faults(lane: LaneName, data: Any) -> None:
    """Form by form and turn by turn: the same calls, the same messages, in the same order, and none where nothing is done (L1)."""
    broken = Writer().write(lane, data.draw(stories(lane)).broken)
    repair_last, server_context = data.draw(st.booleans()), data.draw(st.booleans())
    found = transcript.check(broken, lane, repair_last=repair_last, server_context=server_context)
    view = transcript.repair(broken, lane, repair_last=repair_last, server_context=server_context)
    assert list(summed(view.repairs)) == [(one.form, one.position) for one in found]
    assert summed(view.repairs) == summed(found)
    assert (view.messages is broken) == (not found)


@EACH_LANE
@MANY
@given(data=st.data())
def test_no_recorded_content_is_lost_unless_reported(lane: LaneName, data: Any) -> None:
    """Every text is still there, but for orphans, whose repair names them; then, and for repeated calls, the view is lossy (L5)."""
    story = data.draw(stories(lane))
    broken = Writer().write(lane, story.broken)
    view = transcript.repair(broken, lane)
    left_out = {i for repair in view.repairs if repair.form == "orphan_result" for i in repair.call_ids}
    text = text_of(view.messages)
    for act in story.broken:
        if isinstance(act, Recorded):
            assert act.text in text or act.id in left_out or act.text == INTERRUPTED_TEXT
        else:
            values = [act.text] if not hasattr(act, "blocks") else [value for _, value in act.blocks]
            assert all(value in text for value in values)
    assert view.lossy == bool({"orphan_result", "duplicate_call"} & set(view.forms))


@EACH_LANE
@MANY
@given(data=st.data())
def test_unknown_members_survive(lane: LaneName, data: Any) -> None:
    """Members that no provider knows go where their entry goes, but for entries whose repair says that they are left out."""
    writer = Writer(strange=True)
    broken = writer.write(lane, data.draw(stories(lane, strange=True)).broken)
    view = transcript.repair(broken, lane)
    if view.lossy or any(INTERRUPTED_TEXT in text_of(message) for message in broken):
        return  # a close that is void leaves with its members
    text = text_of(view.messages)
    assert [key for key in writer.strange_keys if f'"{key}"' not in text] == []


@EACH_LANE
@MANY
@given(data=st.data())
def test_what_was_not_touched_keeps_its_identity(lane: LaneName, data: Any) -> None:
    """A message that no repair names is the same object in the view (L4)."""
    broken = Writer().write(lane, data.draw(stories(lane)).broken)
    view = transcript.repair(broken, lane)
    named = {position for repair in view.repairs for position in repair.positions}
    # A turn whose results are put in order touches its neighbour, where results lead the next message.
    touched = named | {position + 1 for position in named} if lane in ("anthropic", "bedrock", "gemini") else named
    kept = {id(message) for message in view.messages}
    for position, message in enumerate(broken):
        if position not in touched:
            assert id(message) in kept


@EACH_LANE
@MANY
@given(data=st.data())
def test_thinking_is_never_moved(lane: LaneName, data: Any) -> None:
    """Thinking and reasoning stand against the calls as they stood: the same sequence before and after (L6)."""
    story = data.draw(stories(lane))
    broken = Writer().write(lane, story.broken)
    view = transcript.repair(broken, lane)

    def order(messages: list[Any]) -> list[str]:
        text, found = text_of(messages), []
        for act in story.broken:
            for kind, value in getattr(act, "blocks", ()):
                if kind == "thinking":
                    found.append((text.index(value), value))
        return [value for _, value in sorted(found)]

    assert order(view.messages) == order(broken)
