"""Stored conversations: `transcript.check` and `repair` against the repairers that others use, on the same lists.

pydantic-ai repairs messages of its own class; it gets the same conversation in that form, made before the clock starts.
"""

from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any, Final

import toolrepair  # type: ignore[import-untyped]
import turnsafe

from toolbatch import transcript
from toolbatch.transcript import LaneName

from ._measure import Effort, Times, compare
from ._report import Row, Table

__all__ = ["run", "run_growth"]

Json = dict[str, Any]
Work = Callable[[], object]

_SIZES: Final = (100, 1_000, 10_000, 100_000)
_ROUNDS: Final = {10_000: 7, 100_000: 3}
"""Fewer samples where one takes long: a peer takes up to two seconds for 100,000 messages."""

_GROWTH: Final = 3.0
"""What a message may cost in 100,000 against one in 100: memory is further away then, and a quadratic pass would be at 1,000."""


def chat(size: int) -> list[Json]:
    """A lawful chat: two calls every five messages."""
    messages: list[Json] = []
    for turn in range(size // 5):
        ids = [f"call_{turn}_{n}" for n in range(2)]
        function = {"name": "lookup", "arguments": '{"city":"Oslo"}'}
        messages += [
            {"role": "user", "content": "And there?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": i, "type": "function", "function": function} for i in ids],
            },
            *({"role": "tool", "tool_call_id": i, "content": "4 degrees"} for i in ids),
            {"role": "assistant", "content": "It is 4 degrees."},
        ]
    return messages


def messages_api(size: int) -> list[Json]:
    """The same conversation in Anthropic's shape, which has four messages for five."""
    messages: list[Json] = []
    for turn in range(size // 4):
        ids = [f"toolu_{turn}_{n}" for n in range(2)]
        uses = [{"type": "tool_use", "id": i, "name": "lookup", "input": {"city": "Oslo"}} for i in ids]
        results = [{"type": "tool_result", "tool_use_id": i, "content": "4 degrees"} for i in ids]
        messages += [
            {"role": "user", "content": "And there?"},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *uses]},
            {"role": "user", "content": results},
            {"role": "assistant", "content": "It is 4 degrees."},
        ]
    return messages


def broken(messages: list[Json]) -> list[Json]:
    """The same without the message in each tenth place: some results are missing, some answer nothing."""
    return [message for index, message in enumerate(messages) if index % 10 != 3]


_MAKERS: Final[dict[LaneName, Callable[[int], list[Json]]]] = {"openai_chat": chat, "anthropic": messages_api}


def run(effort: Effort) -> Table:
    """Measure `repair` and `check` against the same work of each peer that is installed."""
    sizes = (100,) if effort.quick else _SIZES
    rows = [
        row
        for lane in _MAKERS
        for size in sizes
        for kind, messages in (("lawful", _MAKERS[lane](size)), ("broken", broken(_MAKERS[lane](size))))
        for row in _rows(lane, size, kind, messages, effort)
    ]
    return Table(
        "Stored conversations against other repairers",
        "Ours: `transcript.repair` and `transcript.check`. Theirs: the same of turnsafe, tool-call-repair (which closes calls,\n"
        "as we do) and, where it is installed, pydantic-ai's `repair_messages`. The lists are the same; times are of a message.",
        "at least as fast as the fastest peer, that is a CPU ratio of at most 1.0 against each",
        ("lane", "messages", "list", "work", "peer", "ours, ns: min / median", "theirs, ns: min / median", "CPU ratio"),
        rows,
    )


def run_growth(effort: Effort) -> Table:
    """Measure what a message costs in ever longer lists."""
    sizes = (100, 1_000) if effort.quick else _SIZES
    rows: list[Row] = []
    for lane, make in _MAKERS.items():
        for kind in ("lawful", "broken"):
            short = _listed(kind, make(sizes[0]))
            rows += [_growth(lane, kind, short, _listed(kind, make(size)), effort) for size in sizes[1:]]
    return Table(
        "Long conversations",
        "`transcript.repair` of a long list against as many short ones as hold the same messages. Times are of a message.",
        f"linear from {sizes[0]} to {sizes[-1]:,} messages: a message costs at most {_GROWTH:.0f} times what it costs in a short list",
        ("lane", "messages", "list", "long, ns: min / median", "short, ns: min / median", "times"),
        rows,
    )


def _listed(kind: str, messages: list[Json]) -> list[Json]:
    return messages if kind == "lawful" else broken(messages)


def _growth(lane: LaneName, kind: str, short: list[Json], long: list[Json], effort: Effort) -> Row:
    parts = len(long) // len(short)
    comparison = compare(
        _times(lambda: transcript.repair(long, lane)),
        _times(lambda: [transcript.repair(short, lane) for _ in range(parts)]),
        effort,
        rounds=7 if parts > 100 else None,
    )
    ratio = comparison.ratio * (parts * len(short)) / len(long)
    cells = (_nanos(comparison.ours, len(long)), _nanos(comparison.theirs, parts * len(short)))
    return Row((lane, f"{len(long):,}", kind, *cells, f"{ratio:.2f}"), ratio, _GROWTH)


def _rows(lane: LaneName, size: int, kind: str, messages: list[Json], effort: Effort) -> list[Row]:
    provider = "openai" if lane == "openai_chat" else "anthropic"
    repairers: dict[str, Work] = {
        "turnsafe": lambda: turnsafe.repair(messages, provider=provider),
        "tool-call-repair": lambda: toolrepair.repair(messages, format=provider, strategy="synthesize"),
    }
    if lane == "openai_chat" and find_spec("pydantic_ai") is not None:
        repairers["pydantic-ai"] = _pydantic_ai(messages)
    checkers: dict[str, Work] = {
        "turnsafe": lambda: turnsafe.validate(messages, provider=provider),
        "tool-call-repair": lambda: toolrepair.validate(messages, format=provider),
    }
    rows = []
    for work, ours, peers in (
        ("repair", lambda: transcript.repair(messages, lane), repairers),
        ("check", lambda: transcript.check(messages, lane), checkers),
    ):
        for peer, theirs in peers.items():
            found = compare(_times(ours), _times(theirs), effort, rounds=_ROUNDS.get(size))
            cells = (_nanos(found.ours, len(messages)), _nanos(found.theirs, len(messages)))
            rows.append(Row((lane, f"{size:,}", kind, work, peer, *cells, f"{found.ratio:.2f}"), found.ratio, 1.0))
    return rows


def _times(work: Work) -> Callable[[int], object]:
    def side(times: int) -> None:
        for _ in range(times):
            work()

    return side


def _nanos(times: Times, per: int) -> str:
    """Return the least and the median CPU time a message, in nanoseconds."""
    return f"{min(times.cpu) * 1e9 / per:,.0f} / {median(times.cpu) * 1e9 / per:,.0f}"


def _pydantic_ai(messages: list[Json]) -> Work:
    import pydantic_ai.messages as pai  # type: ignore[import-not-found, unused-ignore]

    history: list[Any] = []
    for message in messages:
        if message["role"] == "user":
            history.append(pai.ModelRequest([pai.UserPromptPart(message["content"])]))
        elif message["role"] == "tool":
            history.append(
                pai.ModelRequest([pai.ToolReturnPart("lookup", message["content"], message["tool_call_id"])])
            )
        else:
            calls: list[Any] = [
                pai.ToolCallPart("lookup", call["function"]["arguments"], call["id"])
                for call in message.get("tool_calls", ())
            ]
            history.append(pai.ModelResponse(calls or [pai.TextPart(message["content"])]))
    return lambda: pai.repair_messages(history)
