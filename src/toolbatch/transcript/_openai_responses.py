"""OpenAI Responses: calls, outputs and all else are items of one flat list.

Turns are not marked here. A turn is an unbroken run of items that the model made, and its outputs go right behind the run.
The API itself takes an output anywhere behind its call; the law wants it at home, so that a list can be cut and translated.
Once the run holds something signed or ordered (a reasoning item, a compaction, a reference to a stored item) its items are
never moved against each other. Rules and shapes: LANES 2.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, final

from toolbatch.core import encode

from ._fold import folded, joined
from ._matching import Matching
from ._message_lane import MessageLane
from ._openai_chat import text_of
from ._plan import Close, Note
from ._read import Members, entries, field, key_of, members, word
from ._segments import arranged
from ._texts import INTERRUPTED_TEXT, NOT_STARTED_TEXT, is_close_text, told, written
from ._turns import NOWHERE, Call, Result, Turn

__all__ = ["OpenAIResponses", "item_type"]

_OUTPUTS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
}
_RESULTS: Final = frozenset(_OUTPUTS.values())
_NOT_BY_THE_MODEL: Final = frozenset(
    {"mcp_approval_response", "additional_tools", "compaction_trigger", "configuration_update"}
)
_BARRIERS: Final = frozenset({"reasoning", "compaction", "item_reference"})
_LOCAL_SHELL: Final = ("local_shell_call", "local_shell_call_output")
# A computer's output has room for a screenshot and for nothing else, so its close is the smallest picture there is.
_BLANK_PICTURE: Final = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def item_type(get: Callable[[str], Any]) -> str:
    """Return an item's type. Messages and references may leave it out."""
    kind = get("type")
    if kind is None:
        return "message" if get("role") is not None else "item_reference"
    return str.__str__(kind) if isinstance(kind, str) else ""


def _type(item: object) -> str:
    return item_type(Members(item).get)


def _key(kind: str, get: Callable[[str], Any]) -> str | int | None:
    key = key_of(get("call_id"))
    return key_of(get("id")) if key is None and kind in _LOCAL_SHELL else key


def _call_key(kind: str, get: Callable[[str], Any]) -> str | int | None:
    """Return the id of a call that is answered by us; `None` for all else, and for one that no output could name."""
    if kind not in _OUTPUTS or (kind == "tool_search_call" and get("execution") != "client"):
        return None
    return _key(kind, get)


def _order(item: object) -> str:
    get = Members(item).get
    return "content" if _call_key(item_type(get), get) is None else "call"


