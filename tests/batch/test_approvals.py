"""T7: approvals are scoped to a generation and routed by the call's identity; while one waits, nothing has been run."""

import asyncio
import json
import logging
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.batch.clock import run, turned
from tests.batch.kit import check_batch, code, codes, content, effects, message, turn
from toolbatch import (
    Image,
    Json,
    Snapshot,
    Text,
    ToolBatch,
    ToolCall,
    ToolCatalog,
    ToolError,
    ToolSession,
    current_call,
    tool,
)
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.ports import Abort, ApprovalDecision, ApprovalRequest, Approve, Deny
from toolbatch.providers import anthropic
from toolbatch.tools import FixedApprovals, InteractiveApprovals


class Shop:
    """Tools that count how often they ran."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    @tool(needs_approval=True)
    async def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return f"paid {amount}"

    @tool
    async def look(self) -> str:
        """Look."""
        return "seen"

    @property
    def catalog(self) -> ToolCatalog:
        """Both tools."""
        return ToolCatalog([self.pay, self.look])


def pays(*ids: str) -> list[ToolCall]:
    """One payment a call, of 1, 2, 3 ..."""
    return [ToolCall(call_id, "pay", {"amount": amount}) for amount, call_id in enumerate(ids, 1)]


@turned
@pytest.mark.parametrize(
    ("decision", "expected"), [(Approve(), "success"), (Deny("no"), "denied"), (Deny(code="too_dear"), "too_dear")]
)
async def test_a_fixed_broker_answers_at_once(decision: ApprovalDecision, expected: str) -> None:
    """T7: approve runs it, deny is an answer for the model that says so."""
    shop = Shop()
    async with ToolBatch(pays("a"), tools=shop.catalog, approvals=FixedApprovals(decision)) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert code(snapshot, "a") == expected
    assert shop.paid == ([1] if expected == "success" else [])
    if expected != "success":
        assert message(snapshot, "a").startswith("NOT EXECUTED: ")
        assert batch.outcomes["a"].status == "denied"
        assert effects(snapshot, "a") == "not_started"


@turned
async def test_without_an_approver_it_is_denied() -> None:
    """T7: nobody can give it; what needs none runs."""
    shop = Shop()
    async with ToolBatch([*pays("a"), ToolCall("b", "look")], tools=shop.catalog) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "denied", "b": "success"}
    assert message(snapshot, "a").startswith("NOT EXECUTED: pay needs the approval of a person")


@turned
async def test_two_that_wait_are_answered_in_reverse() -> None:
    """T7, FIELD: each decision reaches its own call, whatever the order."""
    shop, broker = Shop(), InteractiveApprovals()
    async with ToolBatch(pays("a", "b", "c"), tools=shop.catalog, approvals=broker) as batch:
        batch.start_all()
        await turn(3)
        assert [(request.call_id, request.arguments) for request in broker.pending()] == [
            ("a", {"amount": 1}), ("b", {"amount": 2}), ("c", {"amount": 3}),
        ]  # fmt: skip
        assert broker.resolve("c", Approve())
        await turn(3)
        assert broker.resolve("b", Deny("no"))
        assert not broker.resolve("b", Approve()), "a decision is final"
        assert broker.resolve("a", Approve())
        snapshot = await batch.snapshot()
        assert broker.pending() == []
    assert codes(snapshot) == {"a": "success", "b": "denied", "c": "success"}
    assert (content(snapshot, "a"), content(snapshot, "c")) == ("paid 1", "paid 3")
    assert not broker.resolve("a", Approve())
    assert not broker.resolve("nobody", Approve())
    check_batch(batch, ["a", "b", "c"])


@turned
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_request_can_be_resolved_the_moment_it_is_published(is_async: bool) -> None:
    """T7: the waiter is there before anyone is told."""
    shop = Shop()

    def resolve(request: ApprovalRequest) -> None:
        assert broker.resolve(request.call_id, Approve())

    async def resolve_later(request: ApprovalRequest) -> None:
        resolve(request)

    broker = InteractiveApprovals(resolve_later if is_async else resolve)
    async with ToolBatch(pays("a"), tools=shop.catalog, approvals=broker) as batch:
        batch.start_all()
        assert code(await batch.snapshot(), "a") == "success"


@turned
async def test_abort_ends_the_turn() -> None:
    """T7: the call was not executed, its siblings are closed, and the batch's exit raises."""
    shop, broker = Shop(), InteractiveApprovals()
    seen: list[ToolBatch] = []
    with pytest.raises(ToolError, match="user said stop") as raised:
        async with ToolBatch(pays("a", "b"), tools=shop.catalog, approvals=broker) as batch:
            seen.append(batch)
            batch.start_all()
            await turn(3)
            assert broker.abort_all("user said stop") == 2
            await batch.snapshot()
    assert (raised.value.is_fatal, raised.value.code) == (True, "aborted")
    snapshot = check_batch(seen[0], ["a", "b"])
    assert shop.paid == []
    assert code(snapshot, "a") == "aborted_before_dispatch"
    for call_id in "ab":
        assert message(snapshot, call_id).startswith("NOT EXECUTED")
        assert effects(snapshot, call_id) == "not_started"


