"""A whole turn in the first three lanes: a real client, a strict server, a real batch, and the answer back."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic as anthropic_sdk
import openai
import pytest

from tests.providers.outcomes import PNG
from tests.providers.support import LANES, USER, Lane
from toolbatch import Document, Image, Json, ToolBatch, ToolSession
from toolbatch.testing import FakeProvider, Reply, ScriptedCall
from toolbatch.tools import Decision, Interceptor, Prepared, Refused, Replace, ToolResult, ToolSuccess, Verdict

EACH_LANE = pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
Ask = Callable[[list[Any]], Awaitable[Any]]


def client(lane: Lane, provider: FakeProvider) -> tuple[Any, Ask]:
    """The SDK's own client of the lane, and one request to it."""
    if lane.name == "anthropic":
        theirs = anthropic_sdk.AsyncAnthropic(base_url=provider.anthropic_base_url, api_key="test", max_retries=0)
        return theirs, lambda messages: theirs.messages.create(model="m", max_tokens=64, messages=messages)
    ours = openai.AsyncOpenAI(base_url=provider.openai_base_url, api_key="test", max_retries=0)
    if lane.name == "chat":
        return ours, lambda messages: ours.chat.completions.create(model="m", messages=messages)
    return ours, lambda messages: ours.responses.create(model="m", input=messages, store=False)


@EACH_LANE
async def test_two_turns_of_rich_results(lane: Lane) -> None:
    """What the SDK's client makes of our messages is accepted: images, files and failures, turn after turn."""

    def look(at: str) -> Any:
        if at == "nothing":
            raise LookupError("nothing there")
        return [at, Image.of(PNG, "image/png"), Document.of(b"%PDF-1.7", "application/pdf"), Json({"at": at})]

    turn = Reply("", [ScriptedCall(f"call_{at}", "look", {"at": at}) for at in ("sky", "nothing", "sea")])
    again = Reply("", [ScriptedCall("call_again", "look", {"at": "sky"})])
    messages: list[Any] = [USER]
    async with FakeProvider([turn, again, Reply("Done.")]) as provider:
        sdk, ask = client(lane, provider)
        async with sdk:
            for _ in range(2):
                response = await ask(messages)
                async with ToolBatch(lane.module.calls(response), tools={"look": look}) as batch:
                    batch.start_all()
                    await batch.snapshot()
                lane.module.extend(messages, response, batch.result)
            await ask(messages)
    assert provider.rejected == []
    assert provider.remaining == 0
    assert lane.refused(messages) is None


@EACH_LANE
@pytest.mark.parametrize(
    "wire_ids", [["a", "a"], ["", ""], [None, None], ["null", "null"], ["x" * 66] * 2, ["f:0", "f:0"]]
)
async def test_two_calls_of_one_id_both_run_and_get_their_own_answers(lane: Lane, wire_ids: list[Any]) -> None:
    """Whatever a gateway does with ids, no call and no result is lost or swapped (P6; FIELD 49, 51, 55)."""
    ran = []

    async def double(number: int) -> int:
        await asyncio.sleep(0)
        ran.append(number)
        return number * 2

    texts: Any = ['{"number": 1}', '{"number": 2}']
    arguments = [{"number": 1}, {"number": 2}] if lane.name == "anthropic" else texts
    response = lane.respond(*[lane.call(i, "double", a) for i, a in zip(wire_ids, arguments, strict=True)])
    calls = lane.module.calls(response)
    async with ToolBatch(calls, tools={"double": double}) as batch:
        batch.start_all()
        await batch.snapshot()
    assert sorted(ran) == [1, 2]
    turn = lane.extended(response, batch.result)
    assert lane.refused(turn) is None
    assert answers(lane, turn) == [(calls[0].id, "2"), (calls[1].id, "4")]
    mirrored = [answer for _, answer in answers(lane, lane.module.results(batch.result))]
    assert mirrored == ["2", "4"]


def answers(lane: Lane, messages: list[Any]) -> list[tuple[str, str]]:
    """Each result in a payload, by the id that it answers."""
    if lane.name == "anthropic":
        blocks = [b for e in messages for b in (e["content"] if isinstance(e.get("content"), list) else [e])]
        return [(b["tool_use_id"], b["content"]) for b in blocks if b.get("type") == "tool_result"]
    if lane.name == "chat":
        return [(entry["tool_call_id"], entry["content"]) for entry in messages if entry["role"] == "tool"]
    return [(entry["call_id"], entry["output"]) for entry in messages if entry.get("type") == "function_call_output"]


