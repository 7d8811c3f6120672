"""Looking for a pattern: what is found, what stops it, and that nothing of it is left."""

import asyncio
import gc
import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.output.kit import children
from toolbatch.core import ToolError
from toolbatch.output import _search as module_search
from toolbatch.output._search import Found, Match, search
from toolbatch.output._search_child import Order, answer

CATASTROPHIC = "(a+)+$"
ENDLESS = "a" * 60 + "!"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="a process's children are read from /proc")


async def pieces_of(*texts: str) -> AsyncIterator[str]:
    for text in texts:
        yield text


async def look(pattern: str, *texts: str, start: int = 0, seconds: float = 30) -> Found:
    """Search in a text of some pieces."""
    return await search(pieces_of(*texts), pattern, start=start, seconds=seconds)


@pytest.fixture
def no_child_left() -> Any:
    """Fail a test that leaves a process behind, running or a zombie."""
    before = children() if sys.platform == "linux" else set()
    yield
    gc.collect()
    assert sys.platform != "linux" or children() <= before


async def test_each_line_that_matches_is_found(no_child_left: None) -> None:
    """With its number, the place of the match, and the line; wherever the pieces are cut."""
    text = "first line\nsecond: ERROR 17\n\nfourth: 上海 ERROR 4\r\nlast"
    wanted = (Match(2, 19, "second: ERROR 17"), Match(4, 40, "fourth: 上海 ERROR 4"))
    for cut in range(len(text)):
        if cut % 9 == 0:
            assert await look(r"ERROR \d+$", text[:cut], text[cut:]) == Found(wanted, None, is_stopped=False)
    assert [text[match.offset :][:5] for match in wanted] == ["ERROR", "ERROR"]


async def test_nothing_found_is_an_answer(no_child_left: None) -> None:
    """All was searched, and there is nothing."""
    assert await look("x", "abc\n" * 1000) == Found((), None, is_stopped=False)
    assert await look("x", "") == Found((), None, is_stopped=False)


@pytest.mark.parametrize(
    "pattern", ["(a", "[", "*", "a{2", "(?P<x>a)(?P<x>b)", r"\1", "(?z)", "x{1,99999999999}", "(?<=a+)b"]
)
async def test_a_bad_pattern_is_an_error_for_the_model(pattern: str, no_child_left: None) -> None:
    """It says what is wrong with it, in Python's words; patterns that Python takes are none of those."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError):
        with pytest.raises(ToolError, match="pattern is not a regular expression that Python can read: ") as caught:
            await look(pattern, "text\n" * 100_000)
        assert caught.value.code == "invalid_arguments"
        assert not caught.value.is_fatal
    else:
        assert pattern == "a{2"


async def test_a_pattern_has_a_bound() -> None:
    """A long one, which alone could take seconds to read, is refused; the longest allowed is not."""
    with pytest.raises(ToolError, match="pattern has 1,001 characters, more than the 1,000 that are allowed"):
        await look("x" * 1001, "text")
    assert [match.offset for match in (await look("x" * 1000, "x" * 1000)).matches] == [0]


@LINUX
async def test_a_catastrophic_pattern_is_stopped(no_child_left: None) -> None:
    """At its bound its process is gone; what was found before it is told, and from where on nothing was searched."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    text = "aaa\n" + "x\n" * 300_000 + ENDLESS + "\n" + "aaa\n" * 10
    found = await look(CATASTROPHIC, text, seconds=3)
    assert 3 <= loop.time() - began < 20
    assert found.is_stopped
    assert found.matches == (Match(1, 0, "aaa"),)
    assert found.next_offset is not None
    assert 1000 < found.next_offset <= 600_004


async def test_what_is_passed_over_is_not_searched(no_child_left: None) -> None:
    """A line before the offset can't hold up the search of those behind it."""
    found = await look(CATASTROPHIC, f"{ENDLESS}\naaa\n", start=len(ENDLESS) + 1)
    assert found == Found((Match(2, len(ENDLESS) + 1, "aaa"),), None, is_stopped=False)


