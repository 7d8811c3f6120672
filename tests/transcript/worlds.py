"""Conversations made at random, and broken at random: the same story, told in any lane.

A story is a list of *acts*: somebody speaks, a model answers with text and calls, a result is recorded. A lawful story is
broken by taking acts away, repeating them and moving them, and only then written in a lane's shape. Every text is a token of its own, so
that a test can tell whether it is still there.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hypothesis import strategies as st

from toolbatch.transcript import INTERRUPTED_TEXT, LaneName

Json = dict[str, Any]

UNIQUE_IDS: tuple[LaneName, ...] = ("anthropic", "bedrock", "gemini", "langchain")


@dataclass(frozen=True)
class Said:
    """A user's message."""

    text: str


@dataclass(frozen=True)
class Turn:
    """A model's answer: blocks in order, each `text`, `thinking` or a call's id."""

    blocks: tuple[tuple[str, str], ...]

    @property
    def calls(self) -> list[str]:
        return [value for kind, value in self.blocks if kind == "call"]


@dataclass(frozen=True)
class Recorded:
    """A result of the call with this id."""

    id: str
    text: str
    rich: bool = False
    failed: bool = False


Act = Said | Turn | Recorded


@dataclass
class Story:
    """A lawful story, its broken form, and the members that no provider knows, if there are any."""

    lawful: list[Act]
    broken: list[Act]
    strange: bool = False
    tokens: list[str] = field(default_factory=list)


@st.composite
def stories(draw: Any, lane: LaneName, *, strange: bool = False) -> Story:
    """A lawful story of some turns, and what random damage makes of it."""
    number = count()
    reused = ["call_0", "call_1", "call_2"]
    acts: list[Act] = []
    for _ in range(draw(st.integers(1, 4))):
        acts.append(Said(f"said-{next(number)}."))
        size = draw(st.integers(0, 3))
        ids = (
            [f"call_{next(number)}" for _ in range(size)]
            if lane in UNIQUE_IDS or draw(st.booleans())
            else reused[:size]
        )
        blocks = [("thinking", f"think-{next(number)}.")] if lane != "openai_chat" and draw(st.booleans()) else []
        blocks += [("text", f"text-{next(number)}.")] if draw(st.booleans()) or not ids else []
        acts.append(Turn((*blocks, *(("call", call_id) for call_id in ids))))
        for call_id in draw(st.permutations(ids)):
            rich, failed = draw(st.booleans()), draw(st.booleans())
            acts.append(Recorded(call_id, f"result-{next(number)}.", rich, failed))
    broken = list(acts)
    for _ in range(draw(st.integers(0, 6))):
        draw(st.sampled_from(DAMAGES))(draw, broken, number)
    return Story(acts, [Said("first."), *broken], strange)


def _lose(draw: Any, acts: list[Act], _: Any) -> None:
    """A result, or a whole turn, is lost."""
    if acts:
        del acts[draw(st.integers(0, len(acts) - 1))]


def _move(draw: Any, acts: list[Act], _: Any) -> None:
    """A result is recorded elsewhere."""
    results = [index for index, act in enumerate(acts) if isinstance(act, Recorded)]
    if results:
        act = acts.pop(draw(st.sampled_from(results)))
        acts.insert(draw(st.integers(0, len(acts))), act)


def _repeat(draw: Any, acts: list[Act], number: Any) -> None:
    """A second result of a call is recorded, or a close."""
    results = [act for act in acts if isinstance(act, Recorded)]
    if results:
        text = INTERRUPTED_TEXT if draw(st.booleans()) else f"result-{next(number)}."
        again = replace(draw(st.sampled_from(results)), text=text, rich=False)
        acts.insert(draw(st.integers(0, len(acts))), again)


def _interject(draw: Any, acts: list[Act], number: Any) -> None:
    """A user speaks at any time."""
    acts.insert(draw(st.integers(0, len(acts))), Said(f"said-{next(number)}."))


