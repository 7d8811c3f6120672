"""One closure, one active batch, exactly one outcome a call (C2 to C13)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.kit import opened, shown, states, view
from tests.core.tables import STORIES, Story
from toolbatch.core import (
    Accepted,
    BatchHandle,
    Cancelled,
    Closed,
    CloseReason,
    Diagnostic,
    Failed,
    Input,
    InvalidInputError,
    InvalidTypeError,
    Limits,
    Rejected,
    Snapshot,
    State,
    Succeeded,
    ToolCall,
    ToolCallClosure,
    cut,
)

SUCCESS = {"status": "success", "content": "x"}
ERROR = {"status": "error", "message": "x"}
CANCELLED = {"status": "cancelled", "message": "x"}

REPORTS: dict[str, Any] = {
    "settle success": lambda closure, handle, call_id: closure.settle(handle, call_id, SUCCESS),
    "settle error": lambda closure, handle, call_id: closure.settle(handle, call_id, ERROR),
    "settle cancelled": lambda closure, handle, call_id: closure.settle(handle, call_id, CANCELLED),
    "succeed": lambda closure, handle, call_id: closure.succeed(handle, call_id, "x"),
    "fail": lambda closure, handle, call_id: closure.fail(handle, call_id, "x"),
    "cancel": lambda closure, handle, call_id: closure.cancel(handle, call_id),
    "close_call": lambda closure, handle, call_id: closure.close_call(handle, call_id),
    "start": lambda closure, handle, call_id: closure.start(handle, call_id),
    "progress": lambda closure, handle, call_id: closure.progress(handle, call_id, "x"),
    "hold": lambda closure, handle, call_id: closure.hold(handle, call_id, "x"),
}
SETTLING = [name for name in REPORTS if name not in ("start", "progress", "hold")]
OBSERVED = {
    "settle success": "success", "settle error": "error", "settle cancelled": "cancelled", "succeed": "success", "fail": "error",
    "cancel": "cancelled", "close_call": None, "start": None, "progress": None, "hold": None,
}  # fmt: skip
"""What a report says of the call; a decision of ours and a note of progress report no status."""


def finished(snapshot: Snapshot | Rejected) -> Snapshot:
    """The snapshot that a close or a seal gave."""
    assert isinstance(snapshot, Snapshot)
    return snapshot


# -- generations ---------------------------------------------------------------------------------------------------------


def test_generations_count_from_one() -> None:
    """Each `begin` is the next generation, whether the one before was open, closed or empty (C2)."""
    closure = ToolCallClosure()
    assert closure.active_generation is None
    for number in range(1, 6):
        begun = closure.begin([ToolCall("a", "t")] if number % 2 else [])
        assert begun.generation == begun.handle.generation == closure.active_generation == number
        if number == 3:
            closure.close(begun.handle)


def test_a_refused_begin_uses_up_no_number() -> None:
    """A `begin` that raises is no generation (C2)."""
    closure, _ = opened()
    with pytest.raises(InvalidInputError):
        closure.begin([ToolCall("", "t")])
    assert closure.begin([]).generation == 2


def test_beginning_closes_what_is_open() -> None:
    """Pending calls of the batch before become cancelled/superseded/unknown; settled ones stay (C3, C6)."""
    closure, handle = opened("a", "b", "c")
    closure.succeed(handle, "b", "done")
    closure.start(handle, "c")
    begun = closure.begin([ToolCall("a", "t")])
    superseded = begun.superseded
    assert superseded is not None
    assert superseded.generation == 1
    message = "Tool call was superseded by a newer generation."
    closed = Closed("cancelled", "superseded", message, "unknown")
    assert [call.settlement for call in superseded.calls] == [closed, Succeeded("done"), closed]
    assert superseded.close_reason == CloseReason("cancelled", "superseded", message, "unknown")
    assert states(closure) == {"a": "pending"}


@pytest.mark.parametrize(
    ("state", "says"),
    [("unknown", ["unknown", "unknown"]), ("not_started", ["not_started"] * 2), (None, ["not_started", "unknown"])],
)
def test_a_superseded_batch_says_what_it_is_told_or_what_is_known(state: Any, says: list[str]) -> None:
    """The side-effect state of superseded calls is given, or found out for each (C3, C10)."""
    closure, handle = opened("a", "b")
    closure.start(handle, "b")
    superseded = closure.begin([], side_effect_state=state).superseded
    assert superseded is not None
    assert [
        call.settlement.side_effect_state for call in superseded.calls if isinstance(call.settlement, Closed)
    ] == says


@pytest.mark.parametrize("end", ["close", "seal"])
def test_a_closed_batch_is_not_superseded(end: str) -> None:
    """Beginning after a close or a seal replaces nothing that was open (C3)."""
    closure, handle = opened("a")
    closure.succeed(handle, "a", "x")
    getattr(closure, end)(handle)
    assert closure.begin([]).superseded is None


def test_an_open_batch_is_superseded_although_all_its_calls_are_settled() -> None:
    """A batch is open until it is closed or sealed: a newer one closes it, with nothing left to cancel (C3)."""
    closure, handle = opened("a")
    closure.succeed(handle, "a", "x")
    superseded = closure.begin([]).superseded
    assert superseded is not None
    assert superseded.closed
    assert [call.state for call in superseded.calls] == ["success"]


def test_the_superseded_message_obeys_the_limit() -> None:
    """Our own message is cut like any other, and our own code stays whole (C8)."""
    closure, _ = opened("a", limits=Limits(max_message_bytes=10, max_code_bytes=1))
    superseded = closure.begin([]).superseded
    assert superseded is not None
    assert superseded.calls[0].settlement == Closed("cancelled", "superseded", "Tool ca...", "unknown")


# -- one outcome ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "settlement"),
    [
        ("settle success", Succeeded("x")),
        ("settle error", Failed("error", "x")),
        ("settle cancelled", Cancelled("cancelled", "x")),
        ("succeed", Succeeded("x")),
        ("fail", Failed("tool_error", "x")),
        ("cancel", Cancelled("cancelled", "Tool call was cancelled.")),
        ("close_call", Closed("cancelled", "cancelled", "Tool call was cancelled.", "unknown")),
    ],
)
def test_each_report_settles_its_own_call(report: str, settlement: Any) -> None:
    """A report of a pending call is accepted with the outcome it gave, and no other call moves (C5)."""
    closure, handle = opened("a", "b")
    answer = REPORTS[report](closure, handle, "b")
    assert answer == Accepted(1, "b", settlement)
    assert answer.accepted is True
    assert [call.settlement for call in shown(closure).calls] == [None, settlement]
    assert states(closure) == {"a": "pending", "b": settlement.status}
    assert not shown(closure).closed


@pytest.mark.parametrize("first", SETTLING)
@pytest.mark.parametrize("second", REPORTS)
def test_the_first_outcome_wins(first: str, second: str) -> None:
    """After an outcome every report is a duplicate, and the outcome is the same as before (C5, C6)."""
    closure, handle = opened("a")
    REPORTS[first](closure, handle, "a")
    before = view(closure)
    assert REPORTS[second](closure, handle, "a") == Rejected("duplicate_settlement", "a", 1, None)
    assert view(closure) == before


@pytest.mark.parametrize("first", SETTLING)
def test_no_close_and_no_newer_batch_changes_an_outcome(first: str) -> None:
    """Closing, closing again and superseding leave settled calls as they were (C6)."""
    closure, handle = opened("a", "b")
    REPORTS[first](closure, handle, "a")
    settled = shown(closure).calls[0]
    closed = finished(closure.close(handle, "error"))
    assert closed.calls[0] == settled
    assert finished(closure.close(handle, "cancelled", "other")) is closed
    closure.begin([ToolCall("a", "t")])
    assert closed.calls[0] == settled


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("call_id", ["a", "pending", "nobody"])
def test_the_reasons_are_checked_in_order(report: str, call_id: str) -> None:
    """stale_generation, then run_closed, then unknown_call, then duplicate_settlement, whatever else holds (C5)."""
    closure, old = opened("a", "pending")
    handle = closure.begin([ToolCall("a", "t"), ToolCall("pending", "t")]).handle
    observed = OBSERVED[report]
    closure.succeed(handle, "a", "x")
    if call_id == "nobody":
        assert REPORTS[report](closure, handle, call_id) == Rejected("unknown_call", call_id, 2, None)
    elif call_id == "a":
        assert REPORTS[report](closure, handle, call_id) == Rejected("duplicate_settlement", call_id, 2, None)
    assert REPORTS[report](closure, old, call_id) == Rejected("stale_generation", call_id, 1, observed)
    closure.close(handle)
    answer = REPORTS[report](closure, handle, call_id)
    assert answer == Rejected("run_closed", call_id, 2, observed)
    assert answer.accepted is False
    assert REPORTS[report](closure, old, call_id) == Rejected("stale_generation", call_id, 1, observed)


@pytest.mark.parametrize(
    ("outcome", "observed"),
    [
        (SUCCESS, "success"),
        ({"status": "error"}, "error"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "done"}, "invalid"),
        ({"status": 5}, "invalid"),
        ({"status": ["error"]}, "invalid"),
        ({"status": None}, None),
        ({}, None),
        (None, None),
        ("error", None),
        (5, None),
    ],
)
def test_a_rejection_says_what_a_late_report_claimed(outcome: Any, observed: str | None) -> None:
    """A late outcome is noted by the status it claims, however bad it is: a race never raises (C5)."""
    closure, old = opened("a")
    handle = closure.begin([ToolCall("a", "t")]).handle
    assert closure.settle(old, "a", outcome) == Rejected("stale_generation", "a", 1, observed)
    closure.close(handle)
    assert closure.settle(handle, "a", outcome) == Rejected("run_closed", "a", 2, observed)


@pytest.mark.parametrize("report", REPORTS)
def test_before_the_first_batch_nobody_has_a_handle(report: str) -> None:
    """Without a batch everything is stale, and there is nothing to see (C4, C12)."""
    closure = ToolCallClosure()
    assert REPORTS[report](closure, None, "a") == Rejected("stale_generation", "a", None, OBSERVED[report])
    assert REPORTS[report](closure, BatchHandle(0), "a").reason == "stale_generation"
    assert isinstance(closure.close(None), Rejected)  # type: ignore[arg-type]
    assert isinstance(closure.seal(None), Rejected)  # type: ignore[arg-type]
    assert closure.snapshot() is None
    assert closure.active_generation is None


# -- stories, told to the machine itself -----------------------------------------------------------------------------------

FEED: dict[Input, Any] = {
    Input.START: lambda closure, handle: closure.start(handle, "a"),
    Input.SUCCEED: lambda closure, handle: closure.succeed(handle, "a", "x"),
    Input.FAIL: lambda closure, handle: closure.fail(handle, "a", "x"),
    Input.CANCEL: lambda closure, handle: closure.cancel(handle, "a"),
    Input.CLOSE_ERROR: lambda closure, handle: closure.close_call(handle, "a", "error"),
    Input.CLOSE_CANCELLED: lambda closure, handle: closure.close_call(handle, "a", "cancelled"),
}
SHOWN = {
    State.ANNOUNCED: "pending", State.RUNNING: "pending", State.SUCCESS: "success", State.ERROR: "error", State.CANCELLED: "cancelled",
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.words)
def test_story_goes_as_told_in_the_closure(story: Story) -> None:
    """The closure lives each story like the table, with a second call standing by that never moves (C6, C17)."""
    closure, handle = opened("b", "a", "c")
    begun = False
    for event, taken, state in story.steps:
        answer = FEED[event](closure, handle)
        assert answer.accepted is taken
        begun = begun or (taken and event <= Input.CANCEL)  # whatever a tool reports, it has begun
        assert states(closure) == {"b": "pending", "a": SHOWN[state], "c": "pending"}
        assert [call.started for call in shown(closure).calls] == [False, begun, False]
        assert (shown(closure).calls[1].settlement is None) == (SHOWN[state] == "pending")


# -- content, messages, codes ----------------------------------------------------------------------------------------------


def test_content_is_fixed_when_it_is_reported() -> None:
    """Text goes through as it is, a value as its JSON of that moment (C7)."""
    closure, handle = opened("a", "b", "c")
    value: dict[str, Any] = {"list": [1], "é": None}
    closure.succeed(handle, "a", value)
    closure.settle(handle, "b", {"status": "success", "content": value})
    closure.succeed(handle, "c", ' {"a": 1} ')
    value["list"].append(2)
    contents = [call.settlement.content for call in shown(closure).calls if isinstance(call.settlement, Succeeded)]
    assert contents == ['{"list":[1],"é":null}', '{"list":[1],"é":null}', ' {"a": 1} ']


def test_a_host_may_have_its_own_encoder() -> None:
    """An injected encoder writes every value that is no text, and never sees text (C7)."""
    seen: list[Any] = []

    def own(value: object) -> str:
        seen.append(value)
        return f"<{value!r}>"

    closure, handle = opened("a", "b", encode=own)
    closure.succeed(handle, "a", {"k": 1})
    closure.succeed(handle, "b", "text")
    assert seen == [{"k": 1}]
    assert [call.settlement for call in shown(closure).calls] == [Succeeded("<{'k': 1}>"), Succeeded("text")]


@pytest.mark.parametrize("message", [None, "", "short", "é" * 30])
@pytest.mark.parametrize("report", ["fail", "settle error", "settle cancelled", "cancel", "close_call", "close"])
def test_messages_are_cut_and_never_refused(message: str | None, report: str) -> None:
    """Whatever its length, a message is kept within the limit, with `...` where it was cut (C8)."""
    closure, handle = opened("a", limits=Limits(max_message_bytes=12))
    match report:
        case "fail":
            closure.fail(handle, "a", message)
        case "cancel":
            closure.cancel(handle, "a", message)
        case "close_call":
            closure.close_call(handle, "a", message=message)
        case "close":
            closure.close(handle, message=message)
        case _:
            closure.settle(handle, "a", {"status": report.removeprefix("settle "), "message": message})
    settlement = shown(closure).calls[0].settlement
    assert isinstance(settlement, (Failed, Cancelled, Closed))
    assert len(settlement.message.encode()) <= 12
    if message is not None:
        assert settlement.message == (message if len(message) < 12 else "éééé...")
    else:
        assert settlement.message == ("None" if report == "fail" else "Tool call...")


def test_default_messages_and_codes() -> None:
    """Without a message or a code each report says something that the model can read (C8, C9)."""
    closure, handle = opened("a", "b", "c", "d", "e", "f")
    closure.settle(handle, "a", {"status": "error"})
    closure.settle(handle, "b", {"status": "cancelled", "code": None, "message": None})
    closure.cancel(handle, "c")
    closure.fail(handle, "d", Exception("x"))
    closure.close_call(handle, "e", "error")
    closure.close_call(handle, "f", "cancelled")
    assert [call.settlement for call in shown(closure).calls] == [
        Failed("error", "Tool call failed."),
        Cancelled("cancelled", "Tool call was cancelled."),
        Cancelled("cancelled", "Tool call was cancelled."),
        Failed("tool_error", "x"),
        Closed("error", "error", "Tool call did not complete.", "unknown"),
        Closed("cancelled", "cancelled", "Tool call was cancelled.", "unknown"),
    ]


def test_built_in_codes_stay_whole_under_any_limit() -> None:
    """The codes that we choose are exempt from the limit; the same words given by the caller are not (C8)."""
    closure, handle = opened("a", "b", "c", "d", "e", limits=Limits(max_code_bytes=1))
    for word in ("error", "cancelled", "tool_error", "superseded"):
        with pytest.raises(InvalidInputError, match="code"):
            closure.fail(handle, "a", "x", code=word)
    closure.fail(handle, "a", "x")
    closure.cancel(handle, "b")
    closure.settle(handle, "c", ERROR)
    closure.close_call(handle, "d", "error")
    closure.close(handle)
    codes = [
        call.settlement.code
        for call in shown(closure).calls
        if not isinstance(call.settlement, (Succeeded, type(None)))
    ]
    assert codes == ["tool_error", "cancelled", "error", "error", "cancelled"]


class Telling(Exception):
    """An exception that says more in its `repr` than in its text."""

    def __str__(self) -> str:
        return "just this"

    def __repr__(self) -> str:
        return "secret"


def test_an_exception_gives_its_message_and_nothing_else() -> None:
    """No traceback, cause, notes or repr of an exception reach the model (C8)."""
    closure, handle = opened("a")
    try:
        try:
            raise KeyError("secret cause")
        except KeyError as cause:
            raise Telling("secret argument") from cause
    except Telling as error:
        error.add_note("secret note")
        closure.fail(handle, "a", error, "code")
    assert shown(closure).calls[0].settlement == Failed("code", "just this")
    assert "secret" not in str(shown(closure).to_dict())


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_no_message_can_break_the_json_of_a_snapshot(message: str) -> None:
    """A message of any characters is kept as text that UTF-8 has (C7, C8)."""
    closure, handle = opened("a", "b", limits=Limits(max_message_bytes=20))
    closure.fail(handle, "a", Exception(message))
    closure.close(handle, message=message)
    for call in shown(closure).calls:
        assert isinstance(call.settlement, (Failed, Closed))
        assert len(call.settlement.message.encode()) <= 20


# -- closing -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["error", "cancelled"])
def test_close_gives_every_pending_call_its_outcome(status: Any) -> None:
    """Pending calls get a synthetic outcome as told, settled ones stay, and the batch is frozen (C9)."""
    closure, handle = opened("a", "b", "c")
    closure.fail(handle, "b", "own")
    closed = finished(closure.close(handle, status, "timeout", "Too slow.", "not_started"))
    synthetic = Closed(status, "timeout", "Too slow.", "not_started")
    assert [call.settlement for call in closed.calls] == [synthetic, Failed("tool_error", "own"), synthetic]
    assert [call.state for call in closed.calls] == [status, "error", status]
    assert closed.close_reason == CloseReason(status, "timeout", "Too slow.", "not_started")
    assert closed.closed
    assert closure.snapshot() is closed


@pytest.mark.parametrize("end", ["close", "seal"])
@pytest.mark.parametrize("again", ["close", "seal"])
def test_closing_twice_changes_nothing(end: str, again: str) -> None:
    """A closed batch answers every later close and seal with its snapshot as it is (C9, C11)."""
    closure, handle = opened("a")
    closure.succeed(handle, "a", "x")
    first = finished(getattr(closure, end)(handle))
    second = finished(getattr(closure, again)(handle))
    assert second is first
    assert finished(closure.close(handle, "nonsense")) is first  # type: ignore[arg-type]


@pytest.mark.parametrize("end", ["close", "seal"])
def test_another_batch_can_not_be_closed(end: str) -> None:
    """With a handle that is not the active one nothing is closed (C9, C11)."""
    closure, old = opened("a")
    closure.begin([])
    assert getattr(closure, end)(old) == Rejected("stale_generation", None, 1, None)
    assert not shown(closure).closed


def test_closing_an_empty_or_settled_batch() -> None:
    """With nothing pending a close freezes the batch with the reason given, and makes up no outcome (C9)."""
    closure, handle = opened("a")
    closure.succeed(handle, "a", "x")
    closed = finished(closure.close(handle, "error", "batch_failed", "No."))
    assert [call.settlement for call in closed.calls] == [Succeeded("x")]
    assert closed.close_reason == CloseReason("error", "batch_failed", "No.", "unknown")
    known = closure.begin([])
    assert finished(closure.close(known.handle, side_effect_state=None)).close_reason == CloseReason(
        "cancelled", "cancelled", "Tool call was cancelled.", "not_started"
    )


def test_close_call_leaves_the_batch_open() -> None:
    """One call is closed, its siblings run on, and the batch can still be sealed (C9)."""
    closure, handle = opened("a", "b")
    answer = closure.close_call(handle, "a", "error", "timeout", "Too slow.", "not_started")
    assert answer == Accepted(1, "a", Closed("error", "timeout", "Too slow.", "not_started"))
    assert not shown(closure).closed
    assert closure.succeed(handle, "b", "x").accepted
    assert finished(closure.seal(handle)).close_reason == CloseReason("complete")


def test_seal_wants_every_call_settled() -> None:
    """With a pending call, started or not, `seal` is refused and changes nothing; with none it completes (C11)."""
    closure, handle = opened("a", "b")
    closure.start(handle, "b")
    before = view(closure)
    assert closure.seal(handle) == Rejected("pending_calls", None, 1, None)
    closure.succeed(handle, "a", "x")
    assert closure.seal(handle) == Rejected("pending_calls", None, 1, None)
    assert view(closure)["closed"] is before["closed"] is False
    closure.close_call(handle, "b")
    sealed = finished(closure.seal(handle))
    assert sealed.close_reason == CloseReason("complete")
    assert closure.succeed(handle, "a", "y") == Rejected("run_closed", "a", 1, "success")


@pytest.mark.parametrize("reject", ["duplicate", "unknown", "late start", "progress"])
def test_a_rejected_report_settles_nothing_that_seal_counts(reject: str) -> None:
    """Only outcomes count: rejected reports don't bring a batch nearer to its end (C11)."""
    closure, handle = opened("a", "b")
    closure.succeed(handle, "a", "x")
    for _ in range(3):
        match reject:
            case "duplicate":
                closure.succeed(handle, "a", "x")
            case "unknown":
                closure.succeed(handle, "nobody", "x")
            case "late start":
                closure.start(handle, "a")
            case _:
                closure.progress(handle, "b", "x")
    assert isinstance(closure.seal(handle), Rejected)
    closure.succeed(handle, "b", "x")
    assert isinstance(closure.seal(handle), Snapshot)


