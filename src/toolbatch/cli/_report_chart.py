"""Drawing a report with drawsvg: bars on a time axis, each kind in its own colour, pattern and height.

Nothing that a file says is put into an attribute here: drawsvg escapes text, and not attributes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import drawsvg as dw  # type: ignore[import-untyped]

from ._report_view import KINDS, STATUSES, Axis, BatchView, Gap, Kind, Row, View
from ._report_words import STATUS_WORDS, duration, moment, sentence, shortened

__all__ = [
    "Place",
    "axis_svg",
    "defs_svg",
    "left_out_words",
    "mark_svg",
    "overview_svg",
    "part_name",
    "row_svg",
    "standalone_svg",
    "swatch_svg",
]

ROW: Final = 22
_BAR: Final[dict[Kind, tuple[int, int]]] = {
    "waiting": (8, 6),
    "approval": (6, 10),
    "running": (4, 14),
    "closed": (10, 2),
    "late": (4, 14),
}
"""Where a bar is in its row: its top and its height, so that they differ without colour too."""

_MARKS: Final = {
    "succeeded": "M-4 0L-1 3.5L4.5-3.5",
    "failed": "M-4-4L4 4M-4 4L4-4",
    "timed_out": "M-4-4.5H4L-4 4.5H4Z",
    "cancelled": "M-4-4H4V4H-4Z",
    "denied": "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0-4.5 0M-3-3L3 3",
    "not_started": "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0",
    "pending": "M0-5L5 0L0 5L-5 0Z",
    "open": "M-3-2A3 3 0 1 1 0 1V2.5M0 4.5V5",
}
"""How an outcome is marked: a tick, a cross, an hourglass, ..."""


class _Link(dw.DrawingParentElement):  # type: ignore[misc]  # drawsvg has no types
    TAG_NAME = "a"


class Place(NamedTuple):
    """Where the times of an axis are: in percent of what is drawn into, or in pixels.

    Attributes:
        axis: The time axis.
        left: Pixels before it; for percent there are none.
        width: Its pixels, or `None` for percent.
    """

    axis: Axis
    left: float = 0
    width: float | None = None

    def x(self, at: float) -> str:
        """Return the place of a time."""
        return self.length(self.axis.share(at), self.left)

    def length(self, share: float, left: float = 0) -> str:
        """Return the length of a share of the axis."""
        return f"{share * 100:.3f}%" if self.width is None else f"{left + share * self.width:.2f}"


def defs_svg() -> str:
    """Return an invisible drawing that holds the patterns and marks to which the others refer."""
    drawing = dw.Drawing(0, 0, viewBox=None, class_="defs", aria_hidden="true", focusable="false")
    _define(drawing)
    return _text(drawing)


def row_svg(row: Row, axis: Axis, grid: str) -> str:
    """Return the bars of one call, as wide as there is room; `grid` is the id of its batch's lines."""
    drawing = dw.Drawing("100%", ROW, viewBox=None, role="img", aria_label=sentence(row))
    drawing.append(dw.Use(grid, 0, 0))
    drawing.extend(_bars(row, Place(axis)))
    return _text(drawing)


def axis_svg(axis: Axis, grid: str) -> str:
    """Return an axis with its ticks, and the lines that its rows refer to."""
    drawing = dw.Drawing("100%", ROW, viewBox=None, aria_hidden="true")
    drawing.append_def(_grid(Place(axis), ROW, grid))
    drawing.extend(_ticks(Place(axis), 15))
    return _text(drawing)


def swatch_svg(kind: Kind) -> str:
    """Return a sample of a kind of bar, for the legend."""
    drawing = dw.Drawing(28, ROW, viewBox=None, aria_hidden="true")
    drawing.append(_bar(kind, "2", "24"))
    return _text(drawing)


def mark_svg(status: str) -> str:
    """Return an outcome's mark."""
    drawing = dw.Drawing(16, ROW, viewBox=None, aria_hidden="true")
    drawing.append(dw.Use(f"m-{status}", 8, 11))
    return _text(drawing)


