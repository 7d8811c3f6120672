"""Gemini's `streamGenerateContent`."""

import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any, Final, final

from toolbatch.core import InvalidInputError, preview

from ._gemini_turn import read_turn
from ._gemini_wire import either, function_call
from ._plain import field, items, members
from ._read import Turn
from ._stream import DEFAULT_MAX_CHARS, Collector, kept, kept_members, reason_of, text_of_buffer, weight

__all__ = ["StreamCollector"]

_PART: Final = 1024  # what a part weighs beside its text
_HEAD: Final = (
    ("modelVersion", "model_version"),
    ("usageMetadata", "usage_metadata"),
    ("promptFeedback", "prompt_feedback"),
    ("createTime", "create_time"),
)
_CANDIDATE: Final = (
    ("finishMessage", "finish_message"),
    ("citationMetadata", "citation_metadata"),
    ("groundingMetadata", "grounding_metadata"),
    ("urlContextMetadata", "url_context_metadata"),
    ("safetyRatings", "safety_ratings"),
)
_CALL: Final = ("functionCall", "function_call")
_GOES_ON: Final = ("FINISH_REASON_UNSPECIFIED", "CONTINUATION")
_STEP: Final = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\[(?:'([^']*)'|"([^"]*)")\]""")
_MAX_STEPS: Final = 64
_MISSING: Final = object()


class _Part:
    """A part: text that may go on, or anything else that came whole.

    Attributes:
        fields: Its members but for its text.
        text: Its text so far; `None` where it has none.
    """

    __slots__ = ("fields", "text")

    def __init__(self, fields: dict[str, Any], text: StringIO | None = None) -> None:
        self.fields = fields
        self.text = text

    def goes_on(self, fields: Mapping[str, Any]) -> bool:
        """Whether text with these members beside it goes on with this part's. A signature keeps to the part it came with."""
        own, more = _said(self.fields), _said(fields)
        is_like = bool(own.pop("thought", None)) is bool(more.pop("thought", None))
        return self.text is not None and is_like and not (own or more)

    def whole(self) -> dict[str, Any]:
        """Return it as it stands in a whole response."""
        return {**kept_members(self.fields), **({} if self.text is None else {"text": text_of_buffer(self.text)})}


class _Call:
    """A call, whole or put together from the pieces that Vertex AI sends on request.

    Attributes:
        facts: Its members but for its arguments.
        is_open: Whether more of it is to come.
    """

    __slots__ = ("_args", "_fault", "facts", "is_open")

    def __init__(self, call: object) -> None:
        self.facts = kept_members(call, "args", "partialArgs", "partial_args", "willContinue", "will_continue")
        self.is_open = False
        self._args: Any = None
        self._fault: str | None = None
        self.take(call)

    def take(self, call: object) -> None:
        """Add what a piece has of the arguments."""
        args = field(call, "args")
        if args is not None:
            self._args = kept(args) if self._args is None else {**members(self._args), **kept_members(args)}
        for piece in items(either(call, "partialArgs", "partial_args")):
            value = _value(piece)
            if value is not _MISSING:
                self._put(either(piece, "jsonPath", "json_path"), value)
        self.is_open = bool(either(call, "willContinue", "will_continue"))

    def _put(self, path: object, value: object) -> None:
        steps = _steps(path)
        self._args = {} if self._args is None else self._args
        if steps is None or not _put(self._args, steps, value):
            self._fault = f"the value at jsonPath {preview(path)} does not fit the others"

    def whole(self) -> dict[str, Any]:
        """Return it as it stands in a whole response. What can't be put together is text, for the lane to refuse."""
        more = {"willContinue": True} if self.is_open else {}
        args = self._fault or _built(self._args)
        return {**kept_members(self.facts), **({} if args is None else {"args": args}), **more}