# -- side effects and progress -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "close_call"])
@pytest.mark.parametrize("state", ["unknown", "not_started", None])
@pytest.mark.parametrize("started", [0, 1, 2])
def test_a_closed_call_says_what_is_known_of_it(how: str, state: Any, started: int) -> None:
    """As told for all; or, untold, `unknown` for a call that was started and `not_started` for one that was not (C10)."""
    closure, handle = opened("a", "b")
    for _ in range(started):
        assert closure.start(handle, "b") == Accepted(1, "b", None)
    if how == "close":
        closure.close(handle, side_effect_state=state)
    else:
        closure.close_call(handle, "a", side_effect_state=state)
        closure.close_call(handle, "b", side_effect_state=state)
    told = [call.settlement.side_effect_state for call in shown(closure).calls if isinstance(call.settlement, Closed)]
    assert told == [state or "not_started", state or ("unknown" if started else "not_started")]


@pytest.mark.parametrize(
    ("start", "overall"), [([], "not_started"), (["a"], "unknown"), (["b"], "unknown"), (["c"], "not_started")]
)
def test_the_close_reason_says_the_most_careful_of_all(start: list[str], overall: str) -> None:
    """One call that may have begun makes the whole close `unknown`; a call that had its outcome does not (C10)."""
    closure, handle = opened("a", "b", "c")
    for call_id in start:
        closure.start(handle, call_id)
    closure.succeed(handle, "c", "x")
    reason = finished(closure.close(handle, side_effect_state=None)).close_reason
    assert reason is not None
    assert reason.side_effect_state == overall