ENDS = ["close", "timeout", "call", "cancelled", "raised", "superseded", "session"]


@turned
@pytest.mark.parametrize("how", ENDS)
async def test_whatever_ends_the_wait_says_not_executed(how: str) -> None:
    """T7: close, deadline, cancellation, a newer batch: the call is not started, and a decision that comes later does nothing."""
    shop, broker = Shop(), InteractiveApprovals()
    seen: list[ToolBatch] = []

    async def host() -> None:
        async with (
            ToolSession(tools=shop.catalog, approvals=broker) as session,
            session.batch([*pays("a"), ToolCall("b", "look")], timeout=5 if how == "timeout" else None) as batch,
        ):
            seen.append(batch)
            batch.start_all()
            await turn(3)
            if how == "close":
                batch.close(code="user_message", message="The user has written something else.")
            elif how == "call":
                batch.cancel("a")
            elif how == "raised":
                raise LookupError
            elif how == "superseded":
                async with session.batch([]):
                    pass
            elif how == "cancelled":
                task.cancel()
            elif how == "session":
                await session.__aexit__(None, None, None)
            await batch.snapshot()

    task = asyncio.ensure_future(host())
    await asyncio.wait([task])
    if not task.cancelled():
        assert type(task.exception()) in (type(None), LookupError)
    snapshot = check_batch(seen[0], ["a", "b"])
    assert code(snapshot, "b") == "success"
    assert message(snapshot, "a").startswith("NOT EXECUTED: the call was still waiting for an approval.")
    assert effects(snapshot, "a") == "not_started"
    assert not seen[0].outcomes["a"].started
    assert broker.pending() == []
    assert not broker.resolve("a", Approve())
    await turn(3)
    assert shop.paid == []


@turned
async def test_a_user_who_types_instead_closes_what_waits() -> None:
    """T7, FIELD: the next turn's history is one that the provider takes, and says that nothing was executed."""
    shop, broker = Shop(), InteractiveApprovals()
    response = {
        "role": "assistant", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"amount": 1}}],
    }  # fmt: skip
    messages: list[Any] = [{"role": "user", "content": "pay"}]
    async with ToolSession(tools=shop.catalog, approvals=broker) as session:
        async with session.batch(anthropic.calls(response)) as batch:
            batch.start_all()
            await turn(3)
            snapshot = batch.close(code="user_message", message="The user has written something else.")
        anthropic.extend(messages, response, snapshot)
    (block,) = messages[-1]["content"]
    assert "NOT EXECUTED" in block["content"]
    assert block["is_error"]
    assert json.loads(block["content"])["error"]["side_effect_state"] == "not_started"


@turned
async def test_calls_of_one_id_in_two_sessions_are_told_apart() -> None:
    """T7: the same broker, the same call id: a bare id is ambiguous, and then nothing is decided."""
    one, two, broker = Shop(), Shop(), InteractiveApprovals()
    async with (
        ToolSession(tools=one.catalog, approvals=broker) as first,
        ToolSession(tools=two.catalog, approvals=broker) as second,
    ):
        async with second.batch([]):
            pass
        async with first.batch(pays("a")) as batch, second.batch(pays("a")) as other:
            batch.start_all()
            other.start_all()
            await turn(3)
            with pytest.raises(InvalidInputError, match="2 calls with the id 'a' wait"):
                broker.resolve("a", Approve())
            assert len(broker.pending()) == 2
            assert broker.resolve("a", Approve(), generation=2)
            (left,) = broker.pending()
            assert broker.resolve("a", Deny(), execution_id=left.execution_id)
    assert (one.paid, two.paid) == ([], [1])


