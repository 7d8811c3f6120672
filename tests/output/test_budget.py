"""What a result becomes: budgets, policies, parts, and a store that fails in whatever way."""

import asyncio
import logging
import re
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any, assert_type

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.batch.clock import now, turned
from tests.output.kit import LONG, FakeStore, Loud, kept, locator_in, threads, warnings_of
from toolbatch.core import (
    Data,
    Document,
    Image,
    InvalidInputError,
    InvalidTypeError,
    Json,
    Part,
    ResourceLink,
    Text,
    Url,
)
from toolbatch.output import MemorySpillStore, OutputBudget, Truncation, estimate_tokens, truncate_middle
from toolbatch.output import _bounded as module_bounded
from toolbatch.output._parts import joined, split_again
from toolbatch.ports import SpillRecord

CALL: dict[str, Any] = {"tool_name": "search", "call_id": "c1"}
PIXEL = Image(Data(b"\x89PNG" + b"x" * 100_000, "image/png"))
RECORD = SpillRecord(locator="here", total_chars=len(LONG), retrieval="Read here.")


async def shown(budget: OutputBudget, text: str = LONG, **options: Any) -> str:
    """What a budget makes of a text."""
    content = await budget.fit(text, **CALL, **options)
    assert isinstance(content, str)
    return content


async def test_a_result_in_its_budget_is_the_same_object() -> None:
    """Nothing is done to a result that is short enough, and no store hears of it."""
    store = FakeStore(lambda text: RECORD)
    budget = OutputBudget(100, store=store)
    parts = (Text("short"), PIXEL)
    for content in ("short", "x" * 500, "", parts):
        assert await budget.fit(content, **CALL) is content
    assert_type(await budget.fit("short", tool_name="search", call_id="c1"), str)
    assert store.saved == []


async def test_without_a_store_the_middle_goes() -> None:
    """`auto` and `spill` without a store do what `truncate` does."""
    for policy in ("auto", "truncate", "spill"):
        assert await shown(OutputBudget(500, policy=policy)) == truncate_middle(LONG, 500).text


@pytest.mark.parametrize("policy", ["auto", "spill"])
async def test_with_a_store_the_whole_text_is_saved_and_the_model_told_where(policy: Any) -> None:
    """What is shown is in the budget, and has the locator, the offset of the gap and exact figures."""
    store = MemorySpillStore()
    budget = OutputBudget(500, policy=policy, store=store)
    text = await shown(budget)
    assert estimate_tokens(text) <= 500
    assert await kept(store, locator_in(text)) == LONG
    match = re.search(
        r"\n\n\[\.\.\. ([\d,]+) of ([\d,]+) characters are left out here, about ([\d,]+) of ([\d,]+) tokens, from offset (\d+) on\. "
        r"Call read_tool_output with locator \"out-\w+\" to read the rest, or with a pattern to search it\. \.\.\.\]\n\n",
        text,
    )
    assert match is not None
    offset, gone = int(match[5]), int(match[1].replace(",", ""))
    assert int(match[2].replace(",", "")) == len(LONG)
    assert int(match[4].replace(",", "")) == estimate_tokens(LONG)
    assert text[: match.start()] == LONG[:offset]
    assert text[match.end() :] == LONG[offset + gone :]


async def test_truncate_saves_nothing() -> None:
    """The policy `truncate` needs no store, and uses none."""
    store = FakeStore(lambda text: RECORD)
    assert "read_tool_output" not in await shown(OutputBudget(500, policy="truncate", store=store))
    assert store.saved == []


async def test_it_is_saved_before_it_is_shown() -> None:
    """The result waits for the store."""
    saved = asyncio.Event()
    inner = MemorySpillStore()

    async def save(text: str) -> SpillRecord:
        await saved.wait()
        return await inner.save(text, **CALL)

    task = asyncio.ensure_future(shown(OutputBudget(500, store=FakeStore(save))))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()
    saved.set()
    assert await kept(inner, locator_in(await task)) == LONG


@pytest.mark.parametrize(
    ("batch", "tool", "limit"),
    [(500, None, 500), (None, 500, 500), (500, 900, 500), (900, 500, 500), (None, None, None)],
)
async def test_the_stricter_budget_wins(batch: int | None, tool: int | None, limit: int | None) -> None:
    """Of the batch's and the tool's, each may be missing."""
    text = await shown(OutputBudget(batch), max_tokens=tool)
    assert text == (LONG if limit is None else truncate_middle(LONG, limit).text)
    assert OutputBudget(batch).is_within(LONG, max_tokens=tool) == (limit is None)


