"""Checks that a spill store keeps its promises: run them on your own store, as toolbatch does on its own (G3)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Final

from toolbatch.core import preview
from toolbatch.ports import SpillRecord, SpillSlice, SpillStore

__all__ = ["check_spill_store"]

MakeSpillStore = Callable[[], SpillStore | AbstractAsyncContextManager[SpillStore]]

_TEXTS: Final = (
    "",
    "a",
    " \t blanks around, and a line end \n",
    "one line\nand another\r\n\r\n\ttabs, no end",
    "上海 😀 👩\u200d💻 e\u0301 \u202e right to left",
    "NUL \0 and \x1b[31m escapes \x7f",
    "lone \ud83d and \udc00, a pair of them \ud83d\ude00",
    "'; DROP TABLE spill; -- \" \\ %s {0}",
    "0123456789" * 30_000,
    "é上😀" * 50_000,
)


async def check_spill_store(make_store: MakeSpillStore) -> None:
    """Run every check on stores of the caller's making. It takes some seconds.

    Args:
        make_store: Makes an empty store, apart from all it has made before. One that is an async context manager is entered,
            used and left in the running loop.

    Raises:
        AssertionError: A promise is not kept; its note names the check.
        Exception: What the store raised; likewise.
    """
    for check in _CHECKS:
        try:
            async with AsyncExitStack() as stack:

                async def make(stack: AsyncExitStack = stack) -> SpillStore:
                    made = make_store()
                    return (
                        await stack.enter_async_context(made) if isinstance(made, AbstractAsyncContextManager) else made
                    )

                await check(make)
        except Exception as error:
            error.add_note(f"in the check {check.__name__.strip('_')!r} of {check.__module__}")
            raise


Make = Callable[[], Awaitable[SpillStore]]


def _require(holds: object, promise: str, value: object) -> None:
    if not holds:
        raise AssertionError(f"{promise}; the store gave {preview(value, 200)}")


async def _save(store: SpillStore, text: str, name: str = "search") -> SpillRecord:
    record = await store.save(text, tool_name=name, call_id=f"call of {name}")
    _require(isinstance(record, SpillRecord), "save returns a SpillRecord", record)
    _require(record.total_chars == len(text), f"total_chars is {len(text)}", record)
    locator = record.locator
    is_plain = isinstance(locator, str) and locator.isascii() and locator.isprintable()
    _require(is_plain and 1 <= len(locator) <= 128, "a locator is 1 to 128 characters of printable ASCII", locator)
    _require(not set(locator) & set(" \"'`"), "a locator has neither blanks nor quotation marks", locator)
    sentence = record.retrieval
    _require(isinstance(sentence, str) and sentence.isprintable(), "retrieval is one line of text", sentence)
    _require(len(sentence) <= 500 and locator in sentence, "retrieval is short and names the locator", sentence)
    return record


async def _read(store: SpillStore, locator: str, offset: int, limit: int) -> SpillSlice:
    piece = await store.read(locator, offset=offset, limit=limit)
    _require(isinstance(piece, SpillSlice), f"read finds {locator!r}", piece)
    assert piece is not None  # noqa: S101  as was just required
    return piece


async def _every_text_comes_back_as_it_was(make: Make) -> None:
    store = await make()
    saved = [(text, await _save(store, text)) for text in _TEXTS]
    for text, record in saved:
        piece = await _read(store, record.locator, 0, len(text) + 1)
        _require(piece.text == text, f"the text {preview(text)} is read as it was saved", piece.text)
        _require((piece.offset, piece.total_chars) == (0, len(text)), f"it is 0 of {len(text)} characters", piece)


async def _pieces_are_counted_in_characters(make: Make) -> None:
    store = await make()
    for text in _TEXTS:
        locator = (await _save(store, text)).locator
        size = len(text)
        for offset in sorted({0, 1, size // 3, 65_535, 65_536, size - 1, size} & set(range(size + 1))):
            for limit in (1, 7, 70_000):
                piece = await _read(store, locator, offset, limit)
                wanted = SpillSlice(text=text[offset : offset + limit], offset=offset, total_chars=size)
                _require(piece == wanted, f"{limit} characters from {offset} on are {preview(wanted.text)}", piece)


async def _past_the_end_is_the_end(make: Make) -> None:
    store = await make()
    locator = (await _save(store, "abc")).locator
    for offset in (3, 4, 10**12):
        piece = await _read(store, locator, offset, 10)
        _require(piece == SpillSlice(text="", offset=3, total_chars=3), f"offset {offset} of 3 is the end", piece)


async def _what_was_not_saved_is_none(make: Make) -> None:
    store = await make()
    locator = (await _save(store, "abc")).locator
    unknown = [
        "",
        " ",
        locator + " ",
        locator[:-1],
        locator * 2,
        "x" * 100_000,
        "' OR 1=1 --",
        "\0",
        "\ud83d",
        "../../etc/passwd",
    ]
    for name in unknown:
        piece = await store.read(name, offset=0, limit=10)
        _require(piece is None, f"{preview(name)} is no locator of a text", piece)


async def _each_save_has_its_own_locator(make: Make) -> None:
    store = await make()
    records = [await _save(store, "the same") for _ in range(20)]
    _require(len({record.locator for record in records}) == 20, "20 saves have 20 locators", records)
    for record in records:
        _require((await _read(store, record.locator, 0, 100)).text == "the same", "each can be read", record)


async def _no_locator_leads_to_another(make: Make) -> None:
    store = await make()
    known = {(await _save(store, f"text {number}")).locator for number in range(20)}
    for locator in sorted(known):
        for place in range(len(locator)):
            for change in (-1, 1):
                name = locator[:place] + chr(ord(locator[place]) + change) + locator[place + 1 :]
                if name not in known:
                    piece = await store.read(name, offset=0, limit=10)
                    _require(piece is None, f"{name!r} leads nowhere", piece)
                else:
                    _require(False, f"the neighbour of {locator!r} is not in use", name)  # noqa: FBT003  it is known to be false


async def _stores_are_apart(make: Make) -> None:
    one, other = await make(), await make()
    locator = (await _save(one, "mine")).locator
    await _save(other, "theirs")
    _require(await other.read(locator, offset=0, limit=10) is None, "another store doesn't know the locator", locator)


async def _many_at_once(make: Make) -> None:
    store = await make()
    texts = [f"text {number} " * 50 for number in range(40)]
    records = await asyncio.gather(*(_save(store, text, f"tool_{number}") for number, text in enumerate(texts)))
    pieces = await asyncio.gather(*(_read(store, record.locator, 0, 10_000) for record in records))
    for text, piece in zip(texts, pieces, strict=True):
        _require(piece.text == text, f"{preview(text)} is read as it was saved", piece)


async def _who_is_cancelled_leaves(make: Make) -> None:
    store = await make()
    tasks = [asyncio.ensure_future(_save(store, "x" * 100_000)) for _ in range(10)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    done, late = await asyncio.wait(tasks, timeout=5)
    _require(not late, "a save that is cancelled ends", late)
    for task in done:
        with suppress(asyncio.CancelledError):
            task.result()
    record = await _save(store, "after")
    _require((await _read(store, record.locator, 0, 10)).text == "after", "the store works on", record)


async def _any_name_of_a_call(make: Make) -> None:
    store = await make()
    for name in ("x" * 512, "😀", "\ud83d", "a/b\\c:d", "\0", "\n"):
        record = await _save(store, "text", name)
        _require(
            (await _read(store, record.locator, 0, 10)).text == "text", f"a tool may be called {preview(name)}", record
        )


_CHECKS: Final[tuple[Callable[[Make], Awaitable[None]], ...]] = (
    _every_text_comes_back_as_it_was,
    _pieces_are_counted_in_characters,
    _past_the_end_is_the_end,
    _what_was_not_saved_is_none,
    _each_save_has_its_own_locator,
    _no_locator_leads_to_another,
    _stores_are_apart,
    _many_at_once,
    _who_is_cancelled_leaves,
    _any_name_of_a_call,
)