@final
class OpenAIResponses(MessageLane):
    """The lane."""

    flat: ClassVar[bool] = True
    anywhere: ClassVar[bool] = True

    def read(self, messages: Sequence[Any], seen: Matching) -> None:
        making: _Run | None = None  # the run of the model's items that is being read
        run = NOWHERE  # the turn whose outputs are being read
        for position, item in enumerate(messages):
            get = item.get if type(item) is dict else members(item, position).get
            kind = item_type(get)
            by_model = kind not in _RESULTS and kind not in _NOT_BY_THE_MODEL
            if kind == "message":
                by_model = get("role") == "assistant"
            if making is not None and (not by_model or position == seen.border):
                run, making = making.end(position), None
            if by_model:
                making = making or _Run(position, seen)
                making.add(kind, position, get)
                run = NOWHERE
                continue
            key = _key(kind, get) if kind in _RESULTS else None
            if key is not None:
                seen.answer(key, position, 0, run)
            else:
                run = NOWHERE  # also for an output that reports for no call: it has a name, and no `call_id`
        if making is not None:
            run = making.end(len(messages))
        seen.run = seen.tail = run

    def call_at(self, messages: Sequence[Any], position: int, index: int) -> Any:  # noqa: ARG002
        return messages[position]

    def is_result(self, message: Any) -> bool:
        return _type(message) in _RESULTS

    def is_close(self, result: Result) -> bool:
        output = field(result.source, "output")
        if is_close_text(text_of(output)):
            return True
        kind = field(result.source, "type")
        if kind == "computer_call_output":
            return bool(field(output, "image_url") == _BLANK_PICTURE)
        if kind == "shell_call_output" and isinstance(output, list) and len(output) == 1:
            return is_close_text(field(output[0], "stderr"))
        return isinstance(output, str) and output.startswith('{"error":') and is_close_text(_error_of(output))

    def name(self, call: Call) -> str:
        return word(call.source, "name") or _type(call.source).removesuffix("_call")

    def answer(self, messages: Sequence[Any], call: Call, close: Close) -> Any:  # noqa: ARG002
        kind = _type(call.source)
        item: dict[str, Any] = {"type": _OUTPUTS[kind], "call_id": field(call.source, "call_id")}
        if kind == "local_shell_call":
            return {"type": item["type"], "id": call.key, "call_id": call.key, "output": close.text}
        if kind == "computer_call":
            return {**item, "output": {"type": "computer_screenshot", "image_url": _BLANK_PICTURE}}
        if kind == "shell_call":  # of the two ends that there are, `exit` would claim to know a code
            return {**item, "output": [{"stdout": "", "stderr": close.text, "outcome": {"type": "timeout"}}]}
        if kind == "apply_patch_call":
            return {**item, "status": "failed" if close.failed else "completed", "output": close.text}
        if kind == "tool_search_call":
            return {**item, "execution": "client", "tools": []}
        caller = field(call.source, "caller")
        if field(caller, "type") != "program":
            return {**item, "output": close.text}
        # A program reads its tool's output as JSON, and its caller has to be named again (LANES 2).
        text = encode({"error": close.text}) if close.failed and not close.known else close.text
        return {**item, "output": text, "caller": caller}

    def fold(self, results: Sequence[Result]) -> Any:
        sources = [result.source for result in results]
        outputs = [field(source, "output") for source in sources]
        kind = field(sources[0], "type")
        if kind == "computer_call_output":
            return sources[-1]  # the newest picture: there is room for one
        if kind == "tool_search_output":
            tools = [tool for source in sources for tool in entries(field(source, "tools"))]
            return folded(sources, "tools", tools)
        if kind == "shell_call_output" and all(isinstance(output, list) for output in outputs):
            return folded(sources, "output", [part for output in outputs for part in output])
        return folded(sources, "output", joined(outputs, [False] * len(outputs), _part))

    def loses(self, results: Sequence[Result]) -> bool:
        return len(results) > 1 and field(results[0].source, "type") == "computer_call_output"

    def mended(self, messages: Sequence[Any], turn: Turn) -> dict[int, list[Any]]:
        again = {call.position for call in turn.repeats}
        kept = [messages[position] for position in range(turn.position, turn.end) if position not in again]
        if turn.end - 1 in again:
            # A reasoning item without the call that it led to is refused, so it leaves with it.
            while kept and field(kept[-1], "type") == "reasoning":
                kept.pop()
        if not any(_type(item) in _BARRIERS for item in kept):
            kept = arranged(kept, _order)
        view: dict[int, list[Any]] = {position: [] for position in range(turn.position, turn.end)}
        view[turn.position] = kept
        return view

    def note(self, messages: Sequence[Any], notes: Sequence[Note]) -> Any:  # noqa: ARG002
        entries = [(self.name(note.call), note.call.label, _told(note.result.source)) for note in notes]
        content = told(entries, _part)
        return {"role": "user", "content": [_part(content)] if isinstance(content, str) else content}


class _Run:
    """Items that the model made, one behind the other."""

    __slots__ = ("_barrier", "_keys", "_optional", "_position", "_positions", "_seen", "_untidy")

    def __init__(self, position: int, seen: Matching) -> None:
        self._position = position
        self._seen = seen
        self._keys: list[str | int] = []
        self._positions: list[int] = []
        self._optional: list[int] = []
        self._barrier = False
        self._untidy = False

    def add(self, kind: str, position: int, get: Callable[[str], Any]) -> None:
        key = _call_key(kind, get)
        if key is not None:
            if get("async") is True or get("async_") is True:
                self._optional.append(len(self._keys))
            self._keys.append(key)
            self._positions.append(position)
        elif kind in _BARRIERS:
            self._barrier = True
            self._seen.opaque |= kind == "item_reference"
        elif self._keys:
            self._untidy = True

    def end(self, position: int) -> int:
        if not self._keys:
            return NOWHERE
        turn = self._seen.turn(self._position, self._keys, self._positions)
        self._seen.end(turn, position)
        if self._untidy and not self._barrier:
            self._seen.untidy.add(turn)
        for call in self._optional:
            self._seen.may_wait(turn, call)
        return turn


def _error_of(text: str) -> object:
    # What we wrote is compared to the letter: no need to parse what others wrote.
    for close in (INTERRUPTED_TEXT, NOT_STARTED_TEXT):
        if text == encode({"error": close}):
            return close
    return None


def _told(item: object) -> Any:
    """Return what an output says as content of a user message: text, or parts that such a message takes."""
    output = field(item, "output")
    if field(item, "type") == "computer_call_output" and isinstance(output, Mapping):
        return [{**output, "type": "input_image"}]
    if isinstance(output, list) and all(word(part, "type").startswith("input_") for part in output):
        return output
    return written(output if output is not None else field(item, "tools"))


def _part(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}
