"""FIELD.md's I, J, K and O, as far as a batch has the end state. Each test cites its number and says it in a line."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.batch.clock import turned
from tests.batch.kit import check_batch, code, codes, content, effects, message, turn
from toolbatch import ToolBatch, ToolCall, ToolCatalog, ToolSession, tool
from toolbatch.output import READER_NAME, MemorySpillStore, OutputBudget, estimate_tokens
from toolbatch.ports import Approve
from toolbatch.tools import InteractiveApprovals, Interceptor, Prepared, Replace, ToolResult, ToolSuccess, Verdict


@turned
async def test_75_the_end_of_a_cut_output_is_kept() -> None:
    """75: the error stands at the end, and is still there; the whole is in the store."""
    text = "\n".join(f"step {number}" for number in range(20_000)) + "\nERROR: disk full"

    @tool
    async def build() -> str:
        """Build."""
        return text

    store = MemorySpillStore()
    async with ToolBatch(
        [ToolCall("a", "build")], tools=ToolCatalog([build]), budget=OutputBudget(300, store=store)
    ) as batch:
        batch.start_all()
        shown = content(await batch.snapshot(), "a")
    assert shown.endswith("ERROR: disk full")
    assert shown.startswith("step 0")
    assert estimate_tokens(shown) <= 300
    (locator,) = [
        word.strip("\"',.") for word in shown.split() if await store.read(word.strip("\"',."), offset=0, limit=1)
    ]
    saved = await store.read(locator, offset=len(text) - 9, limit=100)
    assert saved is not None
    assert (saved.text, saved.total_chars) == ("disk full", len(text))


@turned
async def test_76_a_big_table_is_read_back_in_bounded_pieces() -> None:
    """76: 141,082 characters of JSON; a handle, bounded reads, and the same handle in a resumed batch."""
    rows = {"rows": [{"id": number, "total": number * 3} for number in range(5000)]}
    text = json.dumps(rows, separators=(",", ":"))
    assert len(text) > 100_000

    @tool
    async def table() -> dict[str, Any]:
        """Table."""
        return rows

    store = MemorySpillStore()
    calls = [ToolCall("a", "table")]
    async with ToolSession(tools=ToolCatalog([table]), budget=OutputBudget(2000, store=store)) as session:
        async with session.batch(calls) as batch:
            batch.start_all()
            first = await batch.snapshot()
        shown = content(first, "a")
        words = [word.strip("\"',.") for word in shown.split()]
        (locator,) = {word for word in words if len(word) < 100 and await store.read(word, offset=0, limit=1)}
        async with session.batch(calls, resume=first.to_dict()) as resumed:
            pass
        assert resumed.result is not None
        assert content(resumed.result, "a") == shown
        read_back, offset, pieces = "", 0, 0
        while offset is not None:
            call = ToolCall("r", READER_NAME, {"locator": locator, "offset": offset, "limit": 32_000})
            async with session.batch([call]) as batch:
                batch.start_all()
                piece = json.loads(content(await batch.snapshot(), "r"))
            read_back += piece["text"]
            offset = piece["next_offset"]
            pieces += 1
    assert read_back == text
    assert pieces > 3


MALFORMED = ['{"city": "San Fra', "{", "[1,", "nul", '{"city" "x"}', "{'city': 'x'}"]
NOT_OBJECTS = ["null", "[]", '"x"', "1", "true"]


@turned
@pytest.mark.parametrize("arguments", [*MALFORMED, *NOT_OBJECTS])
async def test_78_79_81_bad_arguments_never_run_a_tool(arguments: str) -> None:
    """78, 79, 81: an error for that call only; the tool, which could run with its defaults, is never dispatched."""
    ran: list[str] = []

    @tool
    async def delete(path: str = ".") -> str:
        """Delete."""
        ran.append(path)
        return path

    good = ToolCall("b", "delete", '{"path":"x"}')
    async with ToolBatch([ToolCall("a", "delete", arguments), good], tools=ToolCatalog([delete])) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert codes(snapshot) == {"a": "malformed_arguments", "b": "success"}
    assert effects(snapshot, "a") == "not_started"
    assert ran == ["x"]


@turned
@pytest.mark.parametrize("arguments", ["", " ", None, "{}"])
async def test_78_no_arguments_are_none(arguments: str | None) -> None:
    """78, T5: nothing means the empty object."""

    @tool
    async def now() -> str:
        """Now."""
        return "now"

    async with ToolBatch([ToolCall("a", "now", arguments)], tools=ToolCatalog([now])) as batch:
        batch.start_all()
        assert content(await batch.snapshot(), "a") == "now"


@turned
async def test_81_a_huge_bad_payload_is_not_echoed_whole() -> None:
    """81: the preview is bounded, whatever the payload."""
    for arguments in ("[" * 1_000_000, '"' + "x" * 1_000_000, json.dumps({"y" * 100_000: "z" * 1_000_000})):

        @tool
        async def t(x: int) -> int:
            """T."""
            return x

        async with ToolBatch([ToolCall("a", "t", arguments)], tools=ToolCatalog([t])) as batch:
            batch.start_all()
            snapshot = await batch.snapshot()
        assert len(message(snapshot, "a")) <= 4096
        assert code(snapshot, "a") in ("malformed_arguments", "invalid_arguments")


@turned
async def test_82_a_host_can_break_the_circuit() -> None:
    """82: the same bad arguments ten turns long; the host sees the count, and ends it at the third."""
    turns = 0

    @tool
    async def t(x: int) -> int:
        """T."""
        return x

    async with ToolSession(tools=ToolCatalog([t])) as session:
        for turns in range(1, 11):
            async with session.batch([ToolCall(f"c{turns}", "t", '{"x": 1')]) as batch:
                batch.start_all()
                await batch.snapshot()
            if batch.outcomes[f"c{turns}"].repeats == 2:
                break
    assert turns == 3


@turned
async def test_83_88_a_closed_dialog_is_no_consent() -> None:
    """83, 88: the person goes away or writes something else: cancelled, not started, before the new turn."""
    paid: list[str] = []

    @tool(needs_approval=True)
    async def pay() -> None:
        """Pay."""
        paid.append("paid")

    approvals = InteractiveApprovals()
    async with ToolSession(tools=ToolCatalog([pay]), approvals=approvals) as session:
        async with session.batch([ToolCall("a", "pay")]) as old:
            old.start_all()
            await turn(3)
            async with session.batch([]) as new:
                await new.snapshot()
        assert old.result is not None
        assert (code(old.result, "a"), effects(old.result, "a")) == ("superseded", "not_started")
        assert not approvals.resolve("a", Approve())
    assert paid == []


@turned
async def test_85_a_stale_approval_touches_no_later_turn() -> None:
    """85: a request of generation 1, answered in generation 3, where the same call id waits again."""
    paid: list[str] = []

    @tool(needs_approval=True)
    async def pay(what: str) -> str:
        """Pay."""
        paid.append(what)
        return what

    approvals = InteractiveApprovals()
    async with ToolSession(tools=ToolCatalog([pay]), approvals=approvals) as session:
        for generation in (1, 2, 3):
            async with session.batch([ToolCall("call_0", "pay", {"what": str(generation)})]) as batch:
                batch.start_all()
                await turn(3)
                if generation < 3:
                    batch.close()
                else:
                    assert not approvals.resolve("call_0", Approve(), generation=1)
                    assert [request.generation for request in approvals.pending()] == [3]
                    assert approvals.resolve("call_0", Approve(), generation=3)
                await batch.snapshot()
    assert paid == ["3"]


@turned
async def test_86_waiting_empty_and_failed_look_different() -> None:
    """86: three texts that a model can tell apart; what waits says that it was not executed."""

    @tool(needs_approval=True)
    async def pay() -> None:
        """Pay."""

    @tool
    async def empty() -> str:
        """Empty."""
        return ""

    @tool
    async def broken() -> None:
        """Broken."""
        raise LookupError("no such row")

    calls = [ToolCall("w", "pay"), ToolCall("e", "empty"), ToolCall("f", "broken")]
    async with ToolBatch(calls, tools=ToolCatalog([pay, empty, broken]), approvals=InteractiveApprovals()) as batch:
        batch.start_all()
        snapshot = await batch.pause()
    assert message(snapshot, "w").startswith("NOT EXECUTED: ")
    assert content(snapshot, "e") == ""
    assert message(snapshot, "f") == "no such row"
    check_batch(batch, ["w", "e", "f"])


@turned
async def test_89_parallel_approvals_go_to_their_own_calls() -> None:
    """89: two pending, answered in reverse order, of one tool with one set of arguments."""
    order: list[str] = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        order.append(str(amount))
        return f"paid {amount}"

    approvals = InteractiveApprovals()
    calls = [ToolCall("a", "pay", {"amount": 1}), ToolCall("b", "pay", {"amount": 2})]
    async with ToolBatch(calls, tools=ToolCatalog([pay]), approvals=approvals) as batch:
        batch.start_all()
        await turn(3)
        for call_id in "ba":
            approvals.resolve(call_id, Approve())
            await turn(5)
        snapshot = await batch.snapshot()
    assert order == ["2", "1"]
    assert (content(snapshot, "a"), content(snapshot, "b")) == ("paid 1", "paid 2")


@turned
async def test_115_what_the_model_reads_of_a_failure_can_be_redacted() -> None:
    """115: an option of the batch, of every tool at once; malformed arguments don't echo their values either."""

    async def boom() -> None:
        raise RuntimeError("password=hunter2")

    async with ToolBatch(
        [ToolCall("a", "boom")], tools={"boom": boom}, error_detail=lambda _: "The tool failed. Try another way."
    ) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    assert message(snapshot, "a") == "The tool failed. Try another way."
    assert "hunter2" in str(batch.outcomes["a"].exception)


@turned
async def test_116_redaction_is_at_the_border_and_not_in_each_tool() -> None:
    """116: ten tools, one policy, no leak: not of values, and not of errors."""

    class Redact(Interceptor):
        async def after(self, call: Prepared, result: ToolResult, proceed: Callable[[], Awaitable[Verdict]]) -> Verdict:
            shown = str(result.content) if isinstance(result, ToolSuccess) else result.message
            return Replace(shown.replace("hunter2", "[redacted]")) if "hunter2" in shown else await proceed()

    async def leaks(number: int) -> dict[str, Any]:
        if number % 2:
            raise RuntimeError("password=hunter2")
        return {"nested": [{"password": "hunter2"}]}

    calls = [ToolCall(f"c{number}", "leaks", {"number": number}) for number in range(10)]
    async with ToolBatch(calls, tools={"leaks": leaks}, interceptors=[Redact()]) as batch:
        batch.start_all()
        snapshot = await batch.snapshot()
    await asyncio.sleep(0)
    assert "hunter2" not in json.dumps(snapshot.to_dict())
    assert json.dumps(snapshot.to_dict()).count("[redacted]") == 10
    assert "hunter2" not in repr(batch.outcomes)