class _CallPart(_Part):
    """A part that is a call."""

    __slots__ = ("call",)

    def __init__(self, fields: dict[str, Any], call: _Call) -> None:
        super().__init__(fields)
        self.call = call

    def whole(self) -> dict[str, Any]:
        return {**super().whole(), "functionCall": self.call.whole()}


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _value(piece: object) -> object:
    """Return what a piece says, or `_MISSING` if it says nothing."""
    for names in (("stringValue", "string_value"), ("numberValue", "number_value"), ("boolValue", "bool_value")):
        value = either(piece, *names)
        if value is not None:
            return int(value) if isinstance(value, float) and value.is_integer() else kept(value)
    # As JSON a null is null, or not there; a piece without a value that goes on has none yet.
    is_null = either(piece, "nullValue", "null_value") is not None or not either(piece, "willContinue", "will_continue")
    return None if is_null else _MISSING


def _steps(path: object) -> list[str | int] | None:
    """Return a JSON path's steps, or `None` if it is none that names one place."""
    if not isinstance(path, str):
        return None
    rest = path.removeprefix("$")
    rest = rest if rest[:1] in (".", "[") else f".{rest}"
    steps: list[str | int] = []
    end = 0
    for step in _STEP.finditer(rest):
        if step.start() != end or len(steps) == _MAX_STEPS:
            return None
        end = step.end()
        steps.append(
            int(step[2]) if step[2] else next(name for name in (step[1], step[3], step[4]) if name is not None)
        )
    return steps if steps and end == len(rest) else None


def _put(tree: Any, steps: list[str | int], value: object) -> bool:
    """Put a value at its place, or text behind the text that is there. Return whether there is such a place."""
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(tree, dict) and isinstance(step, str):
            there = tree.get(step, _MISSING)
        elif isinstance(tree, list) and isinstance(step, int) and step <= len(tree):
            there = tree[step] if step < len(tree) else _MISSING
        else:
            return False
        if following is not None and there is not _MISSING:
            tree = there
            continue
        new: Any = {} if isinstance(following, str) else [] if following is not None else value
        if isinstance(new, str):
            text = there if isinstance(there, StringIO) else StringIO()
            text.write(f"{there}{new}" if isinstance(there, str) else new)
            new = text
        if isinstance(tree, list) and there is _MISSING:
            tree.append(new)
        else:
            tree[step] = new
        tree = new
    return True


def _built(tree: Any) -> Any:
    if isinstance(tree, StringIO):
        return text_of_buffer(tree)
    if isinstance(tree, dict):
        return {name: _built(entry) for name, entry in tree.items()}
    if isinstance(tree, list):
        return [_built(entry) for entry in tree]
    return tree


