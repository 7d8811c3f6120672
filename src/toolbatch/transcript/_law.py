"""`check` and `repair`: the two readings of one matching."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any, Final, Literal, get_args

from toolbatch.core import InvalidInputError, Snapshot, ToolbatchError, preview

from ._anthropic import Anthropic
from ._bedrock import Bedrock
from ._faults import faults
from ._findings import RepairedTranscript, Violation
from ._gemini import Gemini
from ._known import Known, require_snapshots
from ._lane import Lane
from ._langchain import LangChain
from ._matching import Matching
from ._openai_chat import OpenAIChat
from ._openai_responses import OpenAIResponses
from ._plan import Options, Plan, leave_out, mend_turn
from ._read import require_messages, unreadable
from ._sent import append_to_turn, drop_new_orphans
from ._turns import NOWHERE, Call

__all__ = ["LANES", "LaneName", "check", "lane_of", "repair"]

LaneName = Literal["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock", "langchain"]
"""The message formats that the law knows (L6)."""

LANES: Final[tuple[LaneName, ...]] = get_args(LaneName)

_LANES: Final[dict[str, Lane]] = {
    "openai_chat": OpenAIChat(),
    "openai_responses": OpenAIResponses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
    "bedrock": Bedrock(),
    "langchain": LangChain(),
}


def lane_of(name: object) -> Lane:
    """Return the lane of that name.

    Raises:
        InvalidInputError: There is none.
    """
    lane = _LANES.get(name) if isinstance(name, str) else None
    if lane is None:
        raise InvalidInputError(f"lane must be one of {', '.join(LANES)}, not {preview(name)}")
    return lane


def check(
    messages: list[Any], lane: LaneName, *, repair_last: bool = True, server_context: bool = False
) -> list[Violation]:
    """Return what breaks the law in a list of messages, in the order of the list; nothing if it is lawful (L1, L2).

    The law: the calls of an assistant message come last in it, each id once; right behind it stands exactly one result a
    call; every result answers an earlier call, the nearest one with its id (L3). `check` and `repair` read the same
    matching, so a list is lawful if and only if `repair` returns it as it is.

    Args:
        messages: The whole context, in the lane's shape: dicts, other mappings, or the SDK's objects. Only read.
        lane: The format.
        repair_last: `False` leaves a last turn alone whose calls can still be executed or approved (L7).
        server_context: Whether earlier context is on the server (`previous_response_id`, `conversation`), so that a result
            may answer a call that is not seen here (L7). An `item_reference` in the list says the same by itself.

    Raises:
        InvalidInputError: The lane is unknown, or a message's own code raises when it is read.
        InvalidTypeError: `messages` is not a list, or an entry is no message.
    """
    shape = lane_of(lane)
    with _Reading(require_messages(messages), shape):
        seen = _read(messages, shape, server_context=server_context)
        return [one for _, found in faults(seen, shape.is_close, repair_last=repair_last) for one in found]


def repair(
    messages: list[Any],
    lane: LaneName,
    *,
    prior_messages: Iterable[object] | None = None,
    repair_last: bool = True,
    server_context: bool = False,
    sent: int = 0,
    snapshots: Iterable[Snapshot] = (),
) -> RepairedTranscript:
    """Return a view of the messages that keeps the law, with a list of what was done (L1).

    - content between or behind calls moves in front of them; thinking and reasoning stay where they are (L6);
    - a later call with an id of the same turn is left out, and so is a result without an earlier call;
    - a result that was recorded later moves up to its call, past whole turns; several results of one call are folded;
    - a call without a result is closed with `INTERRUPTED_TEXT`. A close beside a recorded result is void.

    Pure and deterministic: the input is never changed, an unchanged message keeps its identity, a lawful list comes back
    as the same object, and repairing twice equals repairing once (L4).

    Args:
        messages: The whole context, in the lane's shape: dicts, other mappings, or the SDK's objects.
        lane: The format.
        prior_messages: Messages that stood before this run, by identity: a `missing_result` repair of one of them has
            `before_run` (L5). In Responses, these are the items of the calls.
        repair_last: `False` leaves open a last turn whose calls can still be executed or approved (L7).
        server_context: As in `check`.
        sent: How many messages were sent already and stay as they are. A turn at their end is still closed, a result that
            comes too late is delivered as new content (B20), and what can't be mended is in `remaining`.
        snapshots: Snapshots of the batches that ran these calls, oldest first. A call that one of them knows is answered
            with its own outcome, or its close says that the tool was not started.

    Raises:
        InvalidInputError: The lane is unknown, `sent` is not between 0 and the number of messages, or a message's own code
            raises when it is read or copied.
        InvalidTypeError: `messages` is not a list, an entry is no message, or a snapshot was not made here.
    """
    shape = lane_of(lane)
    _require_sent(sent, len(require_messages(messages)))
    taken = require_snapshots(snapshots)
    prior = frozenset(map(id, prior_messages or ()))
    with _Reading(messages, shape):
        seen = _read(messages, shape, server_context=server_context, border=sent)
        found = faults(seen, shape.is_close, repair_last=repair_last)
        first = next(found, None)
        if first is None:
            return RepairedTranscript(messages)
        past = _read(messages[:sent], shape, server_context=server_context)
        known = Known(taken, shape.name, seen.all_turns)
        options = _options(messages, shape, past, known, prior, sent, spared=NOWHERE if repair_last else seen.tail)
        return _carried_out(messages, shape, _plan(seen, chain([first], found), options))


def _options(
    messages: list[Any],
    shape: Lane,
    past: Matching,
    known: Known,
    prior: Collection[int],
    sent: int,
    spared: int,
) -> Options:
    return Options(
        is_close=shape.is_close,
        loses=shape.loses,
        folded=shape.only,
        closed=lambda call, close: shape.answer(messages, call, close),
        close=known.close,
        home=lambda call: messages[call.position],
        prior=prior,
        spared=spared,
        sent=sent,
        border=NOWHERE if past.run < 0 else past.positions[past.run],
        reaches=past.is_latest if shape.anywhere else _never,
    )


class _Reading:
    """Within it, what a message's own code raises (a property, a `get`, a copy) becomes an error that names the message."""

    __slots__ = ("_lane", "_messages")

    def __init__(self, messages: list[Any], lane: Lane) -> None:
        self._messages = messages
        self._lane = lane

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, (ToolbatchError, MemoryError)):
            raise unreadable(error, self._culprit()) from error

    def _culprit(self) -> int | None:
        """Return the index of the first message that can't be read alone."""
        for position, message in enumerate(self._messages):
            alone = [message]
            try:
                seen = _read(alone, self._lane, server_context=False)
                for result in seen.orphans:
                    self._lane.is_close(result)
            except Exception:  # noqa: BLE001  whatever it raises, this is the one
                return position
        return None