def _trail(draw: Any, acts: list[Act], number: Any) -> None:
    """Text is recorded behind or between calls."""
    turns = [index for index, act in enumerate(acts) if isinstance(act, Turn) and act.calls]
    if turns:
        index = draw(st.sampled_from(turns))
        turn = acts[index]
        assert isinstance(turn, Turn)
        blocks = list(turn.blocks)
        blocks.insert(draw(st.integers(0, len(blocks))), ("text", f"text-{next(number)}."))
        acts[index] = Turn(tuple(blocks))


def _stutter(draw: Any, acts: list[Act], _: Any) -> None:
    """A call is announced twice in one turn."""
    turns = [index for index, act in enumerate(acts) if isinstance(act, Turn) and act.calls]
    if turns:
        index = draw(st.sampled_from(turns))
        turn = acts[index]
        assert isinstance(turn, Turn)
        acts[index] = Turn((*turn.blocks, ("call", draw(st.sampled_from(turn.calls)))))


DAMAGES: list[Callable[[Any, list[Act], Any], None]] = [_lose, _move, _repeat, _interject, _trail, _stutter]


# -- writing a story in a lane's shape --------------------------------------------------------------------------------------


class Writer:
    """Writes acts as messages. With `strange`, every entry gets a member of its own that no provider knows."""

    def __init__(self, *, strange: bool = False) -> None:
        self._numbers = count() if strange else None
        self.strange_keys: list[str] = []

    def odd(self, entry: Json) -> Json:
        """Give an entry its strange member."""
        if self._numbers is not None:
            key = f"x_{next(self._numbers)}"
            self.strange_keys.append(key)
            entry[key] = True
        return entry

    def write(self, lane: LaneName, acts: list[Act]) -> list[Json]:
        """Write a story."""
        messages: list[Json] = []
        for act in acts:
            entries = _WRITERS[lane](self, act)
            blocks = entries[0].get("content") if lane in ("anthropic", "bedrock") else entries[0].get("parts")
            joins = isinstance(act, Recorded) and messages and _results_only(messages[-1])
            if joins and isinstance(blocks, list):
                messages[-1]["parts" if lane == "gemini" else "content"] += blocks
            else:
                messages += entries
        return messages


def _results_only(message: Json) -> bool:
    blocks = message.get("content") or message.get("parts")
    return isinstance(blocks, list) and all(
        isinstance(block, dict)
        and (block.get("type") == "tool_result" or "toolResult" in block or "functionResponse" in block)
        for block in blocks
    )


def _chat(w: Writer, act: Act) -> list[Json]:
    if isinstance(act, Said):
        return [w.odd({"role": "user", "content": act.text})]
    if isinstance(act, Recorded):
        content: Any = [{"type": "text", "text": act.text}] if act.rich else act.text
        return [w.odd({"role": "tool", "tool_call_id": act.id, "content": content})]
    message: Json = {"role": "assistant", "content": " ".join(v for kind, v in act.blocks if kind != "call") or None}
    if act.calls:
        function = {"name": "f", "arguments": "{}"}
        message["tool_calls"] = [{"id": i, "type": "function", "function": function} for i in act.calls]
    return [w.odd(message)]


def _responses(w: Writer, act: Act) -> list[Json]:
    if isinstance(act, Said):
        return [w.odd({"role": "user", "content": act.text})]
    if isinstance(act, Recorded):
        output: Any = [{"type": "input_text", "text": act.text}] if act.rich else act.text
        return [w.odd({"type": "function_call_output", "call_id": act.id, "output": output})]
    items: list[Json] = []
    for kind, value in act.blocks:
        if kind == "thinking":
            items.append({"type": "reasoning", "id": f"rs_{value}", "summary": []})
        elif kind == "text":
            part = {"type": "output_text", "text": value, "annotations": []}
            shape = {"type": "message", "id": f"msg_{value}", "role": "assistant", "status": "completed"}
            items.append({**shape, "content": [part]})
        else:
            items.append(w.odd({"type": "function_call", "call_id": value, "name": "f", "arguments": "{}"}))
    return items if items[-1]["type"] != "reasoning" else [*items, {"role": "assistant", "content": "text."}]


