"""The function by which a model reads back: pages, searches, answers for what is gone, and errors that it can act on."""

import asyncio
import inspect
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.output.kit import LONG, locator_in
from toolbatch.core import InvalidInputError, InvalidTypeError, ToolCall, ToolError, encode
from toolbatch.output import READER_NAME, MemorySpillStore, OutputBudget, Reader, make_reader
from toolbatch.ports import SpillRecord, SpillSlice
from toolbatch.tools import Prepared, Refused, ToolCatalog, prepare, tool

CALL: dict[str, Any] = {"tool_name": "search", "call_id": "c1"}


async def saved(text: str, **options: Any) -> tuple[Reader, str]:
    """A reader, and the locator of a text."""
    store = MemorySpillStore()
    return make_reader(store, **options), (await store.save(text, **CALL)).locator


async def test_it_reads_a_page() -> None:
    """With where it begins, where the next one does, and how long the whole is."""
    read, locator = await saved("0123456789" * 3)
    assert await read(locator, offset=5, limit=10) == {
        "locator": locator,
        "text": "5678901234",
        "offset": 5,
        "next_offset": 15,
        "total_chars": 30,
    }
    assert await read(locator, offset=25) == {
        "locator": locator,
        "text": "56789",
        "offset": 25,
        "next_offset": None,
        "total_chars": 30,
    }


async def test_the_number_of_characters_has_a_default_and_a_bound() -> None:
    """Who asks for none gets the default, who asks for too many gets the most there are."""
    read, locator = await saved("x" * 100_000)
    assert len((await read(locator))["text"]) == 8000
    assert len((await read(locator, limit=10**9))["text"]) == 32_000
    read, locator = await saved("x" * 100, default_limit=7, max_limit=9)
    assert (len((await read(locator))["text"]), len((await read(locator, limit=50))["text"])) == (7, 9)


async def test_past_the_end_there_is_nothing() -> None:
    """It is no error: the model sees how long the text is."""
    read, locator = await saved("abc")
    answer = await read(locator, offset=99)
    assert (answer["text"], answer["offset"], answer["next_offset"], answer["total_chars"]) == ("", 3, None, 3)


@given(st.text(max_size=300), st.integers(1, 50))
def test_the_pages_are_the_text(text: str, limit: int) -> None:
    """One after the other, each from where the last one says, they give the whole."""

    async def pages() -> str:
        read, locator = await saved(text)
        whole: str = ""
        offset = 0
        while True:
            page = await read(locator, offset=offset, limit=limit)
            whole += page["text"]
            if page["next_offset"] is None:
                return whole
            assert page["next_offset"] == offset + len(page["text"]) > offset
            offset = page["next_offset"]

    assert asyncio.run(pages()) == text


async def test_it_searches() -> None:
    """Each match with its line, its offset and its text; the offset is that of a read."""
    read, locator = await saved(LONG)
    answer = await read(locator, pattern=r"line 4[0-9]{3}\b.*output$")
    assert answer["matches"][0] == {
        "line": 4001,
        "offset": LONG.index("line 4000 "),
        "text": "line 4000 output",
    }
    assert len(answer["matches"]) == 200
    assert (answer["locator"], answer["total_chars"]) == (locator, len(LONG))
    assert (await read(locator, offset=answer["matches"][7]["offset"], limit=9))["text"] == "line 4007"
    more = await read(locator, offset=answer["next_offset"], pattern=r"line 4[0-9]{3}\b")
    assert more["matches"][0]["line"] == 4201
    assert "stopped" not in answer


async def test_the_last_match_is_the_last() -> None:
    """Where nothing is left, there is no next offset."""
    read, locator = await saved("a\n" * 200)
    answer = await read(locator, pattern="a")
    assert (len(answer["matches"]), answer["next_offset"]) == (200, None)
    read, locator = await saved("a\n" * 199 + "a")
    assert (await read(locator, pattern="a"))["next_offset"] is None