@EACH_LANE
async def test_a_late_rich_result_is_told_in_words(lane: Lane) -> None:
    """What comes after its call was answered can be given as new text: nothing that was sent is rewritten (B20)."""
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def look() -> Any:
        entered.set()
        while not go_on.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await go_on.wait()
        return ["The sea.", Image.of(PNG, "image/png")]

    response = lane.respond(lane.call("a", "look"))
    messages: list[Any] = [USER]
    async with ToolSession(tools={"look": look}, keep_content=True, teardown_timeout=0.0) as session:
        async with session.batch(lane.module.calls(response), teardown_timeout=0.0) as batch:
            batch.start_all()
            await entered.wait()
            batch.close("error", "timeout", "Out of time.")
        lane.module.extend(messages, response, batch.result)
        go_on.set()
        while session.running:
            await asyncio.sleep(0)
        notes = lane.module.notes(session.late_notes())
    messages += notes
    assert lane.refused(messages) is None
    assert f"look (call a, tool turn 1) returned:\\nThe sea.\\n[image: image/png, {len(PNG)} bytes]" in repr(notes)


@EACH_LANE
async def test_the_same_bad_arguments_again_and_again_can_be_seen(lane: Lane) -> None:
    """Ten turns of them: the tool never runs, each is counted, and a policy hears of each before it is answered (FIELD 82)."""
    heard: list[tuple[str, str]] = []
    ran: list[str] = []

    class Breaker(Interceptor):
        async def before(self, call: Prepared | Refused, proceed: Callable[[], Awaitable[Decision]]) -> Decision:
            if isinstance(call, Refused):
                heard.append((call.call.name, call.problem.code))
            return await proceed()

    async with ToolSession(tools={"delete": ran.append}, interceptors=[Breaker()]) as session:
        for turn in range(10):
            calls = lane.module.calls(lane.respond(lane.announce(f"call_{turn}", "delete", '{"path": "/et')))
            async with session.batch(calls) as batch:
                batch.start_all()
            assert [outcome.status for outcome in batch.outcomes.values()] == ["failed"]
        counted = session.counters["delete"]
    assert heard == [("delete", "malformed_arguments")] * 10
    assert (counted.failed, counted.started, ran) == (10, 0, [])


@EACH_LANE
async def test_a_failure_says_no_more_than_the_host_lets_it(lane: Lane) -> None:
    """One option hides what exceptions say, whichever tool raises and whatever lane it goes out by; no traceback ever does (FIELD 115)."""

    def connect(to: str) -> None:
        raise ConnectionError(f"no route to {to} as admin:hunter2")

    response = lane.respond(lane.call("call_1", "connect", {"to": "db"} if lane.name == "anthropic" else '{"to":"db"}'))
    texts = {}
    for detail in ("message", "type", lambda _: "It failed."):
        async with ToolBatch(lane.module.calls(response), tools={"connect": connect}, error_detail=detail) as batch:
            batch.start_all()
        texts[str(detail)[:7]] = str(lane.extended(response, batch.result)[1:])
    by_default, by_type, by_function = texts.values()
    assert "hunter2" in by_default
    assert "Traceback" not in by_default
    assert "hunter2" not in by_type
    assert "ConnectionError" in by_type
    assert "It failed." in by_function
    assert "hunter2" not in by_function


@EACH_LANE
async def test_secrets_are_taken_out_in_one_place(lane: Lane) -> None:
    """One interceptor sees the results and the failures of all tools: none has to think of it by itself (FIELD 116)."""

    class Redact(Interceptor):
        async def after(self, call: Prepared, result: ToolResult, proceed: Callable[[], Awaitable[Verdict]]) -> Verdict:
            said = result.content if isinstance(result, ToolSuccess) else result.message
            return Replace(str(said).replace("hunter2", "[secret]")) if "hunter2" in str(said) else await proceed()

    def read() -> str:
        return "password: hunter2"

    def fail() -> None:
        raise LookupError("hunter2 is wrong")

    none: Any = {} if lane.name == "anthropic" else "{}"
    entries = [lane.call(f"call_{name}", name, none) for name in ("read", "fail")]
    response = lane.respond(*entries)
    tools = {"read": read, "fail": fail}
    async with ToolBatch(lane.module.calls(response), tools=tools, interceptors=[Redact()]) as batch:
        batch.start_all()
    history = str(lane.extended(response, batch.result))
    assert "hunter2" not in history
    assert history.count("[secret]") == 2
    assert "hunter2" not in repr(batch.outcomes)