def overview_svg(view: View) -> str:
    """Return the whole run on one axis: a bar a batch, in as many lines as overlap at once, at most six."""
    if view.axis is None:
        return ""
    place = Place(view.axis)
    lanes = [float("-inf")] * 6
    bars: list[Any] = []
    used = 1
    for number, part in enumerate(view.parts):
        end = part.own_end
        lane = next((at for at, before in enumerate(lanes) if before <= part.axis.start), 5)
        lanes[lane] = max(lanes[lane], end)
        used = max(used, lane + 1)
        width = max(place.axis.share(end) - place.axis.share(part.axis.start), 0.002)
        shape = dw.Rectangle(
            place.x(part.axis.start), 2 + lane * 14, place.length(width), 11, class_=f"batch {_temper(part)}"
        )
        shape.append_title(_part_title(part))
        link = _Link(xlink__href=f"#b{number}", aria_label=_part_title(part))
        link.append(shape)
        bars.append(link)
    drawing = dw.Drawing("100%", used * 14 + 20, viewBox=None, role="group", aria_label="The whole run")
    drawing.append(_grid(place, used * 14 + 2, None))
    drawing.extend(bars)
    drawing.extend(_ticks(place, used * 14 + 16))
    return _text(drawing)


def standalone_svg(view: View, title: str, css: str) -> str:
    """Return the whole chart as one drawing that needs no page around it."""
    left, width, right = 230, 760, 210
    lines = sum(2 + len(part.rows) if isinstance(part, BatchView) else 2 for part in view.parts)
    height = 70 + lines * ROW
    drawing = dw.Drawing(left + width + right, height, role="img")
    drawing.append_title(f"Tool calls of {title}")
    drawing.append_css(css)
    _define(drawing)
    drawing.append(dw.Rectangle(0, 0, left + width + right, height, class_="paper"))
    drawing.append(dw.Text(shortened(title), 16, 12, 24, class_="strong"))
    drawing.extend(_legend(12, 46))
    top = 62
    for part in view.parts:
        top = _draw_part(drawing, part, Place(part.axis, left, width), top)
    return _text(drawing, header=dw.drawing.XML_HEADER)


def part_name(part: BatchView | Gap) -> str:
    """Return what a batch is called, or several."""
    if isinstance(part, BatchView):
        number = part.record.generation
        return "Batch" if number is None else f"Generation {number}"
    first, last = part.first.generation, part.last.generation
    return (
        f"{part.batches} more batches"
        if None in (first, last) or part.batches == 1
        else f"Generations {first} to {last}"
    )


def _draw_part(drawing: Any, part: BatchView | Gap, place: Place, top: int) -> int:
    """Draw a batch under what is there, and return where the next one begins."""
    right = place.left + (place.width or 0) + 14
    drawing.append(dw.Text(part_name(part), 12, 12, top + 15, class_="strong"))
    drawing.append(dw.Text(moment(part.axis.start or None), 11, right, top + 15, class_="dim"))
    rows: Sequence[Row] = part.rows if isinstance(part, BatchView) else ()
    grid = dw.Group(transform=f"translate(0 {top + ROW})")
    grid.append(_grid(place, ROW * max(1, len(rows)), None))
    drawing.append(grid)
    drawing.extend(_ticks(place, top + 15))
    top += ROW
    for row in rows:
        group = dw.Group(transform=f"translate(0 {top})")
        group.append(dw.Text(shortened(row.call.tool_name or row.call.call_id, 32), 12, 12, 15))
        group.extend(_bars(row, place))
        words = STATUS_WORDS[row.status] if row.call.late is None else f"{STATUS_WORDS[row.status]}, then late"
        group.append(dw.Text(words, 12, right, 15))
        drawing.append(group)
        top += ROW
    if part.left_out:
        drawing.append(dw.Text(left_out_words(part), 12, 12, top + 15, class_="dim"))
    return top + ROW


def left_out_words(part: BatchView | Gap) -> str:
    """Return how many calls are not shown, and how they ended."""
    number = sum(part.left_out.values())
    counts = ", ".join(f"{part.left_out[name]:,} {STATUS_WORDS[name]}" for name in STATUSES if part.left_out.get(name))
    return f"{number:,} more call{'' if number == 1 else 's'}, not shown: {counts}"