def test_started_is_remembered_and_settles_nothing() -> None:
    """`start` shows in the snapshot, keeps the call pending, and stays shown after the outcome (C10)."""
    closure, handle = opened("a", "b", "c")
    closure.start(handle, "a")
    assert [call.started for call in shown(closure).calls] == [True, False, False]
    assert states(closure) == {"a": "pending", "b": "pending", "c": "pending"}
    closure.close_call(handle, "a")
    closure.close_call(handle, "b")
    assert [call.started for call in shown(closure).calls] == [True, False, False]


@pytest.mark.parametrize("report", [name for name in SETTLING if name != "close_call"])
def test_what_reports_has_begun(report: str) -> None:
    """A report that overtook its `start` shows that the execution began; a close shows nothing of the kind (C10)."""
    closure, handle = opened("a", "b")
    REPORTS[report](closure, handle, "a")
    closure.close_call(handle, "b")
    assert [call.started for call in shown(closure).calls] == [True, False]


def test_many_calls_are_started_at_once() -> None:
    """`start_many` does what `start` does for each call; those that have their outcome keep it, without a diagnostic (C10)."""
    closure, handle = opened("a", "b", "c", "d")
    closure.close_call(handle, "b")
    before = shown(closure)
    assert closure.start_many(handle, b"\x01\x01\x01\x00") is True
    assert [call.started for call in before.calls] == [False] * 4
    assert [call.started for call in shown(closure).calls] == [True, False, True, False]
    assert states(closure) == {"a": "pending", "b": "cancelled", "c": "pending", "d": "pending"}
    assert shown(closure).diagnostics == ()
    assert closure.start_many(handle, bytes(4)) is True, "what has begun stays so"
    closed = finished(closure.close(handle, side_effect_state=None))
    told = [call.settlement.side_effect_state for call in closed.calls if isinstance(call.settlement, Closed)]
    assert told == ["unknown", "unknown", "unknown", "not_started"]


