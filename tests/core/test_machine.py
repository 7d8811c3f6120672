"""Random histories of many calls over many generations, against the promises alone.

The model holds what was promised to the caller and nothing of how it is kept: which outcomes were accepted, which snapshots
were handed out, how often the closure said no.
"""

import json
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from toolbatch.core import (
    Accepted,
    BatchHandle,
    Closed,
    InvalidInputError,
    Limits,
    Rejected,
    Snapshot,
    ToolCall,
    ToolCallClosure,
)
from toolbatch.providers import anthropic, openai_chat, openai_responses

MAX_DIAGNOSTICS = 4
IDS = [f"c{number}" for number in range(8)]
EXPORTS = (openai_chat.results, openai_responses.results, anthropic.results)

ids = st.sampled_from(IDS)
some_ids = st.lists(ids, unique=True, max_size=len(IDS))
texts = st.text("aé😀\ud800", max_size=4)
values = st.one_of(
    texts.filter(lambda text: "\ud800" not in text),
    st.integers(),
    st.none(),
    st.dictionaries(st.sampled_from("ab"), st.integers(), max_size=2),
)
side_effects = st.sampled_from(["unknown", "not_started", None])
statuses = st.sampled_from(["error", "cancelled"])
reports = st.one_of(
    st.tuples(st.just("succeed"), values),
    st.tuples(st.just("fail"), texts),
    st.tuples(st.just("cancel"), texts),
    st.tuples(st.just("settle"), st.fixed_dictionaries({"status": statuses, "message": texts})),
    st.tuples(st.just("settle"), st.fixed_dictionaries({"status": st.just("success"), "content": values})),
    st.tuples(st.just("close_call"), statuses),
)
bad_batches = st.sampled_from(
    [["c1", "c1"], ["", "c2"], ["c3", "x" * 600], ["c1", "c2", "c3", " "], [f"n{n}" for n in range(9)]]
)


def dump(snapshot: Snapshot) -> str:
    """A snapshot as bytes."""
    return json.dumps(snapshot.to_dict())


