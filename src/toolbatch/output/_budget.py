"""How much of a tool's output the model is shown (G1)."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, Literal, TypeVar, final, overload

from toolbatch.core import InvalidInputError, InvalidTypeError, Part, preview
from toolbatch.ports import SpillRecord, SpillStore

from ._aside import Aside, NoThreadError
from ._bounded import bounded
from ._counter import Counter
from ._estimate import TokenCount, estimate_tokens, surely_fits
from ._log import warn
from ._parts import joined, split_again
from ._shorten import CUT_NOTICES, Figures, Notice, full_notice, require_budget, shorten

__all__ = ["OutputBudget", "OverflowPolicy"]

T = TypeVar("T")

OverflowPolicy = Literal["auto", "truncate", "spill"]
"""What happens to a text over its budget. `truncate` cuts it. `auto` saves the whole and shows it cut, and only cuts it where there is no
store or the store fails. `spill` is the same, and a missing store is told in the log."""

_POLICIES: Final = ("auto", "truncate", "spill")

_LONG_ESTIMATED: Final = 100_000  # characters whose estimate takes more than a few milliseconds
_LONG_COUNTED: Final = 20_000  # characters for which a tokenizer takes as long

_MAX_LOCATOR: Final = 128
_MAX_RETRIEVAL: Final = 500


@final
@dataclass(frozen=True, slots=True)
class OutputBudget:
    """How many tokens of a result's text the model is shown, and what becomes of the rest (G1).

    It is for results. An error's message is bounded already, by `Limits.max_message_bytes`. Text and JSON are counted and
    shortened; images, documents and links stay as they are.

    Attributes:
        max_tokens: The budget of every result of a batch; `None` for none, so that only tools' own budgets count.
        policy: What happens to a text over its budget.
        store: Where whole texts go.
        count: Counts tokens; the estimate if no tokenizer is plugged in. Where it raises or returns no number, the estimate stands
            in, and the log says so once.
        store_timeout: Seconds that the store may take to save a text.

    Raises:
        InvalidInputError: A value can't be used.
        InvalidTypeError: A value is of a wrong type.
    """

    max_tokens: int | None
    _: KW_ONLY
    policy: OverflowPolicy = "auto"
    store: SpillStore | None = None
    count: TokenCount = estimate_tokens
    store_timeout: float = 5.0
    _counter: Counter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_tokens is not None:
            require_budget(self.max_tokens, "max_tokens")
        if self.policy not in _POLICIES:
            raise InvalidInputError(f"policy must be one of {', '.join(_POLICIES)}, not {preview(self.policy)}")
        if self.store is not None and not (
            callable(getattr(self.store, "save", None)) and callable(getattr(self.store, "read", None))
        ):
            raise InvalidTypeError(f"store must have the methods of a SpillStore, as {preview(self.store)} has not")
        if not callable(self.count):
            raise InvalidTypeError(f"count must be a function of a text, not {preview(self.count)}")
        seconds = self.store_timeout
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise InvalidTypeError(f"store_timeout must be a number of seconds, not {preview(seconds)}")
        if not seconds > 0:
            raise InvalidInputError(f"store_timeout must be more than 0 seconds, not {seconds!r}")
        object.__setattr__(self, "_counter", Counter(self.count))
        if self.policy == "spill" and self.store is None:
            warn("an output budget is to spill and has no store: it will cut")

    def is_within(self, content: str | tuple[Part, ...], *, max_tokens: int | None = None) -> bool:
        """Whether a result is surely shown as it is, so that `fit` need not be awaited. It counts nothing, and takes no time.

        Args:
            content: The result.
            max_tokens: The tool's own budget.
        """
        limit = self._limit(max_tokens)
        return limit is None or surely_fits(_text(content), limit)

    @overload
    async def fit(
        self,
        content: str,
        *,
        tool_name: str,
        call_id: str,
        max_tokens: int | None = ...,
        exempt: bool = ...,
        within: float | None = ...,
    ) -> str: ...

    @overload
    async def fit(
        self,
        content: str | tuple[Part, ...],
        *,
        tool_name: str,
        call_id: str,
        max_tokens: int | None = ...,
        exempt: bool = ...,
        within: float | None = ...,
    ) -> str | tuple[Part, ...]: ...

    async def fit(
        self,
        content: str | tuple[Part, ...],
        *,
        tool_name: str,
        call_id: str,
        max_tokens: int | None = None,
        exempt: bool = False,
        within: float | None = None,
    ) -> str | tuple[Part, ...]:
        """Return what the model is shown of a result: the result itself, where it is within its budget.

        The whole text is saved before anything is shown. A store that raises, takes too long or answers nonsense costs the result
        nothing but its locator: it is cut, and the log says why. A budget that has no room even for the short form of what leads to
        the saved text is overrun by that, about 40 tokens: the text could not be found again without.

        Args:
            content: The result: text, or parts.
            tool_name: Of the call, for the store.
            call_id: Likewise.
            max_tokens: The tool's own budget; the stricter one wins.
            exempt: Whether the tool's results are never shortened (G4).
            within: Seconds that the caller has left; the store is given half of them at most.

        Raises:
            InvalidInputError: `max_tokens` is less than 1.
            InvalidTypeError: A value is of a wrong type.
            CancelledError: The caller was cancelled.
        """
        limit = self._limit(max_tokens)
        text = _text(content)
        if exempt or limit is None or surely_fits(text, limit):
            return content
        counter = self._counter
        total = await self._beside(text, lambda: counter(text))
        if total <= limit:
            return content
        notices = CUT_NOTICES
        record = None if self.policy == "truncate" else await self._save(text, tool_name, call_id, within)
        if record is not None:
            spilled = _spill_notices(record)
            if counter(spilled[-1](_LEAST)) < total:
                notices = spilled
        cut = await self._beside(text, lambda: shorten(text, total, limit, counter, notices))
        return split_again(content, cut) if isinstance(content, tuple) else cut.text

    def _limit(self, own: int | None) -> int | None:
        if own is None:
            return self.max_tokens
        require_budget(own, "max_tokens")
        return own if self.max_tokens is None else min(own, self.max_tokens)

    async def _beside(self, text: str, call: Callable[[], T]) -> T:
        """Call at once for a usual text, and in a thread for one that would block the loop."""
        if len(text) <= (_LONG_ESTIMATED if self._counter.is_estimate else _LONG_COUNTED):
            return call()
        try:
            # In a thread of its own: a tokenizer that hangs must not stop the next.
            return await Aside(idle_seconds=0).run(call)
        except NoThreadError:
            return call()

    async def _save(self, text: str, tool_name: str, call_id: str, within: float | None) -> SpillRecord | None:
        store = self.store
        if store is None:
            return None

        async def save() -> SpillRecord:
            return await store.save(text, tool_name=tool_name, call_id=call_id)

        seconds = self.store_timeout if within is None else min(self.store_timeout, within / 2)
        try:
            record = await bounded(save, seconds)
            problem = _problem(record, text)
            if problem is None:
                return record
            warn("the output of %s (call %s) was cut, not saved: the store answered %s", tool_name, call_id, problem)
        except Exception as error:  # noqa: BLE001  whatever a store raises, the result is worth more
            warn("the output of %s (call %s) was cut, not saved: %s", tool_name, call_id, preview(error), error=error)
        return None


_LEAST: Final = Figures(0, 0, 0, 0, 0)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content if type(content) is str else str.__str__(content)
    if not isinstance(content, tuple):
        raise InvalidTypeError(f"content must be a str or a tuple of parts, not {preview(content)}")
    return joined(content)


def _problem(record: object, text: str) -> str | None:
    """Say what is wrong with a store's answer, `None` if nothing is."""
    if not isinstance(record, SpillRecord):
        return f"{preview(record)}, no SpillRecord"
    locator, sentence = record.locator, record.retrieval
    if not isinstance(locator, str) or not 0 < len(locator) <= _MAX_LOCATOR or not _is_plain(locator):
        return f"the locator {preview(locator)}"
    if not isinstance(sentence, str) or not 0 < len(sentence) <= _MAX_RETRIEVAL or not sentence.isprintable():
        return f"the sentence {preview(sentence)}"
    if locator not in sentence:
        return f"a sentence without the locator: {preview(sentence)}"
    if record.total_chars != len(text):
        return f"that it saved {preview(record.total_chars)} of {len(text)} characters"
    return None


def _is_plain(locator: str) -> bool:
    return locator.isascii() and locator.isprintable() and not set(locator) & set(" \"'`")


def _spill_notices(record: SpillRecord) -> tuple[Notice, ...]:
    sentence = record.retrieval

    def full(figures: Figures) -> str:
        said = full_notice(figures).removesuffix(" ...]\n\n")
        return f"{said}, from offset {figures.head} on. {sentence} ...]\n\n"

    return full, lambda _figures: f"[... {sentence} ...]"
