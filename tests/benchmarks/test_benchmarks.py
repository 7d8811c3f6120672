"""The benchmarks run, compare like with like, and report ratios. No test is about time: figures are for `make bench`."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import _report, core_alone, peers
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks._measure import LOOPS, QUICK, Comparison, Effort, Times, compare
from benchmarks._report import PARTS, Row, Table
from benchmarks._sides import announce, by_hand, require_equal, with_toolbatch

RATIO = re.compile(r"^\d+\.\d+$")


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A results file of the test's own."""
    path = tmp_path / "RESULTS.md"
    monkeypatch.setattr(_report, "RESULTS", path)
    return path


def a_table(*rows: Row) -> Table:
    """A table with one column."""
    return Table("Title", "Explanation.", "at most 1.0", ("figure",), rows)


@pytest.mark.parametrize("size", [1, 8, 64])
@pytest.mark.parametrize("loop", LOOPS)
def test_both_sides_of_a_whole_batch_make_the_same_messages(loop: str, size: int) -> None:
    """ToolBatch and the hand-written task group answer the same calls with the same bytes."""
    calls = announce(size)
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        ours, theirs = runner.run(with_toolbatch(calls)), runner.run(by_hand(calls))
    assert ours == theirs
    assert [message["tool_call_id"] for message in ours] == [call.id for call in calls]


@pytest.mark.parametrize("size", [1, 8, 64])
def test_both_sides_of_the_core_make_the_same_messages(size: int) -> None:
    """The closure and the dict answer the same calls with the same bytes."""
    calls = announce(size)
    assert core_alone.with_core(calls) == core_alone.with_dict(calls)
    assert len(core_alone.with_core(calls)) == size


def test_sides_that_differ_stop_a_benchmark() -> None:
    """A ratio of different work would be worth nothing."""
    with pytest.raises(AssertionError, match="different messages"):
        require_equal([1], [2])


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_benchmark_reports_its_figures(name: str) -> None:
    """Each has rows as wide as its head, its goal, and for each row a positive figure and a verdict; all but latencies and
    growth are ratios within one run.
    """
    table = BENCHMARKS[name](QUICK)
    assert table.rows
    assert all(len(row.cells) == len(table.columns) for row in table.rows)
    assert all(row.figure > 0 for row in table.rows)
    assert all(row.verdict in ("met", "NOT MET", "no goal") for row in table.rows)
    assert f"Goal: {table.goal}." in table.markdown()
    ratios = [index for index, column in enumerate(table.columns) if column.endswith("ratio")]
    assert bool(ratios) == (name not in ("deadline", "transcript-growth"))
    assert all(RATIO.match(row.cells[index]) for row in table.rows for index in ratios)


def test_the_anthropic_runner_gives_the_same_results() -> None:
    """The one peer that this environment has too; its figure is the only one, so it is held to the goal."""
    pytest.importorskip("anthropic")
    (table, typed) = peers.run(QUICK, ["Anthropic's runner"])
    assert typed.rows
    framework, bare = table.rows
    assert framework.goal == 0.1
    assert bare.goal is None
    assert RATIO.match(framework.cells[-1])


def test_sides_run_in_turns_and_who_goes_first_alternates() -> None:
    """Whatever else the machine does, it does to both."""
    ran: list[str] = []

    def side(name: str) -> Callable[[int], None]:
        return lambda _times: ran.append(name)

    compare(side("a"), side("b"), Effort(rounds=3, sample=0.0, many=1, quick=True))
    assert ran == ["a", "b", "a", "b", "b", "a", "a", "b"]


def test_the_ratio_is_of_the_medians_of_cpu_time() -> None:
    """One sample that was disturbed does not move it."""
    comparison = Comparison(Times([1.0, 2.0, 90.0], [3.0]), Times([4.0, 4.0, 4.0], [2.0]))
    assert (comparison.ratio, comparison.ratio_of_best, comparison.wall_ratio) == (0.5, 0.25, 1.5)


@pytest.mark.parametrize(
    ("figure", "goal", "verdict"), [(1.0, 1.0, "met"), (1.01, 1.0, "NOT MET"), (9.0, None, "no goal")]
)
def test_a_goal_is_met_up_to_its_bound(figure: float, goal: float | None, verdict: str) -> None:
    """The verdict is said plainly."""
    row = Row((f"{figure}",), figure, goal)
    assert row.verdict == verdict
    assert f"| {verdict}" in a_table(row).markdown()


def test_each_part_of_the_results_is_written_by_itself(results: Path) -> None:
    """Writing one part leaves the other as it is, and writing it again replaces it."""
    _report.write("peers", "figure two")
    _report.write("core", "figure one")
    _report.write("core", "figure three")
    written = results.read_text(encoding="utf-8")
    assert 0 < written.find("figure three") < written.find("figure two")
    assert "figure one" not in written


def test_each_benchmark_has_its_part_of_the_results() -> None:
    """So that what one of them writes is not lost."""
    assert (*BENCHMARKS, "peers") == PARTS


def test_a_page_says_when_and_where(results: Path) -> None:
    """Date, Python, system, CPUs and versions stand below the tables."""
    text = _report.page([a_table(Row(("1.00",), 1.0, 1.0))], ["anyio"], "a command")
    assert re.search(
        r"Measured by `a command` on \d{4}-\d\d-\d\d \d\d:\d\d UTC, with \w+ 3\.\d+\.\d+ on .*CPUs\); anyio \d", text
    )
    assert "## Title" in text
    assert not results.exists()


def test_the_command_runs_what_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the table and which goals are met."""
    main(["--quick", "core"])
    printed = capsys.readouterr().out
    assert printed.startswith("## The core alone")
    assert "oal" in printed.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["no such"], ["--write", "--quick"]])
def test_the_command_refuses(arguments: list[str], results: Path) -> None:
    """A name that there isn't, and results that would be half or meaningless."""
    with pytest.raises(SystemExit):
        main(arguments)
    assert not results.exists()
