"""Cutting the middle out of a text so that what is left, and what is said of the rest, is within a budget (G2)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from toolbatch.core import InvalidInputError, InvalidTypeError, preview

from ._counter import Counter
from ._estimate import TokenCount, estimate_tokens, surely_fits
from ._graphemes import cut_after, cut_before

__all__ = [
    "CUT_NOTICES",
    "Figures",
    "Notice",
    "Truncation",
    "full_notice",
    "require_budget",
    "shorten",
    "truncate_middle",
]

_MAX_TRIES: Final = 16
_CLOSE_ENOUGH: Final = 32  # of the room there is, one part of so many may be left unused


@dataclass(frozen=True, slots=True)
class Truncation:
    """A text and what was cut out of it.

    Attributes:
        text: What to show: the head, a notice of what is gone, the tail. The whole text where nothing had to go.
        head: Characters kept from the beginning.
        tail: Characters kept from the end.
        gone_chars: Characters between them, exactly.
        gone_tokens: Their tokens: those of the whole text less those of the head and of the tail.
    """

    text: str
    head: int
    tail: int
    gone_chars: int
    gone_tokens: int


class Figures(NamedTuple):
    """What a notice may tell of a cut.

    Attributes:
        head: Characters before the gap, which is the offset at which it begins.
        gone_chars: Characters in the gap.
        total_chars: Characters of the whole text.
        gone_tokens: Tokens in the gap.
        total_tokens: Tokens of the whole text.
    """

    head: int
    gone_chars: int
    total_chars: int
    gone_tokens: int
    total_tokens: int


Notice = Callable[[Figures], str]
"""Makes the text that stands in the gap. Larger figures make no shorter text."""


def full_notice(figures: Figures) -> str:
    """Say exactly what is gone, as far as the words allow: the tokens may be estimated."""
    return (
        f"\n\n[... {figures.gone_chars:,} of {figures.total_chars:,} characters are left out here, "
        f"about {figures.gone_tokens:,} of {figures.total_tokens:,} tokens ...]\n\n"
    )


def _short_notice(figures: Figures) -> str:
    return f"[... {figures.gone_chars} characters left out ...]"


def _least_notice(_figures: Figures) -> str:
    return "…"


CUT_NOTICES: Final[tuple[Notice, ...]] = (full_notice, _short_notice, _least_notice)
"""From the one that says most to the one that needs least. The last is shown whatever the budget."""


def truncate_middle(text: str, max_tokens: int, *, count: TokenCount = estimate_tokens) -> Truncation:
    """Cut the middle out of a text so that it has at most `max_tokens` tokens, what is said of the cut included (G2).

    Of the characters that are kept, two thirds are the text's beginning and one third is its end: a command's output begins with
    what it did and ends with what came of it. What a reader sees as one character is not cut apart. The notice in the gap says
    how many characters and tokens are gone; in a budget of a few dozen tokens it is shorter, in one of a few tokens it is
    `…` alone. That is the least: a text is never empty, and never longer than it was.

    The time it takes is linear in the text. With a tokenizer plugged in, it is called once for the whole text and some times
    for texts about as long as the result.

    Args:
        text: The text.
        max_tokens: The budget, at least 1.
        count: Counts tokens. Where it raises or returns no number, the estimate stands in, and the log says so once.

    Raises:
        InvalidInputError: The budget is less than 1.
        InvalidTypeError: An argument is of a wrong type.
    """
    if not isinstance(text, str):
        raise InvalidTypeError(f"text must be a str, not {preview(text)}")
    require_budget(max_tokens, "max_tokens")
    if not callable(count):
        raise InvalidTypeError(f"count must be a function of a text, not {preview(count)}")
    counter = Counter(count)
    if surely_fits(text, max_tokens) or (total := counter(text)) <= max_tokens:
        return Truncation(text, len(text), 0, 0, 0)
    return shorten(text, total, max_tokens, counter, CUT_NOTICES)


def require_budget(value: object, what: str) -> None:
    """Check a number of tokens.

    Raises:
        InvalidInputError: It is less than 1.
        InvalidTypeError: It is no int.
    """
    if type(value) is not int:
        raise InvalidTypeError(f"{what} must be a positive int, not {preview(value)}")
    if value < 1:
        raise InvalidInputError(f"{what} must be at least 1, not {value}")


def shorten(text: str, total_tokens: int, max_tokens: int, counter: Counter, notices: tuple[Notice, ...]) -> Truncation:
    """Cut the middle out of a text that is over its budget, with the first notice that leaves as much room as it takes.

    The last notice stands alone where there is room for nothing else, and where there is no room for itself.
    """
    for notice in notices:
        cut = _Cut(text, total_tokens, max_tokens, counter, notice)
        if notice is notices[-1] or 2 * cut.notice_tokens <= max_tokens:
            made = cut.make()
            if made is not None:
                return made
    return _Cut(text, total_tokens, max_tokens, counter, notices[-1]).keeping(0)


class _Cut:
    """One text, one budget, one notice: the search for how much of the text can be kept."""

    def __init__(self, text: str, total_tokens: int, max_tokens: int, counter: Counter, notice: Notice) -> None:
        self._text = text
        self._total_tokens = total_tokens
        self._max_tokens = max_tokens
        self._counter = counter
        self._notice = notice
        size = len(text)
        self._widest = notice(Figures(size, size, size, total_tokens, total_tokens))
        self.notice_tokens = counter(self._widest)

    def make(self) -> Truncation | None:
        """Return the longest cut that was found within the budget, `None` where there is none that keeps anything."""
        kept = self._search()
        while kept > 0:
            made = self.keeping(kept)
            if self._counter(made.text) <= self._max_tokens:
                return made
            # The real figures may have more tokens than the widest, if a tokenizer wills it.
            kept -= kept // 8 + 1
        return None

    def keeping(self, kept: int) -> Truncation:
        """Return the cut that keeps about so many characters."""
        text, size = self._text, len(self._text)
        head, start = self._gap(kept)
        gone_tokens = max(0, self._total_tokens - self._counter(text[:head]) - self._counter(text[start:]))
        figures = Figures(head, start - head, size, gone_tokens, self._total_tokens)
        shown = f"{text[:head]}{self._notice(figures)}{text[start:]}"
        return Truncation(shown, head, size - start, start - head, gone_tokens)

    def _gap(self, kept: int) -> tuple[int, int]:
        """Return where the gap begins and ends. What is dropped lest it be cut apart makes it wider, never narrower."""
        size, tail = len(self._text), kept // 3
        return cut_before(self._text, kept - tail), cut_after(self._text, size - tail)

    def _tokens(self, kept: int) -> int:
        head, start = self._gap(kept)
        return self._counter(f"{self._text[:head]}{self._widest}{self._text[start:]}")

    def _search(self) -> int:
        """Return how many characters can be kept, or a little less.

        It guesses by how dense the text was found to be so far: one look suffices for a text that is alike all over, and a
        few for any other. It never looks at much more text than could be kept, unless what was looked at before was sparse.
        """
        least, most = 0, len(self._text) - max(1, len(self._widest))  # never longer than the text was
        room = self._max_tokens - self.notice_tokens
        guess = len(self._text) * room // max(1, self._total_tokens)
        for _ in range(_MAX_TRIES):
            if most <= least or room <= 0:
                break
            guess = min(guess, most) if guess > least else (least + most + 1) // 2
            used = self._tokens(guess) - self.notice_tokens
            if used > room:
                most, guess = guess - 1, guess * room // used
                continue
            least = guess
            if room - used <= room // _CLOSE_ENOUGH:
                break
            guess = max(guess * room // max(1, used), least + least // _CLOSE_ENOUGH + 1)
        return least