async def test_a_search_that_is_stopped_says_so() -> None:
    """It is an answer with what was found, and what was not looked at."""
    read, locator = await saved("needle\n" + "x\n" * 200_000 + "a" * 60 + "!\n", search_seconds=1)
    answer = await read(locator, pattern="needle|(a+)+$")
    assert [match["text"] for match in answer["matches"]] == ["needle"]
    assert answer["stopped"] == (
        f"The search was stopped, and the text was not searched from offset {answer['next_offset']} on: this pattern takes more than "
        "1 seconds, or too much memory. Use a simpler one, or go on from that offset."
    )


async def test_a_search_reads_a_long_text_piece_by_piece() -> None:
    """The store is never asked for more than a piece of it."""
    asked: list[int] = []

    class Watched:
        inner = MemorySpillStore()

        async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
            return await self.inner.save(text, tool_name=tool_name, call_id=call_id)

        async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
            asked.append(limit)
            return await self.inner.read(locator, offset=offset, limit=limit)

    store = Watched()
    text = "some line\n" * 100_000 + "the end"
    locator = (await store.save(text, **CALL)).locator
    answer = await make_reader(store)(locator, pattern="end$")
    assert [match["line"] for match in answer["matches"]] == [100_001]
    assert max(asked) == 1 << 18
    assert len(asked) == 4


async def test_what_is_gone_is_an_answer() -> None:
    """For a read, for a search, and for a text that goes while it is searched (G4)."""
    read, _ = await saved("text")
    for answer in (await read("out-nothing"), await read("out-nothing", pattern="x")):
        assert answer["locator"] == "out-nothing"
        assert "it may have expired" in answer["error"]
    assert len(encode(await read("x" * 10_000))) < 500

    class Forgets(MemorySpillStore):  # type: ignore[misc]  # it is final to type checkers
        async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
            return await super().read(locator, offset=offset, limit=limit) if offset == 0 else None

    store = Forgets()
    locator = (await store.save("line\n" * 200_000, **CALL)).locator
    assert "it may have expired" in (await make_reader(store)(locator, pattern="zzz"))["error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"offset": -1}, "offset must be a whole number of at least 0, not -1."),
        ({"offset": 1.5}, "offset must be a whole number of at least 0, not 1.5."),
        ({"limit": 0}, "limit must be a whole number of at least 1, not 0."),
        ({"limit": True}, "limit must be a whole number of at least 1, not True."),
        ({"pattern": 7}, "pattern must be a string, not 7."),
        ({"locator": None}, "locator must be a string, not None."),
        ({"pattern": "(a"}, "pattern is not a regular expression that Python can read: missing )"),
    ],
)
async def test_bad_arguments_are_errors_for_the_model(arguments: dict[str, Any], words: str) -> None:
    """Whatever a host lets the model see of exceptions, it sees these: what was wrong and what is expected."""
    read, locator = await saved("text")
    with pytest.raises(ToolError, match=re.escape(words)) as caught:
        await read(**{"locator": locator, **arguments})
    assert (caught.value.code, caught.value.is_fatal) == ("invalid_arguments", False)


class Nonsense:
    """A store whose `read` answers what a test wants."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def save(self, text: str, *, tool_name: str, call_id: str) -> SpillRecord:
        raise NotImplementedError

    async def read(self, locator: str, *, offset: int, limit: int) -> SpillSlice | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: SpillSlice | None = self.answer
        return answer


@pytest.mark.parametrize("pattern", ["", "x"])
@pytest.mark.parametrize(
    "answer",
    [
        "text",
        {"text": "x"},
        SpillSlice(text="x" * 10**6, offset=0, total_chars=10**6),
        SpillSlice(text="", offset=0, total_chars=7),
        OSError("the store is gone"),
    ],
)
async def test_a_store_that_answers_nonsense_is_an_error(answer: Any, pattern: str) -> None:
    """It ends, it is bounded, and what is wrong is the host's to read."""
    with pytest.raises((InvalidTypeError, InvalidInputError, OSError)) as caught:
        await make_reader(Nonsense(answer))("locator", pattern=pattern)
    assert len(str(caught.value)) < 300


