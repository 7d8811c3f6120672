"""Writes the tables of docs/lanes.md by asking the lanes; with `--check`, fails if the page does not show what they do.

python -m tools.render_lanes            # write the tables into the page
python -m tools.render_lanes --check    # exit 1 if one is out of date; CI runs this

A table stands between two marks, and all else on the page is written by hand. Nothing in the tables is: each cell is what a
lane did with a response, an id or a part that it was given.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from toolbatch.core import Data, Image, Snapshot, ToolCall, ToolCallClosure
from toolbatch.providers import (
    _bedrock_media,
    _gemini_media,
    anthropic,
    bedrock,
    cohere,
    gemini,
    gemini_interactions,
    mcp,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)
from toolbatch.providers._content import CARRIED, Place, carries
from tools.render_table import check, markdown_table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "lanes.md"

Json = dict[str, Any]
PICTURE = Image(Data(b"\x89PNG\r\n\x1a\n", "image/png"))
LONGEST = 512  # what the core takes
CELLS: Mapping[Place, str] = {"nested": "in it", "after": "behind", "text": "as text"}


class Wire(NamedTuple):
    """One form of response that a lane reads.

    Attributes:
        lane: The lane's name.
        module: The lane.
        respond: Makes a response of calls with these ids.
        form: Which of the lane's forms it is, where it has several.
        conversation: Whether it has a turn to append.
    """

    lane: str
    module: ModuleType
    respond: Callable[[Sequence[object]], object]
    form: str = ""
    conversation: bool = True


def _chat(ids: Sequence[object]) -> Json:
    function = {"name": "f", "arguments": "{}"}
    return {"role": "assistant", "tool_calls": [{"id": i, "type": "function", "function": function} for i in ids]}


def _ollama(ids: Sequence[object]) -> Json:
    return {"role": "assistant", "tool_calls": [{"id": i, "function": {"name": "f", "arguments": {}}} for i in ids]}


def _blocks(ids: Sequence[object]) -> Json:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in ids]}


def _gemini(ids: Sequence[object]) -> Json:
    return {"role": "model", "parts": [{"functionCall": {"id": i, "name": "f", "args": {}}} for i in ids]}


def _bedrock(ids: Sequence[object]) -> Json:
    return {"role": "assistant", "content": [{"toolUse": {"toolUseId": i, "name": "f", "input": {}}} for i in ids]}


def _items(ids: Sequence[object]) -> list[Json]:
    return [{"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"} for i in ids]


def _steps(ids: Sequence[object]) -> list[Json]:
    return [{"type": "function_call", "id": i, "name": "f", "arguments": {}} for i in ids]


def _entries(ids: Sequence[object]) -> list[Json]:
    return [{"type": "function.call", "tool_call_id": i, "name": "f", "arguments": "{}"} for i in ids]


def _requests(ids: Sequence[object]) -> list[Json]:
    return [{"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": "f"}} for i in ids]


WIRES = (
    Wire("openai_chat", openai_chat, _chat),
    Wire("openai_responses", openai_responses, _items),
    Wire("anthropic", anthropic, _blocks),
    Wire("gemini", gemini, _gemini),
    Wire("gemini_interactions", gemini_interactions, _steps),
    Wire("bedrock", bedrock, _bedrock),
    Wire("mistral", mistral, _chat, "chat"),
    Wire("mistral", mistral, _entries, "conversations"),
    Wire("cohere", cohere, _chat),
    Wire("ollama", ollama, _ollama),
    Wire("mcp", mcp, _requests, "tools/call", conversation=False),
    Wire("mcp", mcp, _blocks, "sampling"),
)

OPTIONS: Mapping[str, Mapping[str, Place]] = {
    '`gemini`, `media="after"`': carries(_gemini_media.carrier("after", behind=True)),
    '`bedrock`, `media="after"`': carries(_bedrock_media.Room().carrier("after")),
    '`bedrock`, `media="text"`': carries(_bedrock_media.Room().carrier("text")),
    '`mistral`, `media="nested"`': carries(mistral._carrier("nested")),
    '`cohere`, `media="after"`': carries(cohere._carrier("after")),
    "`cohere`, `documents=True`": carries(cohere._carrier(documents=True)),
}
"""What a lane carries if it is asked to."""


def _ended(calls: Sequence[ToolCall], end: Callable[[ToolCallClosure, Any, str], object]) -> Snapshot:
    closure = ToolCallClosure()
    handle = closure.begin(calls).handle
    for call in calls:
        end(closure, handle, call.id)
    sealed = closure.seal(handle)
    assert isinstance(sealed, Snapshot)
    return sealed


def succeeded(calls: Sequence[ToolCall], value: object) -> Snapshot:
    """Return a snapshot of calls whose tools all returned `value`."""
    return _ended(calls, lambda closure, handle, call_id: closure.succeed(handle, call_id, value))


def failed(calls: Sequence[ToolCall]) -> Snapshot:
    """Return a snapshot of calls that all failed."""
    return _ended(calls, lambda closure, handle, call_id: closure.fail(handle, call_id, "no"))


def error_mark(wire: Wire) -> str:
    """Return what tells a failure from a success that says the same."""
    calls = wire.module.calls(wire.respond(["abcdefghi"]))
    said = openai_chat.results(failed(calls))[0]["content"]  # a lane without a mark: the text alone
    (failure,) = wire.module.results(failed(calls))
    (success,) = wire.module.results(succeeded(calls, said))
    return _only_in(failure, success, "") or "none: its text says so"


def _only_in(failure: Json, success: Json, path: str) -> str:
    for key, value in failure.items():
        other = success.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            found = _only_in(value, other, f"{path}{key}.")
            if found:
                return found
        elif key not in success or value != other:
            return f"`{path}{key}`" if isinstance(value, dict) else f"`{path}{key}: {json.dumps(value)}`"
    return ""


def _kept(wire: Wire, wire_id: str) -> bool:
    return wire.module.calls(wire.respond([wire_id]))[0].wire_id is None


def id_rule(wire: Wire) -> str:
    """Return which of a provider's ids stay as they are: each length was tried, and each character."""
    lengths = [size for size in range(1, LONGEST + 1) if _kept(wire, "x" * size)]
    others = [char for char in map(chr, range(33, 127)) if not char.isalnum()]
    kept = [char for char in others if _kept(wire, f"abcd{char}efgh")]
    marks = " ".join(f"`{char}`" for char in kept)
    letters = "any text" if kept == others else f"letters, digits, {marks}" if kept else "letters and digits"
    if len(lengths) == 1:
        return f"{letters}, {lengths[0]} of them"
    return letters if lengths[-1] == LONGEST else f"{letters}, at most {lengths[-1]}"