@final
class StreamCollector(Collector):
    """Puts a stream of Gemini's together.

        collector = gemini.StreamCollector()
        async for chunk in await client.aio.models.generate_content_stream(...):
            collector.add(chunk)
        calls = collector.calls()
        ...
        gemini.extend(contents, collector.response(), batch.result)

    An event is a `GenerateContentResponse`, or the data of a server-sent event. As in `calls`, only the first candidate is read.

    A call is one part of one chunk, and over then; arguments that Vertex AI sends in pieces (`partialArgs`) are over when a
    piece comes without `willContinue`. The same call twice, with its id, is one call.

    Text goes on in one part as long as no signature comes with it: "don't merge one part with a signature with another part
    without a signature". Some models say `finishReason` in every chunk, so what comes after one is read as well.

    A stream that goes on for ever ends at `max_chars`, about, in characters, as in every lane (`Collector`).
    """

    def __init__(self, *, max_chars: int = DEFAULT_MAX_CHARS) -> None:
        super().__init__(max_chars=max_chars)
        self._id: str | None = None
        self._head: dict[str, Any] = {}
        self._candidate: dict[str, Any] | None = None
        self._reason: Any = None
        self._parts: list[_Part] = []
        self._calls: list[_CallPart] = []
        self._seen: dict[str, _Call] = {}

    def _take(self, event: Any) -> bool:
        error, candidates = field(event, "error"), items(field(event, "candidates"))
        if error:
            self._report(error)
        head = _last_said(event, _HEAD)
        if not candidates and not head:
            return bool(error)
        self._head |= head
        first = [one for one in candidates if field(one, "index") in (None, 0)][:1]
        parts = [part for one in first for part in items(field(field(one, "content"), "parts"))]
        self._take_id(either(event, "responseId", "response_id"), parts)
        for candidate in first:
            self._candidate = {**(self._candidate or {}), **_last_said(candidate, _CANDIDATE)}
            for part in parts:
                self._take_part(part)
            reason = either(candidate, "finishReason", "finish_reason")
            self._reason = reason_of(reason, self._reason, _may_go_on)
            self._stopped = self._reason is not None and str(self._reason).upper() not in _GOES_ON
        return True

    def _take_id(self, response_id: object, parts: list[Any]) -> None:
        if not isinstance(response_id, str) or not response_id:
            return
        if self._id is None and self._is_new():
            self._id = response_id
        elif self._stopped and parts and response_id != self._id:
            raise InvalidInputError(
                f"{preview(response_id)} is another response than {preview(self._id)}, which has ended: "
                "each response needs a new StreamCollector"
            )

    def _take_part(self, part: object) -> None:
        call, text = function_call(part), field(part, "text")
        fields = kept_members(part, "text", *_CALL)
        if call is not None:
            self._take_call(call, fields)
            return
        self._grow(weight(fields))
        if not isinstance(text, str):
            self._parts.append(_Part(fields))
            self._grow(_PART)
            return
        buffer = self._parts[-1].text if self._parts and self._parts[-1].goes_on(fields) else None
        if buffer is None:
            self._grow(_PART)
            buffer = StringIO()
            self._parts.append(_Part(fields, buffer))
        self._grow(len(text))
        buffer.write(text)

    def _take_call(self, call: object, fields: dict[str, Any]) -> None:
        self._grow(_PART + weight(kept(call)) + weight(fields))
        name, call_id = field(call, "name"), field(call, "id")
        last = self._calls[-1] if self._calls else None
        if last is not None and last.call.is_open and (not name or (call_id and call_id == last.call.facts.get("id"))):
            last.call.take(call)
            last.fields = {**fields, **_said(last.fields)}
        else:
            begun = _CallPart(fields, _Call(call))
            if self._is_needless(begun.call):
                return
            last = begun
            self._parts.append(last)
            self._calls.append(last)
        if not last.call.is_open:
            self._end([len(self._calls) - 1])

    def _is_needless(self, call: _Call) -> bool:
        """Whether there is nothing in it, as where the end of one in pieces is said twice, or it is one that has come before."""
        whole = call.whole()
        if not whole:
            return True
        call_id = whole.get("id")
        if not isinstance(call_id, str) or not call_id:
            return False
        return self._seen.setdefault(call_id, call) is not call and self._seen[call_id].whole() == whole

    def _whole(self) -> dict[str, Any]:
        candidates = []
        if self._candidate is not None or not self._head:
            content = {"role": "model", "parts": [part.whole() for part in self._parts]}
            facts = {"content": content, "finishReason": self._stop_reason(self._reason), "index": 0}
            candidates = [{**facts, **kept_members(self._candidate)}]
        head = kept_members(self._head)
        return {**({} if self._id is None else {"responseId": self._id}), **head, "candidates": candidates}

    def _only(self, position: int) -> dict[str, Any]:
        *before, last = self._calls[: position + 1]
        stubs = [{"functionCall": {"id": part.call.facts.get("id")}} for part in before]
        content = {"role": "model", "parts": [*stubs, last.whole()]}
        return {"responseId": self._id, "candidates": [{"content": content, "finishReason": "STOP"}]}

    def _turn(self, response: dict[str, Any]) -> Turn:
        return read_turn(response)


def _may_go_on(reason: object) -> bool:
    return str(reason).upper() in ("STOP", *_GOES_ON)


def _last_said(source: object, names: Sequence[tuple[str, str]]) -> dict[str, Any]:
    said = {camel: either(source, camel, snake) for camel, snake in names}
    return {name: kept(value) for name, value in said.items() if value is not None}