def _define(drawing: Any) -> None:
    """Define the patterns and marks."""
    dots = dw.Pattern(5, 6, id="p-waiting")
    dots.extend([dw.Rectangle(0, 0, 5, 6, class_="waiting-back"), dw.Circle(2.5, 3, 1.2, class_="waiting-ink")])
    stripes = dw.Pattern(6, 10, id="p-approval")
    stripes.extend(
        [dw.Rectangle(0, 0, 6, 10, class_="approval-back"), dw.Rectangle(0, 0, 3, 10, class_="approval-ink")]
    )
    hatch = dw.Pattern(7, 7, id="p-late", patternTransform="rotate(45)")
    hatch.extend([dw.Rectangle(0, 0, 7, 7, class_="late-back"), dw.Rectangle(0, 0, 3, 7, class_="late-ink")])
    cross = dw.Pattern(8, 8, id="p-trouble")
    cross.append(dw.Rectangle(0, 0, 8, 8, class_="trouble-back"))
    cross.append(dw.Path("M0 0L8 8M8 0L0 8", class_="trouble-ink"))
    for pattern in (dots, stripes, hatch, cross):
        drawing.append_def(pattern)
    for name, path in _MARKS.items():
        mark = dw.Group(id=f"m-{name}")
        mark.extend([dw.Path(path, class_="halo"), dw.Path(path, class_=f"mark s-{name}")])
        drawing.append_def(mark)
    arrow = dw.Group(id="m-on")
    arrow.append(dw.Path("M-7-5L-1 0L-7 5", class_="on"))
    drawing.append_def(arrow)


def _bars(row: Row, place: Place) -> Iterator[Any]:
    """Draw what a call did, and mark its outcome."""
    for part in row.segments:
        share = max(place.axis.share(part.end) - place.axis.share(part.start), 0.002)
        yield _bar(part.kind, place.x(part.start), place.length(share))
        if part.is_open:
            yield dw.Use("m-on", place.x(part.end), 11)
    settled = row.call.settled_at
    if settled is not None and settled <= place.axis.end:
        yield dw.Use(f"m-{row.status}", place.x(settled), 11)


def _bar(kind: Kind, x: str, width: str) -> Any:
    top, height = _BAR[kind]
    return dw.Rectangle(x, top, width, height, class_=kind)


def _grid(place: Place, height: int, name: str | None) -> Any:
    group = dw.Group(**({} if name is None else {"id": name}))
    for tick in place.axis.ticks():
        x = place.x(place.axis.start + tick)
        group.append(dw.Rectangle(x, 0, 1, height, class_="grid"))
    return group


def _ticks(place: Place, bottom: int) -> Iterator[Any]:
    for tick in place.axis.ticks():
        x = place.x(place.axis.start + tick)
        late = place.axis.share(place.axis.start + tick) > 0.93
        yield dw.Text(duration(tick), 11, x, bottom, class_="tick", text_anchor="end" if late else "start")


def _legend(x: float, y: float) -> Iterator[Any]:
    for kind, words in KINDS.items():
        group = dw.Group(transform=f"translate({x} {y - 15})")
        group.append(_bar(kind, "0", "24"))
        group.append(dw.Text(words, 12, 30, 15))
        yield group
        x += 46 + 6.4 * len(words)


def _temper(part: BatchView | Gap) -> str:
    """Return how a batch looks from afar."""
    if isinstance(part, Gap):
        return "gap"
    return "plain" if all(call.status == "succeeded" for call in part.record.calls) else "trouble"


def _part_title(part: BatchView | Gap) -> str:
    calls = len(part.record.calls) if isinstance(part, BatchView) else sum(part.left_out.values())
    took = duration(max(0.0, part.own_end - part.axis.start))
    return f"{part_name(part)}: {calls} call{'' if calls == 1 else 's'}, {took}"


def _text(drawing: Any, header: str = "") -> str:
    text: str = drawing.as_svg(header=header)
    return text