async def test_an_exempt_tool_is_never_shortened() -> None:
    """Whatever the budgets are."""
    assert await shown(OutputBudget(10), max_tokens=5, exempt=True) is LONG


async def test_a_budget_too_small_for_the_notice_still_names_the_locator() -> None:
    """A saved text that nobody can find would be lost: the short notice stands alone."""
    store = MemorySpillStore()
    text = await shown(OutputBudget(5, store=store))
    assert (
        text
        == f'[... Call read_tool_output with locator "{locator_in(text)}" to read the rest, or with a pattern to search it. ...]'
    )
    assert await kept(store, locator_in(text)) == LONG
    assert estimate_tokens(text) < 45


async def test_a_text_that_is_shorter_than_the_notice_is_cut() -> None:
    """Nobody is sent to a store for less than the way there takes."""
    text = await shown(OutputBudget(5, store=MemorySpillStore()), "some words and more of them")
    assert text == truncate_middle("some words and more of them", 5).text


async def test_a_small_budget_has_a_small_notice() -> None:
    """Between the two, head and tail stand around the short notice."""
    text = await shown(OutputBudget(90, store=MemorySpillStore()))
    assert text.startswith("line 0")
    assert text.endswith("output\n")
    assert "left out" not in text
    assert estimate_tokens(text) <= 90


class Raising:
    """Raises from wherever it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("hostile")

    def __repr__(self) -> str:
        raise RuntimeError("hostile")


def raising(error: BaseException) -> Callable[[str], Any]:
    """A save that raises."""

    def save(text: str) -> Any:
        raise error

    return save


async def cancelling_itself(text: str) -> SpillRecord:
    """A save that ends as cancelled, for reasons of its own."""
    raise asyncio.CancelledError("mine")


FAILURES: dict[str, Callable[[str], Any]] = {
    "raises": raising(OSError("disk full")),
    "raises what can't be shown": raising(type("Bad", (Exception,), {"__repr__": lambda self: 1 // 0})()),
    "cancels itself": cancelling_itself,
    "returns nothing": lambda text: None,
    "returns a dict": lambda text: {"locator": "x"},
    "returns what raises": lambda text: Raising(),
    "has another size": lambda text: replace(RECORD, total_chars=len(text) - 1),
    "has no locator": lambda text: replace(RECORD, locator=""),
    "has a locator that is no text": lambda text: replace(RECORD, locator=7),  # type: ignore[arg-type]
    "has a locator of two words": lambda text: replace(RECORD, locator="a b", retrieval="a b"),
    "has a locator of two lines": lambda text: replace(RECORD, locator="a\nb", retrieval="a\nb"),
    "has a locator in quotes": lambda text: replace(RECORD, locator='"', retrieval='"'),
    "has a foreign locator": lambda text: replace(RECORD, locator="é", retrieval="é"),
    "has an endless locator": lambda text: replace(RECORD, locator="x" * 129, retrieval="x" * 129),
    "has no sentence": lambda text: replace(RECORD, retrieval=""),
    "has a sentence that is no text": lambda text: replace(RECORD, retrieval=None),  # type: ignore[arg-type]
    "has a sentence without the locator": lambda text: replace(RECORD, retrieval="Read it."),
    "has an endless sentence": lambda text: replace(RECORD, retrieval="here " * 200),
    "has a sentence with a lone surrogate": lambda text: replace(RECORD, retrieval="here \ud83d"),
}


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("policy", ["auto", "spill"])
async def test_a_store_that_fails_costs_the_locator_only(
    kind: str, policy: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The result is cut instead, and one line of the log says which call's it was."""
    budget = OutputBudget(500, policy=policy, store=FakeStore(FAILURES[kind]))
    assert await shown(budget) == truncate_middle(LONG, 500).text
    said = warnings_of(caplog)
    assert len(said) == 1
    assert "the output of search (call c1) was cut, not saved" in said[0]


async def test_a_save_that_is_not_async_is_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """A store that breaks the protocol is treated as one that fails."""

    class Sync(FakeStore):
        def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:  # type: ignore[override]
            return RECORD

    broken: Any = Sync(lambda text: None)
    assert await shown(OutputBudget(500, store=broken)) == truncate_middle(LONG, 500).text
    assert len(warnings_of(caplog)) == 1