def _require_sent(sent: object, size: int) -> None:
    if not isinstance(sent, int) or isinstance(sent, bool) or not 0 <= sent <= size:
        raise InvalidInputError(f"sent must be between 0 and the {size} messages, not {preview(sent)}")


def _carried_out(messages: list[Any], lane: Lane, plan: Plan) -> RepairedTranscript:
    remaining = tuple(plan.remaining)
    if not plan.repairs:
        return RepairedTranscript(messages, remaining=remaining)
    return RepairedTranscript(lane.apply(messages, plan), tuple(plan.repairs), plan.lossy, remaining)


def _never(_: Call) -> bool:
    return False


def _read(messages: Sequence[Any], lane: Lane, *, server_context: bool, border: int = 0) -> Matching:
    seen = Matching(lane.sources(messages), opaque=server_context, border=border)
    lane.read(messages, seen)
    return seen


def _plan(seen: Matching, faulty: Iterable[tuple[int, list[Violation]]], options: Options) -> Plan:
    """Return what mends all faults, turn by turn in the order of the transcript."""
    plan = Plan()
    for number, found in faulty:
        if number == NOWHERE:
            leave_out(plan, drop_new_orphans(plan, seen.orphans, options))
            continue
        turn = seen.turn_at(number)
        if turn.position < options.sent:
            append_to_turn(plan, turn, found, options)
        else:
            mend_turn(plan, turn, found, options)
    return plan