@pytest.mark.parametrize(
    ("began", "error"),
    [
        (b"\x01", InvalidInputError),
        (b"\x01\x01\x01", InvalidInputError),
        (b"\x01\x02", InvalidInputError),
        (b"\x02\x01", InvalidInputError),
        (b"\x01\xff", InvalidInputError),
        (bytearray(2), InvalidTypeError),
        (["a", "b"], InvalidTypeError),
        ("ab", InvalidTypeError),
        (None, InvalidTypeError),
        (2, InvalidTypeError),
    ],
)
def test_many_calls_are_started_all_or_none(began: Any, error: type[Exception]) -> None:
    """What is not one 0 or 1 for each call is the caller's mistake, and no call has been started (C10)."""
    closure, handle = opened("a", "b")
    before = view(closure)
    with pytest.raises(error):
        closure.start_many(handle, began)
    assert view(closure) == before


def test_no_calls_of_another_batch_are_started() -> None:
    """With another handle or a closed batch nothing is done, and the answer says so (C4, C9)."""
    closure, old = opened("a")
    handle = closure.begin([ToolCall("a", "t")]).handle
    for other in (old, BatchHandle(2), None):
        assert closure.start_many(other, b"\x01") is False  # type: ignore[arg-type]
    assert [call.started for call in shown(closure).calls] == [False]
    assert closure.start_many(handle, b"\x01") is True
    assert [call.started for call in shown(closure).calls] == [True]
    closed = finished(closure.close(handle))
    assert closure.start_many(handle, b"\x01") is False
    assert shown(closure) is closed