async def test_a_log_that_raises_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the result nor the turn ends because a filter fails."""

    def broken(record: logging.LogRecord) -> bool:
        raise RuntimeError("no log")

    logger = logging.getLogger("toolbatch.output")
    logger.addFilter(broken)
    try:
        budget = OutputBudget(500, store=FakeStore(FAILURES["raises"]), count=lambda text: 1 // 0)
        assert await shown(budget) == truncate_middle(LONG, 500).text
    finally:
        logger.removeFilter(broken)


async def hang(text: str) -> SpillRecord:
    """A save that never ends."""
    await asyncio.Event().wait()
    raise AssertionError("never")


async def hang_for_good(text: str) -> SpillRecord:
    """A save that never ends and won't be cancelled, until nobody could tell any more."""
    for _ in range(50):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue
    raise OSError("at last")


@turned
async def test_a_store_that_hangs_is_left_at_its_bound() -> None:
    """After `store_timeout` seconds the result is cut."""
    assert await shown(OutputBudget(500, store=FakeStore(hang))) == truncate_middle(LONG, 500).text
    assert now() == 5
    assert await shown(OutputBudget(500, store=FakeStore(hang), store_timeout=2)) == truncate_middle(LONG, 500).text
    assert now() == 7


@turned
async def test_a_store_has_half_of_the_time_that_is_left() -> None:
    """A call that is about to time out still has its result: the store's bound is the shorter one."""
    budget = OutputBudget(500, store=FakeStore(hang))
    for left, taken in ((4.0, 2.0), (100.0, 5.0), (0.0, 0.0), (-1.0, 0.0)):
        before = now()
        assert await shown(budget, within=left) == truncate_middle(LONG, 500).text
        assert now() - before == pytest.approx(taken)


@turned
async def test_a_store_that_will_not_be_cancelled_is_let_go() -> None:
    """It delays the result by a tenth of a second more; what becomes of it is nobody's business, and nobody complains."""
    assert await shown(OutputBudget(500, store=FakeStore(hang_for_good))) == truncate_middle(LONG, 500).text
    assert now() == pytest.approx(5.1)
    left = set(module_bounded._let_go)
    assert len(left) == 1
    for task in left:
        while not task.done():
            await asyncio.sleep(3600)
    await asyncio.sleep(0)
    assert not module_bounded._let_go


@turned
async def test_a_record_that_comes_at_the_last_moment_is_taken() -> None:
    """A save that ends well while it is being stopped has saved the text."""
    inner = MemorySpillStore()

    async def save(text: str) -> SpillRecord:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return await inner.save(text, **CALL)
        raise AssertionError("never")

    assert await kept(inner, locator_in(await shown(OutputBudget(500, store=FakeStore(save))))) == LONG


async def test_cancellation_passes_through(nothing_left: None) -> None:
    """Who is cancelled while the store works is cancelled at once, and so is the store."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def save(text: str) -> SpillRecord:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("never")

    task = asyncio.ensure_future(shown(OutputBudget(500, store=FakeStore(save))))
    await begun.wait()
    task.cancel("from outside")
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert caught.value.args == ("from outside",)
    assert ended.is_set()
    assert task.cancelling() == 1


@turned
async def test_cancellation_is_not_held_up_by_a_store() -> None:
    """A store that won't be cancelled delays the cancellation of its caller by a tenth of a second."""
    task = asyncio.ensure_future(shown(OutputBudget(500, store=FakeStore(hang_for_good))))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert now() == pytest.approx(0.1)
    for left in set(module_bounded._let_go):
        while not left.done():
            await asyncio.sleep(3600)


async def test_a_timeout_around_it_is_a_timeout() -> None:
    """`asyncio.timeout` around a result that is being saved works as it should."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await shown(OutputBudget(500, store=FakeStore(hang)))


def test_interrupts_of_a_store_pass_through() -> None:
    """What must end the process is not taken for a store's failure."""
    with pytest.raises(SystemExit):
        asyncio.run(shown(OutputBudget(500, store=FakeStore(raising(SystemExit(3))))))


