"""Where other repairers differ from ours on the same lists, and why that matters: measured, not claimed.

The table below is the whole of it: for each peer, every collected transcript on which its list is not one that the case takes.
Where a peer is not listed, it does as we do. pydantic-ai has messages of its own: it is asked about chats only.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transcript.kit import Case, Json, cases
from tests.transcript.peers import Repairer, by_pydantic_ai, by_tool_call_repair, by_turnsafe
from tests.transcript.worlds import Recorded, Writer, stories
from toolbatch import transcript
from toolbatch.testing import check_anthropic, check_chat
from toolbatch.transcript import LaneName

REFUSED = "the strict provider still refuses it"
LOSES_RESULT = "a recorded result is gone"
LOSES_CALL = "a call is gone"
OTHER = "another lawful list"

PEERS: dict[str, Repairer] = {
    "turnsafe": by_turnsafe,
    "tool-call-repair": by_tool_call_repair,
    "pydantic-ai": by_pydantic_ai,
}

DIFFERENCES: dict[str, dict[str, str]] = {
    "turnsafe": {
        "09-oc-duplicate-interleaved": LOSES_RESULT,  # of two results it keeps the first
        "12-oc-reuse-two-after-last": LOSES_RESULT,  # likewise
        "21-an-text-after-call": REFUSED,  # it leaves text behind a call where it is
        "23-an-server-tool-behind-call": REFUSED,  # likewise
        "26-an-duplicate-with-image": LOSES_RESULT,  # and the picture with it
        "29-an-mix-all-forms": REFUSED,  # text between calls again
        "48-an-missing-assistant-next": REFUSED,  # it closes behind the next assistant message, not behind the call's
        "51-an-thinking-between-calls": REFUSED,  # text between calls again
    },
    "tool-call-repair": {
        "04-oc-late-behind-steer": LOSES_RESULT,  # a result behind a user's message is dropped, and its call closed
        "06-oc-error-turns-between": LOSES_RESULT,  # likewise behind another assistant message
        "09-oc-duplicate-interleaved": LOSES_RESULT,  # of two results it keeps the first
        "10-oc-duplicate-call-stream": REFUSED,  # it does not see repeated calls
        "12-oc-reuse-two-after-last": LOSES_RESULT,  # of two results it keeps the first
        "21-an-text-after-call": REFUSED,  # it leaves text behind a call where it is
        "23-an-server-tool-behind-call": REFUSED,  # likewise
        "26-an-duplicate-with-image": LOSES_RESULT,  # and the picture with it
        "27-an-duplicate-tool-use": REFUSED,  # it does not see repeated calls
        "29-an-mix-all-forms": REFUSED,  # likewise
        "50-an-chunked-assistant": LOSES_RESULT,  # a result behind another assistant message is dropped
        "51-an-thinking-between-calls": REFUSED,  # it leaves text behind a call where it is
    },
    "pydantic-ai": {
        "06-oc-error-turns-between": OTHER,  # it joins assistant messages in a row to one, which needs no move
        "09-oc-duplicate-interleaved": REFUSED,  # it keeps both results
        "10-oc-duplicate-call-stream": REFUSED,  # it does not see repeated calls
        "12-oc-reuse-two-after-last": REFUSED,  # it keeps both results
        "41-oc-duplicate-identical": REFUSED,  # likewise
        "43-oc-close-stands-alone": REFUSED,  # likewise of two closes
    },
}

# What these hold besides calls and results has no place in pydantic-ai's messages.
UNTOLD = ("37-ok-oc-order-and-roles", "60-ok-oc-legacy-function")

CASES = [case for case in cases() if case.lane in ("openai_chat", "anthropic")]
JUDGES = {"openai_chat": check_chat, "anthropic": check_anthropic}


def repairer(peer: str) -> Repairer:
    """A peer that is installed; pydantic-ai is no part of this project's own environment."""
    if peer == "pydantic-ai":
        pytest.importorskip("pydantic_ai")
    return PEERS[peer]


def difference(case: Case, theirs: list[Json]) -> str | None:
    """What is wrong with a peer's list, the worst first; `None` if it is one that the case takes."""
    if case.matches(theirs):
        return None
    if JUDGES[case.lane](theirs) is not None:
        return REFUSED
    text = json.dumps(theirs)
    orphans = {i for v in transcript.check(case.input, case.lane) if v.form == "orphan_result" for i in v.call_ids}
    if any(json.dumps(content)[1:-1] not in text for call_id, content in results(case.input) if call_id not in orphans):
        return LOSES_RESULT
    if any(json.dumps(call_id) not in text for call_id in calls(case.input)):
        return LOSES_CALL
    return OTHER


def results(messages: list[Json]) -> list[tuple[str, Any]]:
    """The recorded results: their ids and contents."""
    found = [(m["tool_call_id"], m["content"]) for m in messages if m["role"] == "tool"]
    blocks = [block for m in messages if isinstance(m.get("content"), list) for block in m["content"]]
    return found + [(b["tool_use_id"], b["content"]) for b in blocks if b["type"] == "tool_result"]


def calls(messages: list[Json]) -> list[str]:
    """The ids of the calls."""
    found = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    blocks = [block for m in messages if isinstance(m.get("content"), list) for block in m["content"]]
    return found + [b["id"] for b in blocks if b["type"] == "tool_use"]


@pytest.mark.parametrize("peer", PEERS)
def test_peers_differ_here_and_nowhere_else(peer: str) -> None:
    """On the collected transcripts, each peer's differences are those in the table, for the reasons given there."""
    repair = repairer(peer)
    chats = [case for case in CASES if peer != "pydantic-ai" or case.lane == "openai_chat"]
    asked = [case for case in chats if peer != "pydantic-ai" or case.name not in UNTOLD]
    found = {case.name: difference(case, repair(case.input, case.lane)) for case in asked}
    assert {name: why for name, why in found.items() if why} == DIFFERENCES[peer]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ours_does_not_differ(case: Case) -> None:
    """The same question put to us: no difference on any of them."""
    assert difference(case, transcript.repair(case.input, case.lane).messages) is None


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("lane", ["openai_chat", "anthropic"])
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_where_only_one_answer_is_right_all_agree(peer: str, lane: LaneName, data: Any) -> None:
    """A list from which only results are missing has one right repair but for the text: each call closed, in its place."""
    repair = repairer(peer)
    if peer == "pydantic-ai" and lane != "openai_chat":
        return
    story = data.draw(stories(lane))
    kept = [act for act in story.lawful if not isinstance(act, Recorded) or data.draw(st.booleans())]
    plain = [Recorded(act.id, act.text) if isinstance(act, Recorded) else act for act in kept]
    listed = Writer().write(lane, plain)
    ours, theirs = transcript.repair(listed, lane).messages, repair(listed, lane)
    assert answers(theirs) == answers(ours)


def answers(messages: list[Json]) -> list[list[str]]:
    """The ids that are answered behind each message, whatever else is told how."""
    runs: list[list[str]] = []
    for message in messages:
        found = [call_id for call_id, _ in results([message])]
        if message["role"] == "tool":
            runs[-1] += found
        elif found:
            runs.append(found)
        elif calls([message]):
            runs.append([])
    return [sorted(run) for run in runs if run]