@LINUX
async def test_the_loop_goes_on_while_it_is_searched(no_child_left: None) -> None:
    """A catastrophic pattern takes no time of the loop."""
    task = asyncio.ensure_future(look(CATASTROPHIC, ENDLESS, seconds=1))
    turns = 0
    while not task.done():
        await asyncio.sleep(0.005)
        turns += 1
    assert turns > 10
    assert task.result().is_stopped


@LINUX
async def test_a_cancelled_search_leaves_no_process(no_child_left: None, nothing_left: None) -> None:
    """Wherever it is cancelled: while the process begins, is fed, or searches; cancellation passes through."""
    before = children()
    endless = asyncio.Event()

    async def never_ending() -> AsyncIterator[str]:
        yield "text\n"
        await endless.wait()

    for pieces, turns in (
        (pieces_of(ENDLESS), None),
        (pieces_of("x\n" * 10**6), 30),
        (pieces_of("x"), 1),
        (never_ending(), None),
    ):
        task = asyncio.ensure_future(search(pieces, CATASTROPHIC, start=0, seconds=30))
        if turns is None:
            while children() <= before:
                await asyncio.sleep(0.001)
        for _ in range(turns or 10):
            await asyncio.sleep(0)
        task.cancel("from outside")
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert caught.value.args in {("from outside",), ()}
        while not children() <= before:  # where the process had just begun, the loop ends it
            await asyncio.sleep(0.001)


@LINUX
async def test_a_search_that_is_cancelled_twice_leaves_no_process(no_child_left: None) -> None:
    """Not even the wait for the end of the process is waited for, and the process ends all the same."""
    before = children()
    task = asyncio.ensure_future(look(CATASTROPHIC, ENDLESS))
    while children() <= before:
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while not children() <= before:
        await asyncio.sleep(0.001)


@LINUX
@pytest.mark.parametrize(
    "error",
    [
        OSError("the store is gone"),
        TimeoutError("the store is slow"),
        ConnectionResetError("the store is reset"),
        RuntimeError("the store is shut"),
    ],
)
async def test_what_the_text_raises_passes_through(error: Exception, no_child_left: None) -> None:
    """A store that fails in the middle ends the search, and its process; its own timeout is not taken for ours."""

    async def fails() -> AsyncIterator[str]:
        yield "text\n" * 100_000
        raise error

    with pytest.raises(type(error), match="the store is"):
        await search(fails(), "z", start=0, seconds=30)


@LINUX
async def test_a_text_that_does_not_come_is_waited_for_no_longer_than_agreed(no_child_left: None) -> None:
    """The bound is on the whole search, the store's part included."""

    async def hangs() -> AsyncIterator[str]:
        yield "found\n" * 3 + "x\n" * 1000
        await asyncio.Event().wait()

    found = await search(hangs(), "found", start=0, seconds=2)
    assert (len(found.matches), found.is_stopped) == (3, True)


def test_nothing_complains_when_the_loop_ends_right_after() -> None:
    """Neither a process nor a pipe is unclosed when the loop is gone (warnings are errors here)."""
    for _ in range(3):
        asyncio.run(look("a", "a\n" * 100_000))
        asyncio.run(look(CATASTROPHIC, ENDLESS, seconds=0.2))
        gc.collect()


def test_it_works_in_a_loop_of_another_thread() -> None:
    """A host's second loop, whichever kind it is, may search too."""
    import uvloop

    answers: list[Found] = []
    for factory in (asyncio.new_event_loop, uvloop.new_event_loop):

        def serve(factory: Any = factory) -> None:
            with asyncio.Runner(loop_factory=factory) as runner:
                answers.append(runner.run(look("b", "a\nb\n")))

        thread = threading.Thread(target=serve)
        thread.start()
        thread.join(30)
    assert answers == [Found((Match(2, 2, "b"),), None, is_stopped=False)] * 2


@LINUX
async def test_only_some_search_at_once(no_child_left: None) -> None:
    """Twenty searches have four processes at most, and all come to their end."""
    before, most = children(), 0
    tasks = [asyncio.ensure_future(look("b", "a\nb\n" * 10)) for _ in range(20)]
    while not all(task.done() for task in tasks):
        most = max(most, len(children() - before))
        await asyncio.sleep(0.001)
    assert 1 <= most <= 4
    assert {len(task.result().matches) for task in tasks} == {10}