async def test_a_bad_tokenizer_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Over all results of a budget, whatever it does."""
    budget = OutputBudget(500, count=lambda text: 1 // 0)
    for _ in range(3):
        assert await shown(budget) == truncate_middle(LONG, 500).text
    assert len(warnings_of(caplog)) == 1


async def test_a_tokenizer_is_used_for_all_that_is_shown() -> None:
    """Head, tail and notice together have as many tokens as the tokenizer says."""
    store = MemorySpillStore()
    text = await shown(OutputBudget(500, store=store, count=lambda text: len(text.split())))
    assert 450 <= len(text.split()) <= 500


async def test_a_long_text_does_not_stop_the_loop() -> None:
    """A tokenizer counts a long text in another thread, and the loop goes on meanwhile."""
    go_on = threading.Event()
    where: set[str] = set()

    def count(text: str) -> int:
        where.add(threading.current_thread().name)
        assert go_on.wait(30)
        return len(text) // 4

    task = asyncio.ensure_future(shown(OutputBudget(500, count=count)))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    assert len(await task) < 3000
    assert where == {"toolbatch-output"}


async def test_a_short_text_is_counted_at_once() -> None:
    """No thread is made for a usual text."""
    where: set[str] = set()

    def count(text: str) -> int:
        where.add(threading.current_thread().name)
        return len(text) // 4

    await shown(OutputBudget(500, count=count), "x" * 20_000)
    assert where == {threading.current_thread().name}


async def test_a_text_of_millions_is_estimated_in_a_thread_that_ends() -> None:
    """Nothing of it is left behind."""
    others = set(threads())
    await shown(OutputBudget(500), "some words " * 100_000)
    for thread in set(threads()) - others:
        thread.join(10)
    assert set(threads()) <= others


async def test_a_tokenizer_that_hangs_stops_nobody_else() -> None:
    """Who waits for it can be cancelled, and the next text has a thread of its own."""
    go_on = threading.Event()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hangs(text: str) -> int:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(30)
        return 1

    try:
        task = asyncio.ensure_future(shown(OutputBudget(500, count=hangs)))
        await begun.wait()
        assert await shown(OutputBudget(500, count=lambda text: len(text))) != LONG
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        go_on.set()


async def test_where_no_thread_can_be_made_it_is_counted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's limit of threads costs a moment of the loop, not a result."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert await shown(OutputBudget(500), "some words " * 100_000) == truncate_middle("some words " * 100_000, 500).text


# -- parts -----------------------------------------------------------------------------------------------------------


async def test_images_are_never_cut() -> None:
    """Nor documents, nor links: only text is counted and shortened, and all stays in its order."""
    paper = Document(Data(b"%PDF" + b"x" * 50_000, "application/pdf"), "report.pdf")
    link = ResourceLink("file:///report", "report")
    far = Image(Url("https://example.com/a.png"))
    content = (PIXEL, Text("first " * 2000), paper, Json({"rows": [1, 2, 3] * 2000}), link, Text("last " * 2000), far)
    made = await OutputBudget(500).fit(content, **CALL)
    assert isinstance(made, tuple)
    assert [part for part in made if not isinstance(part, Text | Json)] == [PIXEL, paper, link, far]
    assert [type(part) for part in made] == [Image, Text, Document, ResourceLink, Text, Image]
    assert estimate_tokens(joined(made)) <= 500
    assert joined(made).startswith("first first")
    assert joined(made).endswith("last last ")


async def test_images_alone_are_no_text() -> None:
    """They are not counted at all."""
    content = (PIXEL,) * 10
    assert await OutputBudget(1).fit(content, **CALL) is content


async def test_parts_are_saved_as_one_text() -> None:
    """What is read back is the parts' text, a line end between two."""
    store = MemorySpillStore()
    content = (Text("first " * 2000), PIXEL, Json(["x"] * 2000))
    made = await OutputBudget(500, store=store).fit(content, **CALL)
    assert isinstance(made, tuple)
    text = joined(made)
    assert await kept(store, locator_in(text)) == "first " * 2000 + "\n" + content[2].text


PART: st.SearchStrategy[Part] = st.one_of(
    st.text(alphabet="ab 上😀\n", max_size=60).map(Text),
    st.lists(st.integers(0, 9), max_size=20).map(Json),
    st.just(PIXEL),
)


@given(st.lists(PART, max_size=8).map(tuple), st.integers(1, 60))
def test_parts_are_cut_as_their_text_would_be(parts: tuple[Part, ...], limit: int) -> None:
    """Put together, the text of what is left is the truncation of the whole, but for line ends beside the gap and parts that went."""
    made = asyncio.run(OutputBudget(limit).fit(parts, **CALL))
    assert isinstance(made, tuple)
    whole = joined(parts)
    cut = truncate_middle(whole, limit)
    if not cut.gone_chars:
        assert made is parts
        return
    notice = cut.text[cut.head : len(cut.text) - cut.tail]
    left = [part for part in made if isinstance(part, Text | Json)]
    assert [part for part in made if part is PIXEL] == [part for part in parts if part is PIXEL]
    assert sum(notice in part.text for part in left) >= 1
    before, _, after = joined(tuple(left)).partition(notice)
    assert before.rstrip("\n") == whole[: cut.head].rstrip("\n")
    assert after.lstrip("\n") == whole[len(whole) - cut.tail :].lstrip("\n")