def partials(closure: ToolCallClosure) -> list[str | None]:
    """What each closed call had reported."""
    return [call.settlement.partial for call in shown(closure).calls if isinstance(call.settlement, Closed)]


@pytest.mark.parametrize("how", ["close", "close_call", "begin"])
def test_a_call_that_is_cut_off_carries_what_it_had_reported(how: str) -> None:
    """Progress shows in the synthetic outcome of its own call, a report a line, and nowhere before (B19)."""
    closure, handle = opened("a", "b", "c")
    before = view(closure)
    assert closure.progress(handle, "b", "one") == Accepted(1, "b", None)
    closure.progress(handle, "b", {"two": 2})
    closure.progress(handle, "c", "")
    assert view(closure) == before
    match how:
        case "close":
            closed = finished(closure.close(handle))
        case "close_call":
            for call_id in "abc":
                closure.close_call(handle, call_id)
            closed = finished(closure.seal(handle))
        case _:
            closed_or_none = closure.begin([]).superseded
            assert closed_or_none is not None
            closed = closed_or_none
    told = [call.settlement.partial for call in closed.calls if isinstance(call.settlement, Closed)]
    assert told == [None, 'one\n{"two":2}', None]
    shapes = ["partial" in call.to_dict()["settlement"] for call in closed.calls]
    assert shapes == [False, True, False]