@turned
async def test_there_is_a_bound_on_how_many_wait() -> None:
    """T7: one more is denied, and says why."""
    shop, broker = Shop(), InteractiveApprovals(max_pending=2)
    async with ToolBatch(pays("a", "b", "c"), tools=shop.catalog, approvals=broker) as batch:
        batch.start_all()
        await turn(3)
        assert [request.call_id for request in broker.pending()] == ["a", "b"]
        broker.resolve("a", Approve())
        broker.resolve("b", Approve())
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "success", "b": "success", "c": "denied"}
    assert "too many calls wait" in message(snapshot, "c")


class Broken:
    """A broker that does what it should not."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def decide(self, request: ApprovalRequest, /) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@turned
@pytest.mark.parametrize(
    "answer", [None, True, "yes", RuntimeError("secret"), ToolError.respond_to_model("offline", "offline")]
)
async def test_a_broker_that_fails_has_approved_nothing(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """T7: whatever it raises or returns, nothing runs; the cause is in the log and not before the model."""
    shop = Shop()
    caplog.set_level(logging.ERROR)
    async with ToolBatch(pays("a"), tools=shop.catalog, approvals=Broken(answer)) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert shop.paid == []
    assert message(snapshot, "a").startswith("NOT EXECUTED: ")
    assert "secret" not in message(snapshot, "a")
    assert batch.outcomes["a"].status == "denied"
    assert isinstance(answer, ToolError) or "could not be asked for" in caplog.text


@turned
async def test_what_is_run_is_what_was_shown() -> None:
    """O7, T7: a broker that works on the arguments it was shown, lists in them too, changes nothing that runs."""
    sent: list[Any] = []

    @tool(needs_approval=True)
    async def send(to: list[str], text: str) -> None:
        """Send."""
        sent.append((to, text))

    def tidy(request: ApprovalRequest) -> None:
        arguments: Any = request.arguments
        arguments["to"].append("everybody")
        arguments["text"] = "spam"
        broker.resolve("a", Approve())

    broker = InteractiveApprovals(tidy)
    async with ToolBatch(
        [ToolCall("a", "send", {"to": ["bob"], "text": "hi"})], tools=ToolCatalog([send]), approvals=broker
    ) as batch:
        batch.start_all()
    assert sent == [(["bob"], "hi")]


@turned
async def test_a_listener_that_fails_denies_the_call() -> None:
    """T7: a request that nobody was told of would wait for ever."""
    shop = Shop()

    def listener(request: ApprovalRequest) -> NoReturn:
        raise RuntimeError("no screen")

    broker = InteractiveApprovals(listener)
    async with ToolBatch(pays("a"), tools=shop.catalog, approvals=broker) as batch:
        batch.start_all()
        assert code(await batch.snapshot(), "a") == "denied"
    assert broker.pending() == []


@turned
async def test_an_approval_does_not_use_up_the_tools_time() -> None:
    """T7, B13: the call's own bound counts from its launch, however long a person thinks."""
    shop, broker = Shop(), InteractiveApprovals()
    async with ToolBatch(pays("a"), tools=shop.catalog, approvals=broker, call_timeout=5) as batch:
        batch.start_all()
        await asyncio.sleep(1000)
        broker.resolve("a", Approve())
        assert code(await batch.snapshot(), "a") == "success"


# -- over a pause --------------------------------------------------------------------------------------------------------


