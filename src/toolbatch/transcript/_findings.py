"""What `check` and `repair` answer: immutable, and each with a sentence that a person can read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

__all__ = ["FORMS", "Action", "Form", "Repair", "RepairedTranscript", "Violation"]

Form = Literal["trailing_text", "late_result", "missing_result", "duplicate_result", "duplicate_call", "orphan_result"]
"""How a transcript can break the law (L1)."""

FORMS: Final[tuple[Form, ...]] = (
    "trailing_text",
    "late_result",
    "missing_result",
    "duplicate_result",
    "duplicate_call",
    "orphan_result",
)

Action = Literal["moved", "closed", "filled", "folded", "voided", "left_out", "delivered"]
"""What a repair did: moved content, closed a call as interrupted, filled in an outcome from a snapshot, folded results into
one, left out a close that a recorded result makes void, left content out, or delivered a result as new content of a later turn."""


class Violation(NamedTuple):
    """One way in which one turn breaks the law; for orphans, the list as a whole.

    Attributes:
        form: Which.
        call_ids: The calls concerned, in call order: their ids, or the tool's name where the lane has no ids. For
            `trailing_text` every call of the turn, for `orphan_result` the ids of the results, in transcript order.
        position: The index of the turn's message, or of the first orphan.
        positions: The indices of all messages concerned, ascending.
    """

    form: Form
    call_ids: tuple[str, ...]
    position: int
    positions: tuple[int, ...]

    @property
    def text(self) -> str:
        """The same as a sentence."""
        return _sentence(self.form, self.call_ids, self.position, self.positions)

    def __str__(self) -> str:
        return self.text


class Repair(NamedTuple):
    """One restoration.

    Attributes:
        form: Which way of breaking the law it restored.
        call_ids: As in `Violation`.
        position: As in `Violation`, in the list that was given.
        positions: As in `Violation`, in the list that was given.
        action: What was done, in a word.
        before_run: For `missing_result`: whether the turn stood before this run, as `prior_messages` says (L5).
    """

    form: Form
    call_ids: tuple[str, ...]
    position: int
    positions: tuple[int, ...]
    action: Action
    before_run: bool = False

    @property
    def text(self) -> str:
        """What was wrong and what was done, as a sentence."""
        done = "left out; the first one stays" if self.form == "duplicate_call" else _DONE[self.action]
        return f"{_sentence(self.form, self.call_ids, self.position, self.positions)}: {done}"

    def __str__(self) -> str:
        return self.text


_DONE: Final[dict[Action, str]] = {
    "moved": "moved to where it belongs",
    "closed": "closed as interrupted",
    "filled": "answered with the batch's own outcome",
    "folded": "folded into one",
    "voided": "the interrupted close is void beside it, and left out",
    "left_out": "left out",
    "delivered": "delivered as new content, since the turn was sent already",
}


def _sentence(form: Form, call_ids: tuple[str, ...], position: int, positions: tuple[int, ...]) -> str:
    ids, where = ", ".join(call_ids), f"messages[{position}]"
    at = ", ".join(str(one) for one in positions if one != position)
    if form == "trailing_text":
        return f"{where}: content stands between or behind the calls {ids}; calls must come last"
    if form == "duplicate_call":
        return f"{where}: the id {ids} is announced more than once; an id names one call"
    if form == "late_result":
        return f"{where}: the result of {ids} does not stand right behind its call, but in messages {at}"
    if form == "duplicate_result":
        return f"{where}: {ids} has more than one result, in messages {at}"
    if form == "missing_result":
        return f"{where}: {ids} has no result"
    also = f", and so in messages {at}" if at else ""
    return f"{where}: the result of {ids} answers no earlier call{also}"


@dataclass(frozen=True, slots=True)
class RepairedTranscript:
    """A view of a transcript that keeps the law.

    Attributes:
        messages: The view. The very list that was given if nothing had to be done.
        repairs: What was done, in the order of the transcript.
        lossy: Whether recorded content was left out: a call, or a result that answers none (L5). Such a view must not
            replace the record that it was made from.
        remaining: What breaks the law in messages that were sent already and so were not touched (`sent=`).
    """

    messages: list[Any]
    repairs: tuple[Repair, ...] = ()
    lossy: bool = False
    remaining: tuple[Violation, ...] = field(default=())

    @property
    def forms(self) -> Sequence[Form]:
        """The forms that were repaired, each once, in the order of the transcript."""
        return tuple(dict.fromkeys(repair.form for repair in self.repairs))