@pytest.mark.parametrize("how", ["close", "close_call", "superseded"])
def test_what_a_call_waited_for_is_said_when_it_is_closed(how: str) -> None:
    """T7: whatever closes a call that waits for the host, its message says so first; not once it waits no longer."""
    closure, handle = opened("a", "b", "c")
    for call_id in "ab":
        assert closure.hold(handle, call_id, "NOT EXECUTED: it waited.") == Accepted(1, call_id, None)
    closure.hold(handle, "b", None)
    closure.hold(handle, "c", None)
    match how:
        case "close":
            closed = finished(closure.close(handle, message="over"))
        case "close_call":
            for call_id in "abc":
                closure.close_call(handle, call_id, message="over")
            closed = finished(closure.seal(handle))
        case _:
            closed_or_none = closure.begin([]).superseded
            assert closed_or_none is not None
            closed = closed_or_none
    told = [call.settlement.message for call in closed.calls if call.settlement is not None]
    assert [text is not None and text.startswith("NOT EXECUTED: it waited. ") for text in told] == [True, False, False]


def test_what_a_call_waited_for_is_cut_like_any_message() -> None:
    """C8, T7: both texts together keep to the bound."""
    closure, handle = opened("a", limits=Limits(max_message_bytes=20))
    closure.hold(handle, "a", "é" * 30)
    settlement = finished(closure.close(handle, message="over")).calls[0].settlement
    assert settlement is not None
    assert settlement.message is not None
    assert len(settlement.message.encode()) <= 20