@turned
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("decision", [Approve(), Deny("no")])
async def test_an_approval_is_kept_over_a_pause(stored: bool, decision: ApprovalDecision) -> None:
    """T7: the batch closes, the decision comes as a new batch, and finished siblings stay finished, from a file too."""
    shop = Shop()
    announced = [ToolCall("s", "look"), *pays("a", "b"), ToolCall("f", "nothing_here")]
    async with ToolBatch(announced, tools=shop.catalog, approvals=InteractiveApprovals()) as batch:
        batch.start_all()
        paused = await batch.pause()
    assert codes(paused) == {"s": "success", "a": "approval_pending", "b": "approval_pending", "f": "unknown_tool"}
    assert message(paused, "a").startswith("NOT EXECUTED")
    saved: Snapshot | dict[str, Any] = json.loads(json.dumps(paused.to_dict())) if stored else paused

    ran: list[str] = []
    looked = tool(name="look")(lambda: ran.append("look"))
    outcomes: list[str] = []
    async with ToolBatch(
        announced,
        tools=ToolCatalog([shop.pay, looked]),
        approvals=FixedApprovals(Deny("not yet"), {"a": decision}),
        resume=saved,
        on_outcome=lambda outcome: outcomes.append(outcome.call_id),
    ) as later:
        assert later.result is None
        later.start_all()
        snapshot = await later.snapshot()
    approved = isinstance(decision, Approve)
    assert codes(snapshot) == {
        "s": "success", "a": "success" if approved else "denied", "b": "denied", "f": "unknown_tool",
    }  # fmt: skip
    assert ran == []
    assert shop.paid == ([1] if approved else [])
    assert snapshot.calls[0].settlement == paused.calls[0].settlement
    assert sorted(outcomes) == ["a", "b"], "what was finished before is told of only once"
    assert (later.outcomes["f"].resumed, later.outcomes["f"].status) == (True, "failed")
    assert later.outcomes["s"].resumed
    assert later.outcomes["s"].status == "succeeded"
    assert not later.outcomes["a"].resumed
    assert later.counters.get("look") is None


@turned
async def test_pause_waits_for_what_runs() -> None:
    """T7: siblings finish first; where nothing waits for approval the batch ends as usual."""
    shop = Shop()

    @tool
    async def slow() -> str:
        """Slow."""
        await asyncio.sleep(50)
        return "slow"

    catalog = ToolCatalog([shop.pay, slow])
    async with ToolBatch([*pays("a"), ToolCall("b", "slow")], tools=catalog, approvals=InteractiveApprovals()) as batch:
        batch.start_all()
        assert codes(await batch.pause()) == {"a": "approval_pending", "b": "success"}
    async with ToolBatch([ToolCall("b", "slow")], tools=catalog) as batch:
        batch.start_all()
        paused = await batch.pause()
    assert paused.close_reason is not None
    assert paused.close_reason.status == "complete"


@turned
@pytest.mark.parametrize(
    ("resume", "kind"),
    [
        ({"calls": []}, InvalidInputError),
        ({"closed": True, "calls": [{}]}, InvalidInputError),
        ({"closed": True, "calls": [{"id": "x", "name": "pay", "settlement": None}]}, InvalidInputError),
        ({"closed": False, "calls": []}, InvalidInputError),
        ([], InvalidTypeError),
        ("x", InvalidTypeError),
    ],
)
async def test_a_resume_that_fits_nothing_begins_nothing(resume: Any, kind: type[Exception]) -> None:
    """C2, D4: a bad or foreign snapshot is refused before a generation begins; an older batch goes on."""
    async with ToolSession() as session, session.batch(pays("z")) as older:
        with pytest.raises(kind, match="resume"):
            await session.batch(pays("a"), resume=resume).__aenter__()
        assert older.result is None
        assert older.generation == 1
        older.close()


def _paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(deeper for key, value in inner for deeper in _paths(value, (*path, key)))]


SAVED: dict[str, Any] = {
    "generation": 1, "closed": True, "diagnostics": [],
    "close_reason": {"status": "cancelled", "code": "pause", "message": "m", "side_effect_state": "unknown"},
    "calls": [
        {"id": "a", "name": "t", "state": "success", "settlement": {"status": "success", "provenance": "reported", "content": "x"}},
        {"id": "b", "name": "t", "state": "cancelled", "settlement": {
            "status": "cancelled", "provenance": "synthetic", "code": "pause", "message": "m", "side_effect_state": "unknown", "partial": "p"}},
        {"id": "c", "name": "t", "state": "error", "settlement": {
            "status": "error", "provenance": "reported", "code": "tool_error", "message": "m"}},
    ],
}  # fmt: skip


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.sampled_from(_paths(SAVED)),
    st.sampled_from(
        [None, True, 5, "", "x", "success", "error", "synthetic", [], {}, [1], {"x": 1}, "\ud800", float("nan")]
    ),
)
def test_a_saved_batch_that_was_damaged_is_refused_or_resumed(path: tuple[Any, ...], put: Any) -> None:
    """D4: whatever a store gives back: a clear error before anything begins, or a batch with an outcome for each call."""
    saved = json.loads(json.dumps(SAVED))
    holder = saved
    for key in path[:-1]:
        holder = holder[key]
    if path:
        holder[path[-1]] = put
    run(_resume(put if not path else saved))


