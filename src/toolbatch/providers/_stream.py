"""What the lanes' stream collectors share: reading events, a bound on what is kept, and who may start early.

A collector decides nothing about calls. It puts the events of a stream together to the response that the server would have
sent whole, and the lane's own `calls` reads that. So a stream and a whole response can't differ in what they announce.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from io import StringIO
from typing import Any, Final

from toolbatch.core import InvalidInputError, InvalidTypeError, ToolbatchError, ToolCall, cut, preview

from ._ids import is_blank
from ._plain import field, members
from ._read import Turn, as_text, cut_off, require_choice

__all__ = [
    "BROKEN_OFF",
    "DEFAULT_MAX_CHARS",
    "INTERRUPTED",
    "Collector",
    "arguments_of",
    "kept",
    "kept_members",
    "reason_of",
    "text_of_buffer",
    "weight",
]

INTERRUPTED: Final = "stream_interrupted"
"""What stands for the stop reason of a response whose stream ended without one. No provider sends it."""

BROKEN_OFF: Final = cut_off("the stream of the response broke off before its end, so the arguments may be incomplete")

DEFAULT_MAX_CHARS: Final = 33_554_432
"""How much of a response is kept unless the caller says otherwise: far more than any model writes."""

_DONE: Final = "[DONE]"
_HEAD_START: Final = 100  # to read the n-th call its n-1 forerunners are read too, so there is an end to it
_ENTRY: Final = 128  # what a block, a call or a member weighs beside its text
_MAX_ERROR_BYTES: Final = 1000
_HALF: Final = re.compile("[\ud800-\udfff]")


def text_of_buffer(buffer: StringIO) -> str:
    """Return what was written, with surrogate pairs joined that the server cut in two: each half came in its own event."""
    text = buffer.getvalue()
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def arguments_of(text: str) -> dict[str, Any] | str:
    """Return what the text of a call's arguments says, for a lane whose whole response has an object there.

    It stays text if it is no JSON object, for the lane to say so to the model. The core's own reader decides.
    """
    call = ToolCall("", "", text)
    return text if call.problem else call.arguments


def kept(value: object) -> Any:
    """Return a detached copy as plain data, whatever it is: what is wrong with it is for the lane to say, as of a whole response.

    Bytes stay bytes, and what is no data at all stays what it is. What is nested too deeply to be read becomes text.
    """
    try:
        return _detached(value)
    except RecursionError:
        return as_text(value)


def _detached(value: object) -> Any:
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)  # an SDK's enum is text with a name
    if value is None or isinstance(value, (bool, int, float, bytes)):
        return value
    if isinstance(value, (list, tuple)):
        return [_detached(entry) for entry in value]
    try:
        fields = members(value)
    except InvalidTypeError:
        return value
    return {str(name): _detached(entry) for name, entry in fields.items()}


def kept_members(value: object, *without: str) -> dict[str, Any]:
    """Return a detached copy of a JSON object's members, each as `kept` does; none where there is no object."""
    return {str(name): kept(entry) for name, entry in members(value).items() if name not in without}


def reason_of(said: object, before: object, runs: Callable[[Any], bool]) -> Any:
    """Return why a response ended, of what an event says and what was said `before`; `None` where nothing was.

    Some servers fill the field in every chunk, with nothing or "null" until they have a reason. And a reason for which calls are
    not run stands, whatever is said behind it: what was cut off does not become whole.

    Args:
        said: The event's reason, of any type.
        before: What this returned of the events before.
        runs: Whether calls are run for a reason.
    """
    reason = kept(said)
    return before if is_blank(reason) or not (before is None or runs(before)) else reason


def weight(value: object) -> int:
    """Return about how many characters a value of JSON's types is long, however deep it is."""
    total, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            left += one.keys()
            left += one.values()
            total += _ENTRY
        elif isinstance(one, (list, tuple)):
            left += one
            total += _ENTRY
        else:
            total += 8 + (len(one) if isinstance(one, (str, bytes)) else 0)
    return total


