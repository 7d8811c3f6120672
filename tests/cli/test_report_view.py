"""What a report shows: the right calls, on axes that hold them, and every call counted once."""

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.runs import BEGUN, any_run, batch, call, done, full_run, large_run, run
from toolbatch.cli._report_view import KINDS, Axis, BatchView, Gap, Row, Segment, View, make_view, took
from toolbatch.cli._report_words import details, duration, moment, sentence, shortened, visible
from toolbatch.observe import RunRecord


def view_of(record: RunRecord, limit: int = 1000) -> View:
    """A view whose counts were checked: every call is shown or counted, in its batch, in order."""
    view = make_view(record, limit)
    assert view.shown == len(list(view.rows)) <= limit
    left_out = sum(sum(part.left_out.values()) for part in view.parts)
    assert view.calls == view.shown + left_out == sum(len(one.calls) for one in record.batches)
    batches = sum(part.batches if isinstance(part, Gap) else 1 for part in view.parts)
    assert batches == len(record.batches)
    for part in view.parts:
        if isinstance(part, BatchView):
            places = {id(one): place for place, one in enumerate(part.record.calls)}
            shown = [places[id(row.call)] for row in part.rows]
            assert shown == sorted(shown)
    assert not any(isinstance(first, Gap) and isinstance(second, Gap) for first, second in pairwise(view.parts))
    return view


def rows_of(record: RunRecord) -> dict[str, Row]:
    """The rows by call id."""
    return {row.call.call_id: row for row in view_of(record).rows}


def spans(row: Row) -> list[tuple[str, float, float]]:
    """Its segments, in seconds after the run's begin."""
    return [(part.kind, round(part.start - BEGUN, 6), round(part.end - BEGUN, 6)) for part in row.segments]


def test_what_a_call_did_is_told_in_order() -> None:
    """Waiting, approval, running, closed and late, each for its own time."""
    rows = rows_of(full_run())
    assert spans(rows["call_a"]) == [("waiting", 0, 0.01), ("running", 0.01, 0.4), ("closed", 0.4, 1.2)]
    assert spans(rows["call_c"]) == [
        ("waiting", 0, 0.01),
        ("running", 0.01, 1.0),
        ("closed", 1.0, 1.2),
        ("late", 1.0, 2.5),
    ]
    assert spans(rows["call_e"]) == [
        ("waiting", 4, 4.02),
        ("approval", 4.02, 5.2),
        ("running", 5.2, 5.9),
        ("closed", 5.9, 6),
    ]
    assert spans(rows["call_f"]) == [("waiting", 4, 4.02), ("approval", 4.02, 5.0), ("closed", 5.0, 6)]
    assert [row.status for row in rows.values()].count("open") == 2


def test_what_has_no_end_is_open() -> None:
    """Of a call whose end nobody knows, a segment goes on to the edge and says that it does."""
    rows = rows_of(full_run())
    late = rows["call_j"].segments[-1]
    assert (late.kind, late.is_open, late.length) == ("late", True, None)
    assert sentence(rows["call_j"]) == "running for 300 ms; may have run on after its outcome; cancelled"
    running = rows["call_m"].segments[-1]
    assert (running.kind, running.is_open, running.length) == ("running", True, None)
    waiting = rows["call_n"].segments[-1]
    assert (waiting.kind, waiting.is_open) == ("waiting", True)


def test_one_call_that_runs_on_for_hours_squeezes_nobody() -> None:
    """The axis follows a late call a little way, and then cuts it; its whole length is still told."""
    long = call("b", "t", started_at=0, settled_at=1, ended_at=7201, status="timed_out", completion="settled")
    (row_a, row_b) = view_of(run(batch(1, 0, 1, done("a", "t", 0, 1), long))).rows
    (part,) = view_of(run(batch(1, 0, 1, done("a", "t", 0, 1), long))).parts
    assert part.axis.end - part.axis.start == 2.5
    late = row_b.segments[-1]
    assert (late.kind, late.is_open, late.length, late.end) == ("late", True, 7200, BEGUN + 2.5)
    assert "; ran on for 2 h after its outcome; timed out" in sentence(row_b)
    assert took(row_b.call) == took(row_a.call) == 1


def test_what_was_taken_over_did_nothing_here() -> None:
    """An outcome of an earlier batch has no bar."""
    (row,) = view_of(run(batch(1, 0, 1, call("a", "t", status="succeeded", settled_at=0, resumed=True)))).rows
    assert row.segments == ()
    assert ("Taken over", "its outcome is an earlier batch's") in details(row, "Generation 1")