async def test_at_most_two_hundred_matches(no_child_left: None) -> None:
    """Then it stops reading, and says where to go on; so all are found in some searches."""
    text = "".join(f"row {number}\n" for number in range(450)) + "x\n" * 500_000
    seen: list[int] = []
    start: int | None = 0
    while start is not None:
        found = await look("row", text, start=start)
        assert len(found.matches) <= 200
        seen += [match.line for match in found.matches]
        start = found.next_offset
    assert seen == list(range(1, 451))


async def test_a_long_line_is_shown_around_its_match(no_child_left: None) -> None:
    """A document in one line has a match for each place, and each can be read from its offset (FIELD 76)."""
    text = "x" * 50_000 + "needle" + "y" * 50_000 + "needle" + "z" * 10
    found = await look("needle", text)
    assert [(match.line, match.offset) for match in found.matches] == [(1, 50_000), (1, 100_006)]
    assert [text[match.offset :][:6] for match in found.matches] == ["needle", "needle"]
    assert found.matches[0].text == "…" + "x" * 75 + "needle" + "y" * 219 + "…"
    assert found.matches[1].text == "…" + "y" * 75 + "needle" + "z" * 10


async def test_the_excerpts_have_a_bound_together(no_child_left: None) -> None:
    """Long lines give fewer matches; going on finds the rest."""
    text = "\n".join(f"{number:04d}" + "x" * 290 for number in range(150))
    first = await look("x", text)
    assert len(first.matches) == 55
    assert sum(len(match.text) for match in first.matches) < 16_400
    second = await look("x", text, start=first.next_offset or 0)
    assert [match.line for match in second.matches] == list(range(56, 111))


async def test_a_lone_surrogate_is_no_trouble(no_child_left: None) -> None:
    """Neither in the text nor in the pattern; what is shown can be sent."""
    found = await look("\ud83d+x", "lone \ud83dx\n")
    assert found.matches == (Match(1, 5, "lone \ufffdx"),)