async def test_what_it_returns_can_be_sent() -> None:
    """Lone surrogates, which no provider takes, are replaced; the offsets are those of the text."""
    read, locator = await saved("a\ud83db\nc\udc00d")
    page = await read(locator, limit=2)
    assert (page["text"], page["next_offset"]) == ("a\ufffd", 2)
    found = await read(locator, pattern="b|d")
    assert [(match["offset"], match["text"]) for match in found["matches"]] == [(2, "a\ufffdb"), (6, "c\ufffdd")]
    encode(page).encode()
    encode(found).encode()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"default_limit": 0}, InvalidInputError, "default_limit must be at least 1, not 0"),
        ({"max_limit": 1.5}, InvalidTypeError, "max_limit must be an int, not 1.5"),
        (
            {"default_limit": 9, "max_limit": 8},
            InvalidInputError,
            "default_limit must be at most max_limit, which 9 > 8 is not",
        ),
        ({"search_seconds": "5"}, InvalidTypeError, "search_seconds must be a number of seconds, not '5'"),
        ({"search_seconds": 0}, InvalidInputError, "search_seconds must be more than 0 and finite, not 0"),
        ({"search_seconds": float("inf")}, InvalidInputError, "search_seconds must be more than 0 and finite, not inf"),
        ({"search_seconds": float("nan")}, InvalidInputError, "search_seconds must be more than 0 and finite, not nan"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    """A value that can't be used is in the message."""
    with pytest.raises(error, match=re.escape(words)):
        make_reader(MemorySpillStore(), **options)


# -- as a tool -------------------------------------------------------------------------------------------------------


async def test_it_is_a_tool_like_any_other() -> None:
    """Its name, its description and its schema are read from the function; arguments are checked and converted."""
    store = MemorySpillStore()
    locator = (await store.save(LONG, **CALL)).locator
    read = make_reader(store, default_limit=50)
    assert inspect.iscoroutinefunction(read)
    made = tool(read, budget_exempt=True)
    assert made.name == READER_NAME == "read_tool_output"
    assert made.description.startswith("Read or search the full output of an earlier tool call")
    schema = made.schema
    assert schema["required"] == ["locator"]
    assert {name: field["type"] for name, field in schema["properties"].items()} == {
        "locator": "string", "offset": "integer", "limit": "integer", "pattern": "string",
    }  # fmt: skip
    assert schema["properties"]["limit"]["default"] == 50
    assert all(field["description"] for field in schema["properties"].values())
    catalog = ToolCatalog([made])
    ready = prepare(ToolCall("c2", READER_NAME, json.dumps({"locator": locator, "offset": "10"})), catalog)
    assert isinstance(ready, Prepared)
    assert (await made.fn(*ready.args, **ready.kwargs))["text"] == LONG[10:60]
    refused = prepare(ToolCall("c3", READER_NAME, '{"offset": 10}'), catalog)
    assert isinstance(refused, Refused)
    for lane in ("openai_chat", "anthropic", "gemini", "bedrock"):
        assert catalog.schemas(lane)


async def test_the_way_that_a_model_goes() -> None:
    """It is shown a shortened result, follows what is written there, and finds what was left out (FIELD 75, 76)."""
    text = (
        "".join(f"{number} ok\n" for number in range(40_000))
        + "31415 FAILED: out of disk\n"
        + "1 ok\n" * 40_000
        + "exit status 1"
    )
    store = MemorySpillStore()
    shown = await OutputBudget(300, store=store).fit(text, tool_name="run", call_id="c1")
    assert isinstance(shown, str)
    assert shown.endswith("exit status 1")
    assert "FAILED" not in shown
    read = make_reader(store)
    (match,) = (await read(locator_in(shown), pattern="FAILED"))["matches"]
    assert match["text"] == "31415 FAILED: out of disk"
    around = await read(locator_in(shown), offset=match["offset"] - 20, limit=60)
    assert "FAILED: out of disk\n1 ok" in around["text"]