def _anthropic(w: Writer, act: Act) -> list[Json]:
    if isinstance(act, Said):
        return [{"role": "user", "content": act.text}]
    if isinstance(act, Recorded):
        content: Any = [{"type": "text", "text": act.text}] if act.rich else act.text
        mark = {"is_error": True} if act.failed else {}
        return [
            {
                "role": "user",
                "content": [w.odd({"type": "tool_result", "tool_use_id": act.id, "content": content, **mark})],
            }
        ]
    blocks: list[Json] = []
    for kind, value in act.blocks:
        if kind == "thinking":
            blocks.append({"type": "thinking", "thinking": value, "signature": "s"})
        elif kind == "text":
            blocks.append(w.odd({"type": "text", "text": value}))
        else:
            blocks.append(w.odd({"type": "tool_use", "id": value, "name": "f", "input": {}}))
    return [w.odd({"role": "assistant", "content": _speaking(blocks, {"type": "text", "text": "text."})})]


def _bedrock(w: Writer, act: Act) -> list[Json]:
    if isinstance(act, Said):
        return [{"role": "user", "content": [{"text": act.text}]}]
    if isinstance(act, Recorded):
        content: list[Json] = [{"text": act.text}]
        mark = {"status": "error"} if act.failed else {}
        return [
            {
                "role": "user",
                "content": [w.odd({"toolResult": w.odd({"toolUseId": act.id, "content": content, **mark})})],
            }
        ]
    blocks: list[Json] = []
    for kind, value in act.blocks:
        if kind == "thinking":
            blocks.append({"reasoningContent": {"reasoningText": {"text": value, "signature": "s"}}})
        elif kind == "text":
            blocks.append(w.odd({"text": value}))
        else:
            blocks.append(w.odd({"toolUse": {"toolUseId": value, "name": "f", "input": {}}}))
    return [w.odd({"role": "assistant", "content": _speaking(blocks, {"text": "text."})})]


def _gemini(w: Writer, act: Act) -> list[Json]:
    if isinstance(act, Said):
        return [w.odd({"role": "user", "parts": [{"text": act.text}]})]
    if isinstance(act, Recorded):
        response = {"error" if act.failed or act.text == INTERRUPTED_TEXT else "output": act.text}
        if act.rich:
            response = {"output": [act.text]}  # type: ignore[dict-item]
        return [
            {"role": "user", "parts": [w.odd({"functionResponse": {"name": "f", "id": act.id, "response": response}})]}
        ]
    parts: list[Json] = []
    for kind, value in act.blocks:
        if kind == "call":
            parts.append(w.odd({"functionCall": {"name": "f", "id": value, "args": {}}}))
        else:
            parts.append({"text": value, "thought": True} if kind == "thinking" else w.odd({"text": value}))
    return [w.odd({"role": "model", "parts": _speaking(parts, {"text": "text."})})]


def _langchain(w: Writer, act: Act) -> list[Json]:
    if isinstance(act, Said):
        return [w.odd({"type": "human", "content": act.text})]
    if isinstance(act, Recorded):
        content: Any = [{"type": "text", "text": act.text}] if act.rich else act.text
        status = "error" if act.failed else "success"
        return [w.odd({"type": "tool", "content": content, "tool_call_id": act.id, "name": "f", "status": status})]
    content = []
    for kind, value in act.blocks:
        if kind == "call":
            content.append({"type": "tool_use", "id": value, "name": "f", "input": {}})
        elif kind == "thinking":
            content.append({"type": "thinking", "thinking": value, "signature": "s"})
        else:
            content.append({"type": "text", "text": value})
    calls = [{"name": "f", "args": {}, "id": call_id, "type": "tool_call"} for call_id in act.calls]
    return [w.odd({"type": "ai", "content": content, "tool_calls": calls})]


def _speaking(blocks: list[Json], text: Json) -> list[Json]:
    """No message ends with thinking alone."""
    last = blocks[-1] if blocks else {}
    thinks = last.get("type") == "thinking" or "reasoningContent" in last or last.get("thought")
    return [*blocks, text] if thinks or not blocks else blocks


_WRITERS: dict[str, Callable[[Writer, Act], list[Json]]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "gemini": _gemini,
    "langchain": _langchain,
}