class Collector(ABC):
    """A lane's stream, put together. The subclass in each lane says what is special about it; all say `StreamCollector`.

    It is synchronous, does no I/O, and is for one response: feed it every event in order. It may be asked at any time.

    Args:
        max_chars: How much of the response is kept, about, in characters. A stream that goes on for ever ends here.

    Raises:
        InvalidTypeError: `max_chars` is not an int.
        InvalidInputError: It is less than 1.
    """

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        if type(max_chars) is not int:
            raise InvalidTypeError(f"max_chars must be a positive int, not {preview(max_chars)}")
        if max_chars < 1:
            raise InvalidInputError(f"max_chars must be at least 1, not {preview(max_chars)}")
        self._max_chars = max_chars
        self._chars = 0
        self._ended: list[int] = []
        self._announced: dict[str, ToolCall] = {}
        self._fixed: set[int] = set()  # the places of those: nothing of them can change any more
        self._stopped = False
        self._broken = False
        self._closed = False
        self._stranger: str | None = None
        self._known = False
        self._error: str | None = None

    # -- what callers use --------------------------------------------------------------------------------------------

    def add(self, event: object) -> list[ToolCall]:
        """Take the stream's next event, and return the calls that may be started now, each once, in the response's order.

        A call is returned once the lane says that it is over, or shows it by going on to something else; it has a name, its
        arguments are one whole JSON object with something in it, and nothing is wrong with it. That goes for the first
        hundred calls; the event that says why the response ended returns the rest. A call without arguments is never
        returned, since nothing tells it from one whose arguments have not come yet. `calls` has all of them.

        It is a head start and no permission: until the response has ended it can still turn out that it was cut off, or
        ended as a refusal, and then none of its calls should have run. So start early only what may run for nothing, such
        as a search, and tell `calls` what you have started.

        Args:
            event: The SDK's object, its `model_dump()`, or the data of a server-sent event as JSON text or parsed. Blank data
                and event types that the lane does not know are passed over. An error of the provider's is kept as `error`, and
                the response has broken off with it, unless it had ended.

        Raises:
            InvalidTypeError: `event` is none of these, or of another lane.
            InvalidInputError: It is not JSON, it begins another response, it adds to a call that was returned, or more than
                `max_chars` came. What was read before stays, and the response counts as broken off, since something of it
                is missing.
        """
        try:
            return self._added(event)
        except BaseException as error:
            self._broken = True
            if isinstance(error, ToolbatchError) or not isinstance(error, Exception):
                raise
            raise InvalidInputError(
                f"the event {preview(event, 200)} can't be read ({type(error).__name__}); the response counts as broken off"
            ) from error

    @property
    def finished(self) -> bool:
        """Whether the provider has said why the response ended, and nothing of it is missing."""
        return self._stopped and not self._broken

    @property
    def error(self) -> str | None:
        """What the provider said of an error in the middle of the stream, bounded; `None` where it said nothing."""
        return self._error

    def calls(self, *, expect: str | None = None, started: Collection[str] = ()) -> list[ToolCall]:
        """Return the calls that the response announces, as the lane's `calls` does for the same response sent whole.

        Ask after the last event. If the stream broke off, by an error, a lost connection or a reader that gave up, all calls
        that had begun are there, each with the problem `response_truncated`: they are answered and never run (P6).

        Args:
            expect: The tool that the request forced, to be checked before anything runs (P7).
            started: Ids of calls that `add` returned and that were started then. However the response ended, these come
                back as `add` returned them: a call that has run is answered with what it did, not with "was not run".

        Raises:
            ProviderMismatchError: The response does not call `expect`, or calls another tool.
            InvalidInputError: `add` never returned a call with one of the ids in `started`.
            InvalidTypeError: Events came, and none of them was this lane's, or what they make is another lane's.
        """
        running = {call_id: self._announced.get(call_id) for call_id in started}
        for call_id, call in running.items():
            if call is None:
                raise InvalidInputError(
                    f"no call {preview(call_id)} was returned by add(), so it can't have been started"
                )
        read = require_choice(self._turn(self.response()).calls(), expect)
        return [running.get(call.id) or call for call in read]

    def response(self) -> dict[str, Any]:
        """Return the response as the server would have sent it whole: new, plain data for the lane's `calls` and `extend`.

        It has the calls, and all that must travel back with them: text, reasoning with its signatures, hosted calls with
        their results, in the response's order. A stream that broke off has `stream_interrupted` for its stop reason, or what
        the lane has for it, so that none of its calls are run; and what of it no server would take back is left out, such as
        reasoning without its signature.

        Raises:
            InvalidTypeError: Events came, and none of them was this lane's.
        """
        if self._stranger is not None and not self._known:
            raise InvalidTypeError(
                f"none of the events was one of this lane's stream; the first was {self._stranger}. "
                "A whole response needs no collector: the lane's calls() reads it"
            )
        return self._whole()

    # -- what a lane fills in ----------------------------------------------------------------------------------------

    @abstractmethod
    def _take(self, event: Any) -> bool:
        """Read one event, and return whether it is one of this lane's."""

    @abstractmethod
    def _whole(self) -> dict[str, Any]:
        """Return the response so far."""

    @abstractmethod
    def _only(self, position: int) -> dict[str, Any]:
        """Return a response of which nothing is left but the calls up to `position`, as if it had ended to have them run.

        Those before it need no more than their ids: they are there so that an id of ours comes out as it will in the end.
        """

    def _is_over(self, position: int) -> bool:
        """Whether nothing can be added to the call at `position` any more, once the stop reason is there."""
        return position >= 0

    @abstractmethod
    def _turn(self, response: dict[str, Any]) -> Turn:
        """Return what the lane reads of a response."""

    # -- what a lane uses --------------------------------------------------------------------------------------------

    def _grow(self, chars: int) -> None:
        """Take note of what is about to be kept.

        Raises:
            InvalidInputError: It is too much.
        """
        self._chars += chars
        if self._chars > self._max_chars:
            raise InvalidInputError(
                f"the response is over max_chars, which is {self._max_chars}: stop reading it; it counts as broken off"
            )

    def _entry(self, *values: object) -> None:
        """Take note of a block, a call or a member that is about to be kept, with all that is in `values`."""
        self._grow(_ENTRY + sum(map(weight, values)))

    def _end(self, positions: Iterable[int]) -> None:
        """Take note of calls that are complete: their positions among the calls of the response."""
        self._ended += [position for position in positions if position < _HEAD_START]

    def _report(self, error: object) -> None:
        """Keep what the provider said of an error, the first of which is the cause. A response that has not ended is broken."""
        self._broken = self._broken or not self._stopped
        if self._error is None:
            message = field(error, "message")
            self._error = cut(as_text(error if message is None else message), _MAX_ERROR_BYTES)

    def _stop_reason(self, reason: Any) -> Any:
        """Return `reason`, or what stands for it if the stream broke off."""
        return INTERRUPTED if reason is None or self._broken else reason

    def _unchanged(self, position: int | None, text: str | None) -> bool:
        """Whether a call was returned already, so that nothing is added to it. Blank text is passed over.

        `None` asks of its id, which stays what it is also where only a later call was returned: of a repeated id the first call
        keeps its own, so an id that comes late could be taken from the call that runs under it.

        Raises:
            InvalidInputError: It was, and there is something to add: the stream contradicts itself.
        """
        if text is None:
            return position is not None and any(place >= position for place in self._fixed)
        if position not in self._fixed:
            return False
        if text.strip():
            raise InvalidInputError(
                f"{preview(text, 200)} was added to call {position + 1} of the response, which was over and has been returned"
            )
        return True

    def _is_new(self) -> bool:
        """Whether no call was returned yet: then facts that ids of ours are made from may still change."""
        return not self._announced

    # -- what is common ----------------------------------------------------------------------------------------------

    def _added(self, event: object) -> list[ToolCall]:
        parsed = _parsed(event)
        if parsed is None:
            return []
        if self._closed and parsed is not _DONE:
            raise InvalidInputError(
                f"the stream has ended, and {preview(event, 200)} came after it: each response needs a new StreamCollector"
            )
        if parsed is _DONE:
            self._closed = True
            return []
        stopped = self._stopped
        if self._take(parsed):
            self._known = True
        elif self._stranger is None:
            self._stranger = preview(event, 200)
        ended, self._ended = self._ended, []
        if self._broken:
            return []
        if self._stopped and not stopped:
            fresh = [row for row in enumerate(self._turn(self._whole()).calls()) if self._is_over(row[0])]
        else:
            fresh = [
                (position, call) for position in ended for call in self._turn(self._only(position)).calls()[position:]
            ]
        return [call for position, call in fresh if self._may_start(position, call)]

    def _may_start(self, position: int, call: ToolCall) -> bool:
        """Whether a call may be returned now; if so, it never is again, and never changes."""
        if call.problem is not None or not call.arguments or position in self._fixed:
            return False
        self._announced[call.id] = call
        self._fixed.add(position)
        return True


def _parsed(event: object) -> object | None:
    """Return an event as an object or a dict; `None` where there is nothing in it."""
    if isinstance(event, (str, bytes, bytearray)):
        text = event.decode() if isinstance(event, (bytes, bytearray)) else event
        text = text.strip()
        if not text:
            return None
        if text == _DONE:
            return _DONE
        try:
            event = json.loads(text)
        except ValueError as error:
            raise InvalidInputError(
                f"{preview(text, 200)} can't be read as JSON ({error}); of a server-sent event, give what is behind 'data:'. "
                "The response counts as broken off"
            ) from error
        if not isinstance(event, dict):
            raise InvalidInputError(f"the data of an event must be a JSON object, not {preview(text, 200)}")
        return event
    if event is None or isinstance(event, (bool, int, float, Sequence, set, frozenset)):
        raise InvalidTypeError(
            f"event must be an SDK's object, a dict or the JSON text of one event, not {preview(event, 200)}"
        )
    return event