class Promises(RuleBasedStateMachine):
    """Drives one closure, and holds it to its word."""

    def __init__(self) -> None:
        super().__init__()
        self.closure = ToolCallClosure(
            Limits(max_calls=len(IDS), max_diagnostics=MAX_DIAGNOSTICS, max_message_bytes=20)
        )
        self.handles: list[BatchHandle] = []
        self.seen: list[tuple[Snapshot, str]] = []  # every snapshot handed out, and how it looked then
        self.new_batch([])

    def new_batch(self, announced: list[str]) -> None:
        """Forget what was promised of the batch before; its snapshots are remembered for ever."""
        self.announced = announced
        self.outcomes: dict[str, Any] = {}
        self.given: list[tuple[str, tuple[str, Any]]] = []  # accepted reports, in the order in which they came
        self.started: set[str] = set()
        self.rejections = 0
        self.closed: Snapshot | None = None

    def keep(self, snapshot: Snapshot) -> Snapshot:
        self.seen.append((snapshot, dump(snapshot)))
        return snapshot

    def handle(self, age: int) -> BatchHandle:
        return self.handles[max(0, len(self.handles) - 1 - age)]

    def reason(self, handle: BatchHandle, call_id: str) -> str | None:
        """Why a report has to be refused, or `None`."""
        if handle is not self.handles[-1]:
            return "stale_generation"
        if self.closed:
            return "run_closed"
        if call_id not in self.announced:
            return "unknown_call"
        return "duplicate_settlement" if call_id in self.outcomes else None

    def expect(self, answer: Any, handle: BatchHandle, call_id: str) -> bool:
        """Check that an answer is the promised one; return whether it was accepted."""
        reason = self.reason(handle, call_id)
        if reason is None:
            assert isinstance(answer, Accepted)
            assert (answer.generation, answer.call_id) == (len(self.handles), call_id)
            return True
        assert isinstance(answer, Rejected)
        assert (answer.reason, answer.call_id, answer.generation) == (reason, call_id, handle.generation)
        self.rejections += 1
        return False

    # -- what happens ----------------------------------------------------------------------------------------------------

    @initialize(announced=some_ids)
    def first(self, announced: list[str]) -> None:
        assert self.closure.snapshot() is None
        self.begin(announced, "unknown")

    @rule(announced=some_ids, side_effect_state=side_effects)
    def begin(self, announced: list[str], side_effect_state: Any) -> None:
        begun = self.closure.begin(
            (ToolCall(call_id, "t") for call_id in announced), side_effect_state=side_effect_state
        )
        if self.handles and not self.closed:
            assert begun.superseded is not None
            self.check_closed(self.keep(begun.superseded), "superseded", side_effect_state)
        else:
            assert begun.superseded is None
        self.handles.append(begun.handle)
        assert begun.generation == begun.handle.generation == len(self.handles)
        self.new_batch(announced)

    @rule(announced=bad_batches)
    def begin_badly(self, announced: list[str]) -> None:
        before = self.closure.snapshot()
        assert before is not None
        looked = dump(before)
        try:
            self.closure.begin([{"id": call_id, "name": "t"} for call_id in announced])
        except InvalidInputError:
            after = self.closure.snapshot()
            assert after is not None
            assert dump(after) == looked
        else:
            raise AssertionError("a bad batch began")

    @rule(age=st.integers(0, 2), call_id=ids, report=reports)
    def report(self, age: int, call_id: str, report: tuple[str, Any]) -> None:
        handle = self.handle(age)
        answer = getattr(self.closure, report[0])(handle, call_id, report[1])
        if self.expect(answer, handle, call_id):
            assert answer.settlement is not None
            self.outcomes[call_id] = answer.settlement
            self.given.append((call_id, report))
            if report[0] != "close_call":
                self.started.add(call_id)

    @rule(age=st.sampled_from([0, 0, 0, 1]), call_id=ids)
    def start(self, age: int, call_id: str) -> None:
        handle = self.handle(age)
        if self.expect(self.closure.start(handle, call_id), handle, call_id):
            self.started.add(call_id)

    @rule(age=st.sampled_from([0, 0, 0, 1]), call_ids=some_ids)
    def start_many(self, age: int, call_ids: list[str]) -> None:
        handle = self.handle(age)
        began = bytes(call_id in call_ids for call_id in self.announced)
        if handle is not self.handles[-1] or self.closed:
            assert self.closure.start_many(handle, began) is False
            return
        assert self.closure.start_many(handle, began) is True
        self.started |= set(call_ids) & set(self.announced) - set(self.outcomes)

    @rule(age=st.sampled_from([0, 0, 0, 1]), call_id=ids, content=values)
    def progress(self, age: int, call_id: str, content: Any) -> None:
        handle = self.handle(age)
        self.expect(self.closure.progress(handle, call_id, content), handle, call_id)

    @precondition(lambda self: len(self.handles) > 1)
    @rule(age=st.integers(1, 3))
    def close_an_old_one(self, age: int) -> None:
        handle = self.handle(age)
        for answer in (self.closure.close(handle), self.closure.seal(handle)):
            assert answer == Rejected("stale_generation", None, handle.generation, None)
            self.rejections += 1

    @rule(call_id=ids, bad=st.sampled_from([object(), float("nan"), {(): 1}, "\ud800"]))
    def report_badly(self, call_id: str, bad: Any) -> None:
        handle = self.handles[-1]
        if self.reason(handle, call_id) is None:
            try:
                self.closure.succeed(handle, call_id, bad)
            except InvalidInputError:
                return
            raise AssertionError("a bad result was taken")
        self.expect(self.closure.succeed(handle, call_id, bad), handle, call_id)

    @rule(status=statuses, side_effect_state=side_effects)
    def close(self, status: Any, side_effect_state: Any) -> None:
        answer = self.closure.close(self.handles[-1], status, "why", "message", side_effect_state)
        assert isinstance(answer, Snapshot)
        if self.closed:
            assert answer.close_reason == self.closed.close_reason
            return
        self.check_closed(self.keep(answer), status, side_effect_state)
        self.closed = answer

    @rule()
    def seal(self) -> None:
        answer = self.closure.seal(self.handles[-1])
        if self.closed:
            assert isinstance(answer, Snapshot)
        elif set(self.announced) - set(self.outcomes):
            assert answer == Rejected("pending_calls", None, len(self.handles), None)
            self.rejections += 1
        else:
            assert isinstance(answer, Snapshot)
            assert answer.close_reason is not None
            assert answer.close_reason.status == "complete"
            self.closed = self.keep(answer)

    def check_closed(self, snapshot: Snapshot, said: str, side_effect_state: Any) -> None:
        """A closed batch: what was accepted stands, everything else is synthetic and claims no more than is known."""
        assert snapshot.closed
        assert snapshot.close_reason is not None
        assert said in (snapshot.close_reason.status, snapshot.close_reason.code)
        assert [call.id for call in snapshot.calls] == self.announced
        for call in snapshot.calls:
            if call.id in self.outcomes:
                assert call.settlement == self.outcomes[call.id]
            else:
                assert isinstance(call.settlement, Closed)
                known = "unknown" if call.id in self.started else "not_started"
                assert call.settlement.side_effect_state == (side_effect_state or known)
                self.outcomes[call.id] = call.settlement

    @precondition(lambda self: self.closed is not None)
    @rule(order=st.randoms(use_true_random=False))
    def live_again_in_another_order(self, order: Random) -> None:
        """The same outcomes in another order are the same exports, byte for byte (C16)."""
        assert self.closed is not None
        twin = ToolCallClosure(self.closure.limits)
        handle = twin.begin([ToolCall(call_id, "t") for call_id in self.announced]).handle
        given = list(self.given)
        order.shuffle(given)
        for call_id, (method, value) in given:
            assert getattr(twin, method)(handle, call_id, value).accepted
        pending = {call_id for call_id in self.announced if call_id not in dict(given)}
        closing: Any = next(iter([self.outcomes[call_id] for call_id in self.announced if call_id in pending]), None)
        closed = (
            twin.close(handle) if closing is None else twin.close(handle, closing.status, closing.code, closing.message)
        )
        assert isinstance(closed, Snapshot)
        if all(
            self.outcomes[call_id].side_effect_state == "unknown" and not self.outcomes[call_id].partial
            for call_id in pending
        ):
            for export in EXPORTS:
                assert json.dumps(export(closed)) == json.dumps(export(self.closed))

    # -- what is always true -----------------------------------------------------------------------------------------------

    @invariant()
    def the_closure_keeps_its_word(self) -> None:
        snapshot = self.closure.snapshot()
        if not self.handles:
            return
        assert snapshot is not None
        assert self.closure.active_generation == snapshot.generation == len(self.handles)
        assert [call.id for call in snapshot.calls] == self.announced
        assert {call.id: call.settlement for call in snapshot.calls if call.settlement is not None} == self.outcomes
        assert {call.id for call in snapshot.calls if call.started} == self.started
        assert all((call.state == "pending") == (call.settlement is None) for call in snapshot.calls)
        assert snapshot.closed == (self.closed is not None)
        assert len(snapshot.diagnostics) == min(self.rejections, MAX_DIAGNOSTICS)
        assert snapshot.diagnostics_dropped == max(0, self.rejections - MAX_DIAGNOSTICS)
        if len(self.seen) < 200:
            self.keep(snapshot)

    @invariant()
    def no_snapshot_ever_changes(self) -> None:
        for snapshot, looked in self.seen[-20:]:
            assert dump(snapshot) == looked

    def teardown(self) -> None:
        for snapshot, looked in self.seen:
            assert dump(snapshot) == looked


TestPromises = Promises.TestCase
TestPromises.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
