"""The report as one HTML page that needs nothing else: no network, no other file."""

import base64
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib.resources import files
from statistics import median
from typing import Any, Final

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from toolbatch.observe import CallRecord, RunRecord

from ._report_chart import (
    axis_svg,
    defs_svg,
    left_out_words,
    mark_svg,
    overview_svg,
    part_name,
    row_svg,
    swatch_svg,
)
from ._report_view import KINDS, STATUSES, BatchView, Gap, View, status_of, took
from ._report_words import STATUS_WORDS, details, duration, moment, shortened, visible

__all__ = ["chart_css", "notes", "page"]

_FOLDER: Final = files("toolbatch.cli")
_MOST_TOOLS: Final = 200
"""How many tools have a line of their own in the table and the filter; a model may make names up."""


def chart_css() -> str:
    """Return the colours of the chart, light and dark."""
    return _read("_report_chart.css")


def page(view: View, title: str) -> str:
    """Return the page. What the file says reaches it escaped, by the template or as JSON text."""
    style, script = f"{chart_css()}{_read('_report_page.css')}", _read("_report_page.js")
    # Everything is escaped unless it was drawn by us.
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    calls = [call for batch in view.run.batches for call in batch.calls]
    names = sorted({row.call.tool_name for row in view.rows})[:_MOST_TOOLS]
    found = Counter(map(status_of, calls))
    counts = {name: found[name] for name in STATUSES}
    numbers = {name: number for number, name in enumerate(names)}
    return environment.from_string(_read("_report_page.html")).render(
        title=visible(title),
        heading=_heading(view),
        notes=notes(view),
        style=Markup(style),  # noqa: S704  ours
        script=Markup(script),  # noqa: S704  ours
        style_hash=_hash(style),
        script_hash=_hash(script),
        defs=_drawn(defs_svg()),
        kinds=[{"swatch": _drawn(swatch_svg(kind)), "words": words} for kind, words in KINDS.items()],
        statuses=[
            {"name": name, "mark": _drawn(mark_svg(name)), "words": STATUS_WORDS[name], "count": count}
            for name, count in counts.items()
            if count
        ],
        tools=_tools(calls),
        names=[shortened(name) for name in names],
        overview=_drawn(overview_svg(view)),
        parts=[_part(part, number, numbers) for number, part in enumerate(view.parts)],
        facts=_json(
            [details(row, part_name(part)) for part in view.parts if isinstance(part, BatchView) for row in part.rows]
        ),
    )


def notes(view: View) -> list[str]:
    """Return what a reader must know of what is missing."""
    run: RunRecord = view.run
    found = []
    if view.shown < view.calls:
        found.append(
            f"{view.shown:,} of {view.calls:,} calls are shown: those that went wrong or late, then the slowest. "
            "Counts are of all."
        )
    if run.cut_off:
        found.append("It was not ended in order: its process died, or goes on. What has no outcome had none by then.")
    if run.unreadable:
        found.append(f"{_records(run.unreadable)} could not be read, as a crash leaves them.")
    if run.unknown:
        found.append(f"{_records(run.unknown)} of a later version left out.")
    if run.dropped:
        found.append(f"{_records(run.dropped)} were lost by whoever wrote them.")
    return found


def _heading(view: View) -> str:
    batches = len(view.run.batches)
    text = f"{view.calls:,} call{_s(view.calls)} in {batches:,} batch{'' if batches == 1 else 'es'}"
    if view.axis is None:
        return text
    return f"{text}, {duration(view.axis.end - view.axis.start)} from {moment(view.axis.start or None)}"


def _part(part: BatchView | Gap, number: int, numbers: Mapping[str, int]) -> dict[str, Any]:
    grid = f"g{number}"
    found: dict[str, Any] = {
        "name": part_name(part),
        "about": _about(part),
        "axis": _drawn(axis_svg(part.axis, grid)) if isinstance(part, BatchView) else "",
        "left_out": left_out_words(part) if part.left_out else "",
        "rows": [],
    }
    if isinstance(part, BatchView):
        found["rows"] = [
            {
                "tool": numbers.get(row.call.tool_name, ""),
                "status": row.status,
                "late": int(row.call.late is not None),
                "name": shortened(row.call.tool_name or "?"),
                "id": shortened(row.call.call_id),
                "mark": _drawn(mark_svg(row.status)),
                "words": STATUS_WORDS[row.status],
                "took": _length(took(row.call)),
                "bars": _drawn(row_svg(row, part.axis, grid)),
            }
            for row in part.rows
        ]
    return found


def _about(part: BatchView | Gap) -> str:
    words = [moment(part.axis.start or None)]
    if isinstance(part, BatchView):
        record = part.record
        closed = "no close on record" if record.closed_at is None else f"closed: {record.code or record.status or '?'}"
        words += [f"{len(record.calls):,} call{_s(len(record.calls))}", shortened(closed)]
        words += [f"run {shortened(record.run_id)}"] if record.run_id else []
    return ", ".join(words)


def _tools(calls: Sequence[CallRecord]) -> list[dict[str, Any]]:
    """Return a line a tool, those with most calls first."""
    by_name: defaultdict[str, list[CallRecord]] = defaultdict(list)
    for call in calls:
        by_name[call.tool_name].append(call)
    ranked = sorted(by_name.items(), key=lambda one: (-len(one[1]), one[0]))
    lines = [_tool(shortened(name or "?"), own) for name, own in ranked[:_MOST_TOOLS]]
    rest = [call for _, own in ranked[_MOST_TOOLS:] for call in own]
    return [*lines, _tool(f"{len(ranked) - _MOST_TOOLS} others", rest)] if rest else lines


def _tool(name: str, calls: Sequence[CallRecord]) -> dict[str, Any]:
    lengths = [length for call in calls if (length := took(call)) is not None]
    succeeded = sum(call.status == "succeeded" for call in calls)
    return {
        "name": name,
        "calls": len(calls),
        "succeeded": succeeded,
        "others": len(calls) - succeeded,
        "late": sum(call.late is not None for call in calls),
        "median": _length(median(lengths) if lengths else None),
        "slowest": _length(max(lengths, default=None)),
    }


def _json(value: object) -> Markup:
    """Return JSON that ends no script element, whatever texts are in it."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704  no character of markup is left in it


def _drawn(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704  drawn by us, with texts escaped


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _read(name: str) -> str:
    return _FOLDER.joinpath(name).read_text(encoding="utf-8")


def _length(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def _records(number: int) -> str:
    return f"{number:,} record{_s(number)}"