def test_a_reported_outcome_does_not_say_what_it_waited_for() -> None:
    """T7: a call that answers has waited for nothing in the end."""
    closure, handle = opened("a")
    closure.hold(handle, "a", "NOT EXECUTED")
    closure.fail(handle, "a", "broke")
    assert "NOT" not in str(finished(closure.seal(handle)).to_dict())


def test_a_reported_outcome_carries_no_progress() -> None:
    """A tool that answers has said it all: its progress is not in its outcome (B19)."""
    closure, handle = opened("a")
    closure.progress(handle, "a", "half")
    closure.fail(handle, "a", "broke")
    assert "half" not in str(finished(closure.seal(handle)).to_dict())


@given(st.lists(st.text("aé😀\n\ud800", max_size=12), max_size=12), st.integers(1, 20))
def test_progress_is_bounded_and_the_newest_is_kept(reports: list[str], limit: int) -> None:
    """All progress of a call together is within `max_message_bytes`, and what goes is the oldest (B19)."""
    closure, handle = opened("a", limits=Limits(max_message_bytes=limit))
    for report in reports:
        closure.progress(handle, "a", report)
    closure.close(handle)
    (partial,) = partials(closure)
    if partial is None:
        assert not reports or cut(reports[-1], limit) == ""
        return
    assert len(partial.encode()) <= limit
    # The last report is there, whole if it fits at all.
    last = reports[-1].replace("\ud800", "\ufffd")
    if len(last.encode()) <= limit:
        assert partial.endswith(last)