async def _resume(saved: Any) -> None:
    announced = [ToolCall(name, "t") for name in "abc"]
    async with ToolSession() as session:
        async with session.batch(announced) as before:
            before.close()
        try:
            async with session.batch(announced, resume=saved) as batch:
                batch.close()
            assert batch.result is not None
            assert all(call.settlement for call in batch.result.calls)
            assert batch.generation == 2
        except (InvalidInputError, InvalidTypeError):
            async with session.batch([]) as after:
                assert after.generation == 2, "nothing has begun"


@turned
async def test_an_outcome_that_is_unknown_stays_unknown_when_resumed() -> None:
    """D4: what may have run is not run again."""
    ran: list[str] = []

    async def forever() -> None:
        ran.append("once")
        await asyncio.Event().wait()

    announced = [ToolCall("a", "t"), ToolCall("b", "t")]
    async with ToolBatch(announced, tools={"t": forever}) as batch:
        batch.start("a", forever)
        await turn(3)
        batch.close(code="crash")
    assert batch.result is not None
    async with ToolBatch(announced, tools={"t": forever}, resume=batch.result, timeout=5) as later:
        later.start_all()
        snapshot = await later.snapshot()
    assert ran == ["once", "once"]
    assert codes(snapshot) == {"a": "crash", "b": "timeout"}
    assert effects(snapshot, "a") == "unknown"
    assert (later.outcomes["a"].completion, later.outcomes["a"].started) == ("unknown", True)
    check_batch(later, ["a", "b"])


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "1"])
def test_bounds_on_waiting_are_positive_ints(bad: Any) -> None:
    """Bad input gets a clear error."""
    with pytest.raises((InvalidInputError, InvalidTypeError), match="max_pending"):
        InteractiveApprovals(max_pending=bad)


@pytest.mark.parametrize("bad", [None, True, "approve", Approve, object()])
def test_what_is_no_decision_is_refused(bad: Any) -> None:
    """Bad input gets a clear error, and nothing is decided."""
    with pytest.raises(InvalidTypeError, match="decision"):
        FixedApprovals(bad)
    with pytest.raises(InvalidTypeError, match="decision"):
        FixedApprovals(Deny(), {"a": bad})
    with pytest.raises(InvalidTypeError, match="decision"):
        InteractiveApprovals().resolve("a", bad)
    with pytest.raises(InvalidTypeError, match="approvals"):
        ToolBatch(pays("a"), approvals=bad) if bad is not None else ToolBatch(pays("a"), approvals="x")  # type: ignore[arg-type]


def test_abort_carries_its_reason() -> None:
    """T7: for the host."""
    assert Abort("why").reason == "why"


@turned
async def test_pausing_twice_or_with_nothing_to_wait_for() -> None:
    """T7: both get one snapshot; calls that nobody started are closed too, and may run when it goes on."""
    shop = Shop()
    async with ToolBatch(pays("a", "b"), tools=shop.catalog, approvals=InteractiveApprovals()) as batch:
        batch.start("a", shop.pay, amount=1)
        first, second = await asyncio.gather(batch.pause(), batch.pause())
        assert first is second is await batch.pause()
    assert codes(first) == {"a": "success", "b": "approval_pending"}
    async with ToolBatch(
        pays("a", "b"), tools=shop.catalog, approvals=FixedApprovals(Approve()), resume=first
    ) as later:
        later.start_all()
        assert codes(await later.snapshot()) == {"a": "success", "b": "success"}
    assert shop.paid == [1, 2]


