"""Cutting the middle out: what every cut keeps to, whatever the text, the budget and the tokenizer."""

import logging
import re
from collections.abc import Callable
from typing import Any, cast
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.output.texts import TEXTS
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.output import Truncation, estimate_tokens, truncate_middle

PIECES = [
    "a",
    "word ",
    "\n",
    "\r\n",
    "1,234",
    "上海",
    "😀",
    "👩\u200d💻",
    "🇳🇴",
    "👍🏽",
    "e\u0301",
    "\u1100\u1161\u11a8",
    "\ud83d\ude00",
    "\ud83d",
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=300).map("".join) | st.text(max_size=400)
BUDGET = st.integers(1, 120)


def by_words(text: str) -> int:
    """A tokenizer of another kind: words, and whatever is no word."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def by_bytes(text: str) -> int:
    """The densest one that there is."""
    return len(text.encode("utf-8", "surrogatepass"))


def in_pairs(text: str) -> int:
    """One that merges: what stands at a cut counts differently than before it."""
    return len(re.findall(r"(?s)(.)\1?", text))


COUNTS = st.sampled_from([estimate_tokens, by_words, by_bytes, in_pairs])


def gap(cut: Truncation) -> str:
    """What stands between the head and the tail."""
    return cut.text[cut.head : len(cut.text) - cut.tail]


@given(TEXT, BUDGET, COUNTS)
@example("😀" * 10, 5, estimate_tokens)
@example("ab", 1, by_bytes)
@example("😀" * 20, 55, estimate_tokens)
def test_what_every_cut_keeps_to(text: str, budget: int, count: Callable[[str], int]) -> None:
    """The head is a prefix, the tail a suffix, the figures are exact, and the result is in its budget and no longer than it was."""
    cut = truncate_middle(text, budget, count=count)
    total = count(text)
    assert cut.text.startswith(text[: cut.head])
    assert cut.text.endswith(text[len(text) - cut.tail :])
    assert cut.head + cut.gone_chars + cut.tail == len(text)
    assert len(cut.text) <= len(text)
    if total <= budget:
        assert cut == Truncation(text, len(text), 0, 0, 0)
        return
    assert cut.gone_chars > 0
    assert gap(cut)
    assert cut.gone_tokens == max(0, total - count(text[: cut.head]) - count(text[len(text) - cut.tail :]))
    assert count(cut.text) <= budget or cut.text == "…"


@given(TEXT, BUDGET, COUNTS)
def test_a_cut_text_is_not_cut_again(text: str, budget: int, count: Callable[[str], int]) -> None:
    """What is in its budget comes back as it is."""
    once = truncate_middle(text, budget, count=count).text
    assert truncate_middle(once, budget, count=count).text == once


@given(TEXT, BUDGET)
def test_nothing_that_is_one_character_to_a_reader_is_cut_apart(text: str, budget: int) -> None:
    """No mark is left without its base, no joined emoji, flag, Hangul syllable, line end or surrogate pair in two."""
    cut = truncate_middle(text, budget)
    if not cut.gone_chars:
        return
    for place in (cut.head, len(text) - cut.tail):
        if 0 < place < len(text):
            before, after = text[place - 1], text[place]
            assert category(after)[0] != "M"
            assert "\u200d" not in {before, after}
            assert not "🏻" <= after <= "🏿"
            assert (before, after) != ("\r", "\n")
            assert not ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
            assert not ("\u1100" <= before <= "\u11ff" and "\u1160" <= after <= "\u11ff")


@pytest.mark.parametrize(
    "whole",
    [
        "🇳🇴",
        "👩\u200d👩\u200d👧",
        "👍🏻",
        "👍🏿",
        "e\u0301\u0302",
        "각",
        "\u1100\u1161\u11a8",
        "\r\n",
        "\ud83d\ude00",
        chr(0xD800) + chr(0xDC00),
        chr(0xDBFF) + chr(0xDFFF),
        "가\u11a8",
    ],
)
@pytest.mark.parametrize("budget", range(70, 100, 3))
def test_a_row_of_one_character_is_cut_between_two_of_them(whole: str, budget: int) -> None:
    """Both ends are whole characters, wherever the budget would have it."""
    cut = truncate_middle(whole * 200, budget)
    assert cut.head % len(whole) == 0
    assert cut.tail % len(whole) == 0
    assert cut.head
    assert cut.tail


def test_a_character_of_a_thousand_marks_is_cut() -> None:
    """What has no end within reason is cut where the budget says, so that the cut takes no time."""
    cut = truncate_middle("a" + "\u0301" * 5000, 400)
    assert cut.head > 50
    assert cut.tail > 20


@pytest.mark.parametrize("budget", [200, 1000, 5000])
def test_two_thirds_are_head_and_one_third_is_tail(budget: int) -> None:
    """So it is in characters, and the budget is used but for a small rest."""
    text = "".join(f"line {number} of the output\n" for number in range(5000))
    cut = truncate_middle(text, budget)
    assert cut.head / (cut.head + cut.tail) == pytest.approx(2 / 3, abs=0.01)
    assert budget * 0.9 <= estimate_tokens(cut.text) <= budget


@pytest.mark.parametrize(
    "text", ["😀" * 3000 + "a" * 50_000, "a" * 50_000 + "😀" * 3000, "a" * 20_000 + "😀" * 3000 + "a" * 20_000]
)
def test_a_text_of_uneven_density_uses_its_budget(text: str) -> None:
    """A dense beginning or end is not kept too short or too long."""
    cut = truncate_middle(text, 2000)
    assert 1700 <= estimate_tokens(cut.text) <= 2000


def test_the_notice_says_exactly_what_is_gone() -> None:
    """It has the characters and the tokens that are gone, and those that there were."""
    text = "x" * 100_000
    cut = truncate_middle(text, 1000)
    assert gap(cut) == (
        f"\n\n[... {cut.gone_chars:,} of 100,000 characters are left out here, about {cut.gone_tokens:,} of 20,000 tokens ...]\n\n"
    )
    assert cut.gone_tokens == 20_000 - estimate_tokens("x" * cut.head) - estimate_tokens("x" * cut.tail)


@pytest.mark.parametrize(
    ("budget", "notice"),
    [
        (1, "…"),
        (2, "…"),
        (5, "…"),
        (32, r"\[\.\.\. \d+ characters left out \.\.\.\]"),
        (150, r"\n\n\[\.\.\. [\d,]+ of 1,000 characters .*\n\n"),
    ],
)
def test_a_small_budget_has_a_small_notice(budget: int, notice: str) -> None:
    """A notice never takes more than half of the budget; the least one is there whatever the budget is."""
    cut = truncate_middle("word " * 200, budget)
    assert re.fullmatch(notice, gap(cut))
    assert estimate_tokens(cut.text) <= budget
    assert (cut.head > 0) == (budget > 1)


@pytest.mark.parametrize("budget", range(1, 40))
def test_every_tiny_budget_is_kept(budget: int) -> None:
    """From one token on, each budget has its text, longer the larger it is."""
    cut = truncate_middle("some text that goes on " * 100, budget)
    assert estimate_tokens(cut.text) <= budget
    assert cut.text


@pytest.mark.parametrize("kind", TEXTS)
def test_every_kind_of_text_is_cut_to_its_budget(kind: str) -> None:
    """Scripts and formats are all the same to it."""
    text = TEXTS[kind].text * 400
    cut = truncate_middle(text, 500)
    assert 400 <= estimate_tokens(cut.text) <= 500


def test_a_text_that_needs_no_counting_is_not_counted() -> None:
    """No tokenizer is asked of a text with no more bytes than the budget has tokens."""
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    truncate_middle("x" * 1000, 1000, count=count)
    truncate_middle("上" * 250, 1000, count=count)
    assert asked == []
    truncate_middle("上" * 251, 1000, count=count)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "😀" * 100_000 + " " * 900_000, " " * 900_000 + "😀" * 100_000, "a b" * 300_000]
)
def test_the_tokenizer_is_asked_for_little_more_than_the_text(text: str) -> None:
    """The work is linear: all that is ever counted is a few times the text at most, where its density misleads."""
    seen = 0

    def count(piece: str) -> int:
        nonlocal seen
        seen += len(piece)
        return estimate_tokens(piece)

    truncate_middle(text, 5000, count=count)
    assert seen < 4 * len(text)


def test_a_text_that_is_alike_all_over_takes_one_look() -> None:
    """Beyond the whole text, what is counted is about what is kept."""
    seen = 0

    def count(piece: str) -> int:
        nonlocal seen
        seen += len(piece)
        return estimate_tokens(piece)

    text = "some words and 123 numbers\n" * 40_000
    cut = truncate_middle(text, 5000, count=count)
    assert seen - len(text) < 4 * len(cut.text)


class PanicException(BaseException):
    """As tokenizers written in Rust raise it."""


def panics(text: str) -> int:
    raise PanicException("index out of range")


BAD: dict[str, Callable[[str], Any]] = {
    "raises": lambda text: 1 // 0,
    "panics": panics,
    "returns a float": lambda text: len(text) / 4,
    "returns a bool": lambda text: True,
    "returns nothing": lambda text: None,
    "returns less than nothing": lambda text: -len(text),
    "takes no argument": cast("Any", lambda: 1),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_tokenizer_costs_nothing_but_a_line_in_the_log(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """The estimate stands in for it, and it is told once."""
    text = "some words " * 1000
    assert truncate_middle(text, 100, count=BAD[kind]) == truncate_middle(text, 100)
    assert [record.levelno for record in caplog.records if record.name == "toolbatch.output"] == [logging.WARNING]


def test_a_tokenizer_that_fails_now_and_then_is_still_asked() -> None:
    """One text that it can't take doesn't turn it off for the others."""
    asked: list[int] = []

    def count(text: str) -> int:
        asked.append(len(text))
        if len(text) > 5000:
            raise ValueError("<|endoftext|>")
        return len(text)

    cut = truncate_middle("some words " * 1000, 200, count=count)
    assert len(cut.text) <= 200
    assert len(asked) > 2


def test_a_tokenizer_without_rhyme_or_reason_ends() -> None:
    """Numbers at random give some cut, in bounded time."""
    numbers = iter(range(10**6))
    cut = truncate_middle("x" * 10_000, 50, count=lambda text: next(numbers) * 7919 % 100)
    assert cut.head + cut.gone_chars + cut.tail == 10_000


def test_interrupts_pass_through_a_tokenizer() -> None:
    """Ctrl-C while it counts is no failure of the tokenizer."""

    def interrupted(text: str) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        truncate_middle("x" * 100, 10, count=interrupted)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((b"bytes", 10), InvalidTypeError, "text must be a str, not b'bytes'"),
        (("text", 0), InvalidInputError, "max_tokens must be at least 1, not 0"),
        (("text", True), InvalidTypeError, "max_tokens must be a positive int, not True"),
        (("text", 1.5), InvalidTypeError, "max_tokens must be a positive int, not 1.5"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[Any, Any], error: type[Exception], words: str) -> None:
    """A value that can't be used is in the message."""
    with pytest.raises(error, match=re.escape(words)):
        truncate_middle(*arguments)
    with pytest.raises(InvalidTypeError, match="count must be a function of a text, not 4"):
        truncate_middle("text", 10, count=4)  # type: ignore[arg-type]