def test_progress_by_hand() -> None:
    """The line breaks count too: reports go, oldest first, until what is left fits exactly (B19)."""
    for limit, kept in (
        (7, "b\nccccc"),
        (8, "b\nccccc"),
        (11, "aaa\nb\nccccc"),
        (6, "ccccc"),
        (5, "ccccc"),
        (4, "c..."),
    ):
        closure, handle = opened("a", limits=Limits(max_message_bytes=limit))
        for report in ("aaa", "b", "ccccc"):
            closure.progress(handle, "a", report)
        closure.close(handle)
        assert partials(closure) == [kept]


# -- diagnostics -----------------------------------------------------------------------------------------------------------


def test_rejections_are_kept_and_then_counted() -> None:
    """The first `max_diagnostics` rejections are kept in order, the rest counted, and the next batch starts anew (C13)."""
    closure, old = opened("a", limits=Limits(max_diagnostics=3))
    handle = closure.begin([ToolCall("a", "t")]).handle
    closure.succeed(old, "a", "x")
    closure.seal(handle)
    closure.fail(handle, "nobody", "x")
    assert shown(closure).diagnostics_dropped == 0
    closure.cancel(handle, "a")
    closure.cancel(handle, "a")
    closure.seal(handle)
    closure.settle(handle, "a", SUCCESS)
    snapshot = shown(closure)
    assert snapshot.diagnostics == (
        Diagnostic("stale_generation", "a", 1, "success"),
        Diagnostic("pending_calls", None, 2, None),
        Diagnostic("unknown_call", "nobody", 2, None),
    )
    assert snapshot.diagnostics_dropped == 2
    data = snapshot.to_dict()
    assert data["diagnostics_dropped"] == 2
    assert data["diagnostics"][1] == {
        "reason": "pending_calls",
        "call_id": None,
        "generation": 2,
        "observed_status": None,
    }
    closure.begin([])
    assert shown(closure).diagnostics == ()
    assert shown(closure).diagnostics_dropped == 0


def test_what_is_accepted_leaves_no_diagnostic() -> None:
    """Only rejections are recorded: not successes, not repeated closes, and not what raised (C13)."""
    closure, handle = opened("a", "b")
    closure.start(handle, "a")
    closure.start(handle, "a")
    closure.progress(handle, "a", "p")
    closure.succeed(handle, "a", "x")
    with pytest.raises(InvalidInputError):
        closure.succeed(handle, "b", object())
    with pytest.raises(InvalidTypeError):
        closure.succeed(handle, 5, "x")  # type: ignore[arg-type]
    closure.close(handle)
    closure.close(handle)
    closure.seal(handle)
    assert shown(closure).diagnostics == ()


def test_a_rejection_and_its_diagnostic_say_the_same() -> None:
    """What the caller was answered is what the diagnostics show (C13)."""
    closure, handle = opened("a")
    closure.close(handle)
    answer = closure.succeed(handle, "a", "x")
    assert isinstance(answer, Rejected)
    assert shown(closure).diagnostics[0].to_dict() == {
        key: value for key, value in answer.to_dict().items() if key != "accepted"
    }
    assert answer.to_dict()["accepted"] is False