@turned
@pytest.mark.parametrize("stored", [False, True])
async def test_every_kind_of_outcome_is_kept(stored: bool) -> None:
    """D4, P5: text, parts, errors, cancellations, what was cut off with its partial content: all as they were, in a session too."""

    async def parts() -> Any:
        return [Text("text"), Json({"a": [1, None]}), Image.of(b"x", "image/png")]

    async def partial() -> None:
        current_call().progress("half")
        await asyncio.Event().wait()

    async def broken() -> None:
        raise ToolError.respond_to_model("broken", "own_code")

    async def cancelled() -> None:
        raise asyncio.CancelledError

    async def text() -> str:
        return "x"

    tools = {"text": text, "parts": parts, "partial": partial, "broken": broken, "cancelled": cancelled}
    announced = [ToolCall(name, name) for name in (*tools, "late")]
    async with ToolBatch(announced, tools={**tools, "late": text}, timeout=5) as batch:
        for name, fn in tools.items():
            batch.start(name, fn)
        before = await batch.snapshot()
    saved: Any = json.loads(json.dumps(before.to_dict())) if stored else before
    async with ToolSession(tools={"late": text}) as session, session.batch(announced, resume=saved) as later:
        later.start_all()
        after = await later.snapshot()
    assert after.calls[:5] == before.calls[:5]
    assert content(after, "late") == "x"
    assert all(later.outcomes[name].resumed for name in tools)
    assert {name: counted.started for name, counted in session.counters.items()} == {"late": 1}


@turned
async def test_pause_waits_for_what_runs_beside_a_withdrawn_request() -> None:
    """T7: a request that was cancelled waits no longer, however long its broker takes to clear up; what runs is waited for."""
    shop = Shop()

    class Slow:
        async def decide(self, _: ApprovalRequest, /) -> ApprovalDecision:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(100)  # a message in a chat is taken back
            raise AssertionError

    @tool
    async def slow() -> str:
        """Slow."""
        await asyncio.sleep(50)
        return "slow"

    catalog = ToolCatalog([shop.pay, slow])
    announced = [*pays("a", "b"), ToolCall("c", "slow")]
    async with ToolBatch(announced, tools=catalog, approvals=Slow(), teardown_timeout=200) as batch:
        batch.start_all()
        await turn(3)
        batch.cancel("a")
        snapshot = await batch.pause()
    assert codes(snapshot) == {"a": "cancelled", "b": "approval_pending", "c": "success"}


@turned
async def test_a_resume_of_other_arguments_begins_nothing() -> None:
    """D4: calls of the same ids and names are other calls where their arguments differ, and an old result is none of theirs."""
    ran: list[int] = []

    async def pay(amount: int) -> None:
        ran.append(amount)

    announced = [ToolCall("a", "pay", '{"amount": 1}'), ToolCall("b", "pay", '{"amount": 2}')]
    async with ToolBatch(announced, tools={"pay": pay}) as batch:
        batch.start_all()
    others = [ToolCall("a", "pay", '{"amount": 1}'), ToolCall("b", "pay", '{"amount": 20}')]
    with pytest.raises(InvalidInputError, match=r"'b' had the arguments \{'amount': 2\}, and not \{'amount': 20\}"):
        await ToolBatch(others, tools={"pay": pay}, resume=batch.result).__aenter__()
    same = [others[0], ToolCall("b", "pay", '{ "amount": 2 }')]
    async with ToolBatch(same, tools={"pay": pay}, resume=batch.result) as resumed:
        resumed.start_all()
    assert ran == [1, 2]


@turned
async def test_a_resume_goes_on_though_a_tool_has_changed_what_it_was_handed() -> None:
    """D4: arguments that a provider sent as an object are the tool's to change, and no reason to refuse."""

    async def sort(names: list[str]) -> list[str]:
        names.sort()
        return names

    async with ToolBatch([ToolCall("a", "sort", {"names": ["b", "a"]})], tools={"sort": sort}) as batch:
        batch.start_all()
    again = [ToolCall("a", "sort", {"names": ["b", "a"]})]
    async with ToolBatch(again, tools={"sort": sort}, resume=batch.result) as resumed:
        snapshot = await resumed.snapshot()
    assert codes(snapshot) == {"a": "success"}


@turned
async def test_a_person_may_correct_what_is_still_to_run() -> None:
    """T7: over a pause, only a call that has its outcome is bound to its arguments."""
    shop = Shop()
    async with ToolBatch(pays("a"), tools=shop.catalog, approvals=InteractiveApprovals()) as batch:
        batch.start_all()
        kept = await batch.pause()
    corrected = [ToolCall("a", "pay", {"amount": 7})]
    async with ToolBatch(corrected, tools=shop.catalog, approvals=FixedApprovals(Approve()), resume=kept) as resumed:
        resumed.start_all()
    assert shop.paid == [7]