def test_a_gap_between_two_parts_has_its_notice() -> None:
    """Where nothing but the line end between them is gone, both stay what they are."""
    first, last = Json([1]), Text("cd")
    made = split_again((first, PIXEL, last), Truncation("[1]…cd", head=3, tail=2, gone_chars=1, gone_tokens=1))
    assert made == (first, Text("…"), PIXEL, last)
    assert made[0] is first


async def test_a_part_outside_the_gap_is_the_same_object() -> None:
    """A JSON part that is kept whole stays JSON."""
    first, last = Json({"a": 1}), Json({"z": 26})
    made = await OutputBudget(500).fit((first, Text("middle " * 5000), last), **CALL)
    assert made[0] is first
    assert made[-1] is last
    assert len(made) == 3


# -- the object ------------------------------------------------------------------------------------------------------


def test_the_quick_look_counts_nothing() -> None:
    """`is_within` asks no tokenizer, and takes a text's length alone."""
    budget = OutputBudget(1000, count=lambda text: 1 // 0)
    assert budget.is_within("x" * 1000)
    assert not budget.is_within("x" * 1001)
    assert budget.is_within("上" * 250)
    assert not budget.is_within("上" * 251)
    assert budget.is_within((PIXEL, Text("x" * 1000)))
    assert not budget.is_within((Text("x" * 500), Text("x" * 500)))
    assert not budget.is_within("x" * 1000, max_tokens=10)


def test_it_is_a_value() -> None:
    """It can't be changed, and equal ones are equal."""
    budget = OutputBudget(1000)
    with pytest.raises(FrozenInstanceError):
        budget.max_tokens = 5  # type: ignore[misc]
    assert budget == OutputBudget(1000) != OutputBudget(1000, policy="truncate")
    assert replace(budget, max_tokens=5) == OutputBudget(5)
    assert "_counter" not in repr(budget)


def test_to_spill_without_a_store_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Who asked for what can't be done reads so in the log; `auto` asks for nothing."""
    OutputBudget(1000)
    assert warnings_of(caplog) == []
    OutputBudget(1000, policy="spill")
    assert len(warnings_of(caplog)) == 1


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"max_tokens": 0}, InvalidInputError, "max_tokens must be at least 1, not 0"),
        ({"max_tokens": "10"}, InvalidTypeError, "max_tokens must be a positive int, not '10'"),
        ({"max_tokens": True}, InvalidTypeError, "max_tokens must be a positive int, not True"),
        ({"policy": "drop"}, InvalidInputError, "policy must be one of auto, truncate, spill, not 'drop'"),
        ({"store": {}}, InvalidTypeError, "store must have the methods of a SpillStore, as {} has not"),
        ({"count": 4}, InvalidTypeError, "count must be a function of a text, not 4"),
        ({"store_timeout": "5"}, InvalidTypeError, "store_timeout must be a number of seconds, not '5'"),
        ({"store_timeout": 0}, InvalidInputError, "store_timeout must be more than 0 seconds, not 0"),
        ({"store_timeout": float("nan")}, InvalidInputError, "store_timeout must be more than 0 seconds, not nan"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    """A value that can't be used is in the message."""
    with pytest.raises(error, match=re.escape(words)):
        OutputBudget(**{"max_tokens": 100, **options})


async def test_bad_arguments_are_named() -> None:
    """What is no result, and a tool's budget that is none, raise before anything is done."""
    with pytest.raises(InvalidTypeError, match=re.escape("content must be a str or a tuple of parts, not ['x']")):
        await OutputBudget(10).fit(["x"], **CALL)  # type: ignore[call-overload]
    with pytest.raises(InvalidInputError, match="max_tokens must be at least 1, not 0"):
        await OutputBudget(10).fit("x", **CALL, max_tokens=0)


async def test_a_text_with_methods_of_its_own_is_a_text() -> None:
    """They are not called."""
    assert await shown(OutputBudget(500), Loud(LONG)) == truncate_middle(LONG, 500).text