def test_what_matters_most_is_shown_where_not_all_can_be() -> None:
    """Calls that went wrong or came late first, then the slowest; the rest is counted where it would have stood."""
    record = large_run(10, 1000)
    view = view_of(record, 150)
    statuses = Counter(row.status for row in view.rows)
    assert statuses == {"failed": 100, "succeeded": 50}
    slowest = sorted(
        (took(one) or 0 for part in record.batches for one in part.calls if one.status == "succeeded"), reverse=True
    )
    assert min(took(row.call) or 0 for row in view.rows if row.status == "succeeded") == slowest[49]
    late = done("late", "t", 0, 0.1, late=full_run().batches[0].calls[2].late)
    assert [row.call.call_id for row in view_of(run(batch(1, 0, 1, late, done("slow", "t", 0, 1))), 1).rows] == ["late"]


def test_batches_of_which_nothing_is_shown_take_one_line() -> None:
    """Ten thousand batches of one call are no ten thousand headings."""
    view = view_of(large_run(10_000, 1), 50)
    assert len(view.parts) <= 101
    gaps = [part for part in view.parts if isinstance(part, Gap)]
    assert sum(gap.batches for gap in gaps) == 9950
    assert len(view_of(run(*(batch(number, 0, 1) for number in range(3))), 10).parts) == 3
    assert len(view_of(run(*(batch(number, 0, 1) for number in range(30))), 10).parts) == 1


def test_a_batch_without_any_time_stretches_nothing() -> None:
    """It is shown, at an unknown time, and the axis of the whole run is that of the others."""
    view = view_of(run(batch(1, None, None, call("a", "t")), batch(2, 5, 6, done("b", "t", 5, 6))))
    assert view.axis == (BEGUN + 5, BEGUN + 6)
    assert [part.axis.start for part in view.parts] == [0, BEGUN + 5]


@given(any_run(), st.integers(1, 12))
@settings(deadline=None)
def test_whatever_is_known_can_be_shown(record: RunRecord, limit: int) -> None:
    """Times in any order, or none, and any text: segments stay on their axis, and everything can be said."""
    view = view_of(record, limit)
    for part in view.parts:
        check_axis(part.axis)
        assert view.axis is not None
        assert part.axis.start < part.axis.end <= view.axis.end
        assert view.axis.start <= part.axis.start or part.axis.start == 0
        if isinstance(part, BatchView):
            for row in part.rows:
                for segment in row.segments:
                    check_segment(segment, part.axis)
                assert sentence(row).isprintable()
                for label, text in details(row, "Generation 1"):
                    assert label
                    assert visible(text, keep="\n\t") == text
            assert moment(part.axis.start)


def check_axis(axis: Axis) -> None:
    """It has a length, and a handful of round ticks within it."""
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 5
    assert ticks[0] == 0
    assert ticks == sorted(set(ticks))
    assert ticks[-1] <= (axis.end - axis.start) * 1.0001
    assert axis.share(axis.start) == 0
    assert axis.share(axis.end) == 1


def check_segment(segment: Segment, axis: Axis) -> None:
    """It lies on its axis, and its length is not negative."""
    assert segment.kind in KINDS
    assert axis.start <= segment.start <= segment.end <= axis.end
    assert segment.length is None or segment.length >= segment.end - segment.start - 1e-4
    assert segment.is_open or segment.length is not None


def test_lengths_of_time_are_said_as_people_say_them() -> None:
    """About three digits, in the unit that fits."""
    said = [
        duration(seconds) for seconds in (0, 4e-6, 0.0012, 0.25, 0.9994, 1, 59.94, 61, 120, 3600, 3661, 90_061, 1e10)
    ]
    assert said == [
        "0", "4 \u00b5s", "1.2 ms", "250 ms", "999 ms", "1 s", "59.9 s", "1 min 1 s", "2 min", "1 h", "1 h 1 min", "25 h 1 min", "2,777,777 h 46 min",
    ]  # fmt: skip
    assert moment(BEGUN + 0.25) == "2027-01-15 08:00:00.250 UTC"
    assert moment(250_000_000_000).startswith("9892-")
    assert moment(None) == "at an unknown time"


def test_what_cant_be_seen_is_written_out() -> None:
    """Control characters, bidi marks and separators are shown by their number; letters, accents and emoji stay."""
    assert visible("plain text") == "plain text"
    assert visible("caf\u00e9 \U0001f469\u200d\U0001f52c e\u0301") == "caf\u00e9 \U0001f469\u200d\U0001f52c e\u0301"
    assert (
        visible("a\u202eb\x00\u2028\ufeff")
        == "a\u27e8U+202E\u27e9b\u27e8U+0000\u27e9\u27e8U+2028\u27e9\u27e8U+FEFF\u27e9"
    )
    assert visible("a\nb\tc", keep="\n\t") == "a\nb\tc"
    assert visible("a\nb") == "a\u27e8U+000A\u27e9b"
    assert shortened("x" * 500) == "x" * 119 + "\u2026"