@pytest.mark.parametrize("executable", [None, ""])
async def test_without_an_interpreter_the_model_is_told(
    executable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedded Python doesn't know its own program."""
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(
        ToolError, match=r"Searching by pattern is not possible here .*; read the text by offset and limit"
    ):
        await look("x", "text")


async def test_a_frozen_program_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """There `sys.executable` is the host's own program."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(ToolError, match="not possible here"):
        await look("x", "text")


async def test_a_program_that_is_no_interpreter_is_noticed(
    monkeypatch: pytest.MonkeyPatch, no_child_left: None
) -> None:
    """Some servers say that they are Python; some are missing."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ToolError, match="its process did not start"):
        await look("x", "text\n" * 100_000)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(ToolError, match="FileNotFoundError"):
        await look("x", "text")


@LINUX
async def test_a_pattern_that_needs_all_memory_is_stopped(
    no_child_left: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The process has a bound of its own, and its end is told as a search that was stopped."""
    program = tmp_path / "child.py"
    source = Path(module_search._PROGRAM).read_text(encoding="utf-8")
    program.write_text(source.replace("_MEMORY = 2 << 30", "_MEMORY = 100 << 20"), encoding="utf-8")
    assert program.read_text(encoding="utf-8") != source
    monkeypatch.setattr(module_search, "_PROGRAM", program)
    began = asyncio.get_running_loop().time()
    found = await look("(?:a|b)*c", "one\n" * 100_000, "ab" * 20_000_000, seconds=40)
    assert found.is_stopped
    assert asyncio.get_running_loop().time() - began < 30
    assert (await look("n", "one\n")).matches == (Match(1, 1, "one"),)


@LINUX
def test_a_child_without_a_parent_ends_by_itself() -> None:
    """If nobody kills it, because the host was killed, it ends after its time, in the middle of a match."""
    order = " ".join(map(str, Order(len(CATASTROPHIC), 0, 10, 1000, 100, 1)))
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(module_search._PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(f"{order}\n{CATASTROPHIC}{ENDLESS}\n".encode())
        process.stdin.close()
        try:
            assert process.wait(30) == 1
        finally:
            process.kill()


def test_the_child_needs_nothing_but_the_standard_library() -> None:
    """It runs without site-packages, and without the host's paths and variables."""
    environment = {**os.environ, "PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "/nowhere"}
    order = " ".join(map(str, Order(1, 0, 10, 1000, 100, 30)))
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(module_search._PROGRAM)],
        input=f"{order}\nbabc\n".encode(),
        capture_output=True,
        check=True,
        env=environment,
        cwd="/",
    )
    assert (done.stdout, done.stderr) == (b"ready\nmatch 1 1 abc\npassed 4\npassed 5\nend\n", b"")


# -- the child's own rules, in this process ----------------------------------------------------------------------------


def said(
    pattern: str, text: str, *, start: int = 0, most: int = 1000, chars: int = 10**6, width: int = 20
) -> list[str]:
    """What the child would say."""
    encoded = pattern.encode("utf-8", "surrogatepass")
    source = io.BufferedReader(io.BytesIO(encoded + text.encode("utf-8", "surrogatepass")))
    return list(answer(source, Order(len(encoded), start, most, chars, width, 0)))


def test_a_long_line_is_not_shown_twice() -> None:
    """Each excerpt of it begins with a match that the one before did not show."""
    places = [int(line.split()[2]) for line in said("x", "x" * 1000, width=100) if line.startswith("match")]
    assert places == [0, *range(100, 1000, 75)]


@pytest.mark.parametrize(
    ("start", "lines"), [(0, [1, 2, 3]), (1, [2, 3]), (2, [2, 3]), (3, [3]), (4, [3]), (5, []), (99, [])]
)
def test_what_begins_before_the_offset_is_passed_over(start: int, lines: list[int]) -> None:
    """The lines before it are not even looked at."""
    assert [int(line.split()[1]) for line in said("a", "a\na\na", start=start) if line.startswith("match")] == lines


TEXTS = st.lists(
    st.sampled_from(["a", "b", "ab", "\n", "\r\n", "上", "😀", " ", "a" * 30, "\ud83d", "\u2028"]), max_size=40
).map("".join)


@given(TEXTS, st.sampled_from(["a", "b+", "^a", "a$", "^$", "a*", "上|😀", r"\ba", "(?<=a)b", "."]), st.integers(0, 60))
@example("a\r\nb", "a$", 0)
def test_the_lines_found_are_those_that_match(text: str, pattern: str, start: int) -> None:
    """A simple search by lines, written again without care for size, finds the same."""
    found: dict[int, int] = {}
    for line in said(pattern, text, start=start):
        if line.startswith("match "):
            _, number, offset, excerpt = line.split(" ", 3)
            assert re.match(pattern.strip("^$"), text[int(offset) :]) or pattern in {"^$", r"\ba", "(?<=a)b"}
            assert excerpt.strip("…") in text
            found.setdefault(int(number), int(offset))
    wanted: dict[int, int] = {}
    place = 0
    for row, line in enumerate(text.split("\n"), 1):
        bare = line.removesuffix("\r")
        match = re.compile(pattern).search(bare, max(0, start - place)) if start - place <= len(bare) else None
        if match is not None:
            wanted[row] = place + match.start()
        place += len(line) + 1
    assert found == wanted


@given(TEXTS, st.sampled_from(["a", "b+", "a*", "."]), st.integers(1, 5))
def test_going_on_finds_what_is_left(text: str, pattern: str, most: int) -> None:
    """Searches of a few matches each, one from where the last one stopped, find what one search finds."""
    whole = [line for line in said(pattern, text) if line.startswith("match")]
    seen: list[str] = []
    start = 0
    while True:
        lines = said(pattern, text, start=start, most=most)
        seen += [line for line in lines if line.startswith("match")]
        if not lines[-1].startswith("full"):
            break
        start = int(lines[-1].split()[1])
    assert seen == whole
    assert lines[-1] == "end"


@given(TEXTS)
def test_what_is_passed_is_told(text: str) -> None:
    """The child says how far it has come, never further than it has, and that it is at the end."""
    lines = said("zzz", text)
    passed = [int(line.split()[1]) for line in lines if line.startswith("passed")]
    assert lines[0] == "ready"
    assert lines[-1] == "end"
    assert passed == sorted(passed)
    assert passed[-1] == len(text) + 1