def missing_id(wire: Wire) -> str:
    """Return what is on the wire where the provider sent no id."""
    if not wire.conversation:
        return "-"
    response = wire.respond([None])
    (call,) = wire.module.calls(response)
    return "ours" if json.dumps(_turn(wire, response, "x")).count(call.id) == 2 else "none"


def reused_id(wire: Wire) -> str:
    """Return what becomes of an id that an earlier turn had."""
    if not wire.conversation:
        return "-"
    messages: list[Any] = []
    for _ in range(2):
        response = wire.respond(["abcdefghi"])
        wire.module.extend(messages, response, succeeded(wire.module.calls(response), "x"))
    return "stays" if json.dumps(messages).count("abcdefghi") == 4 else "ours"


def _turn(wire: Wire, response: object, value: object) -> list[Any]:
    messages: list[Any] = []
    wire.module.extend(messages, response, succeeded(wire.module.calls(response), value))
    return messages


def placement(wire: Wire) -> str:
    """Return what stands behind one another in a turn of two calls whose tools show a picture."""
    response = wire.respond(["abcdefghi", "ihgfedcba"])
    if wire.conversation:
        entries = _turn(wire, response, PICTURE)
    else:
        entries = wire.module.results(succeeded(wire.module.calls(response), PICTURE))
    return " · ".join(map(_described, entries))


def _described(entry: Json) -> str:
    head = entry.get("role") or entry.get("type") or "CallToolResult"
    blocks = next((entry[key] for key in ("content", "parts", "output", "result") if key in entry), None)
    kinds = [_kind(block) for block in blocks] if isinstance(blocks, list) else []
    return f"{head} ({', '.join(kinds)})" if kinds else str(head)


def _kind(block: Json) -> str:
    return str(block["type"]) if "type" in block else next(iter(block))


def lanes_table() -> str:
    """Return the table of the lanes' rules: a row a form of response."""
    rows = []
    for wire in WIRES:
        name = f"`{wire.lane}`" + (f", {wire.form}" if wire.form else "")
        rows.append([name, error_mark(wire), id_rule(wire), missing_id(wire), reused_id(wire), placement(wire)])
    head = [
        "lane",
        "mark of a failure",
        "ids that stay",
        "no id",
        "an earlier turn's id",
        "two calls that show a picture",
    ]
    return markdown_table(head, rows)


def parts_table() -> str:
    """Return the table of what each lane carries: a row a sort of part, a column a lane."""
    lanes = {wire.lane: wire.module for wire in WIRES}
    rows = [[sort, *(CELLS[module.CARRIES[sort]] for module in lanes.values())] for sort in CARRIED]
    return markdown_table(["part", *(f"`{lane}`" for lane in lanes)], rows)


def options_table() -> str:
    """Return the table of what changes with an option: a row an option."""
    rows = []
    for option, places in OPTIONS.items():
        usual = next(wire.module.CARRIES for wire in WIRES if f"`{wire.lane}`" in option)
        changed: dict[Place, list[str]] = {}
        for sort, way in places.items():
            if usual[sort] != way:
                changed.setdefault(way, []).append(sort)
        rows.append([option, *("; ".join(changed.get(way, ["-"])) for way in CELLS)])
    return markdown_table(["option", *(f"then {cell}" for cell in CELLS.values())], rows)


TABLES: Mapping[str, Callable[[], str]] = {"lanes": lanes_table, "parts": parts_table, "options": options_table}


def render(page: str) -> str:
    """Return the page with each table as it should be.

    Raises:
        ValueError: A table's marks are missing.
    """
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: written by tools/render_lanes.py -->", f"<!-- end of {name} -->"
        place = re.search(f"{re.escape(begin)}.*?{re.escape(end)}", page, re.DOTALL)
        if place is None:
            raise ValueError(f"the page has no place for the table {name!r}: {begin} ... {end}")
        page = f"{page[: place.start()]}{begin}\n\n{table()}\n\n{end}{page[place.end() :]}"
    return page


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the tables; return the exit status."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/lanes.md by asking the lanes.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a table is out of date")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page (default: %(default)s)")
    options = parser.parse_args(arguments)
    page: Path = options.page
    expected = render(page.read_text(encoding="utf-8"))
    if options.check:
        problem = check(page, expected)
        if problem is not None:
            print(problem, file=sys.stderr)
        return 0 if problem is None else 1
    page.write_text(expected, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
