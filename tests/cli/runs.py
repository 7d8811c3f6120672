"""Runs that the tests of reports share: one that shows everything, and generated ones."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from toolbatch.observe import BatchRecord, CallRecord, LateRecord, RunRecord

BEGUN = 1_800_000_000.0


def call(call_id: str, tool: str, **known: Any) -> CallRecord:
    """A call; its times are given in seconds after the run's begin."""
    times = ("admitted_at", "asked_at", "started_at", "settled_at", "ended_at")
    moved = {name: value + BEGUN if name in times and value is not None else value for name, value in known.items()}
    return CallRecord(call_id=call_id, tool_name=tool, **moved)


def done(call_id: str, tool: str, start: float, end: float, **known: Any) -> CallRecord:
    """A call whose code ran from `start` to `end`, and had its outcome with that."""
    usual = {"status": "succeeded", "completion": "settled", "cancellation": "none", "execution_id": f"x-{call_id}"}
    return call(
        call_id, tool, started_at=start, settled_at=end, ended_at=end, duration=end - start, **{**usual, **known}
    )


def batch(
    generation: int | None, begun: float | None, closed: float | None, *calls: CallRecord, **known: Any
) -> BatchRecord:
    """A batch; its times are given in seconds after the run's begin."""
    usual: dict[str, Any] = {
        "log": "l1",
        "run_id": "demo",
        "status": None if closed is None else "complete",
        "code": None,
    }
    begun_at, closed_at = (None if at is None else at + BEGUN for at in (begun, closed))
    return BatchRecord(generation=generation, calls=calls, begun_at=begun_at, closed_at=closed_at, **{**usual, **known})


def run(*batches: BatchRecord, **known: int) -> RunRecord:
    """A run."""
    usual = {"lines": 9, "unreadable": 0, "unknown": 0, "dropped": 0, "cut_off": 0}
    return RunRecord(batches=batches, **{**usual, **known})


LATE = LateRecord(
    at=BEGUN + 2.5,
    late_by=1.5,
    observed_status="success",
    answered_as="timeout",
    reason="run_closed",
    content="the page",
)


def full_run() -> RunRecord:
    """Every kind of segment and nearly every outcome, over four batches; the last one was cut off by a crash."""
    first = batch(
        1, 0, 1.2,
        done("call_a", "search", 0.01, 0.4, progress=3, last_progress="page 3", arguments='{"q": "cats"}', content="3 hits"),
        done("call_b", "fetch", 0.01, 0.7, status="failed", code="tool_error", exception_type="HTTPError"),
        call("call_c", "render", started_at=0.01, settled_at=1.0, ended_at=2.5, duration=2.49, status="timed_out", code="timeout", timeout=1.0,
             completion="settled", cancellation="requested", side_effect_state="unknown", late=LATE),
        done("call_d", "search", 0.4, 1.2, admitted_at=0.01),
    )  # fmt: skip
    second = batch(
        2, 4, 6,
        call("call_e", "pay", admitted_at=4.01, asked_at=4.02, started_at=5.2, settled_at=5.9, ended_at=5.9, duration=0.7, status="succeeded", completion="settled"),
        call("call_f", "pay", admitted_at=4.01, asked_at=4.02, settled_at=5.0, status="denied", code="denied", completion="not_started", side_effect_state="not_started"),
        done("call_g", "search", 4.05, 6),
    )  # fmt: skip
    third = batch(
        3, 8, 8.5,
        done("call_h", "search", 8.0, 8.5),
        call("call_i", "serach", settled_at=8.0, status="failed", code="unknown_tool", repeats=1, completion="not_started"),
        call("call_j", "watch", started_at=8.0, settled_at=8.3, status="cancelled", code="superseded", completion="unknown", cancellation="requested", side_effect_state="unknown"),
        call("call_k", "watch", settled_at=8.5, status="not_started", code="not_started", completion="not_started"),
        call("call_l", "job", started_at=8.0, settled_at=8.1, status="pending", completion="unknown"),
        status="error", code="superseded",
    )  # fmt: skip
    fourth = batch(4, 9, None, call("call_m", "search", started_at=9.1, admitted_at=9.0), call("call_n", "search"))
    return run(first, second, third, fourth, cut_off=1)


HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "</script x=y><b>",
    "\"'><img src=x onerror=window.pwned=1>",
    "<!--",
    "]]>",
    "{{ 7*7 }}{% raw %}",
    "\u202edetrever\u2066",
    "a\u0000b\u001b[31m\u2028",
    "javascript:window.pwned=1",
    "&lt;b&gt;&amp;",
    "e\u0301" * 300,
)


def hostile_run() -> RunRecord:
    """Texts that would like to be markup, in every place that a file can fill."""
    made = []
    for number, text in enumerate(HOSTILE):
        late = LateRecord(
            at=BEGUN + 3,
            late_by=1.0,
            observed_status=text,
            answered_as=text,
            reason=text,
            exception_type=text,
            content=text,
        )
        calls = (
            done(text, text, 0, 1, code=text, execution_id=text, arguments=text, content=text, last_progress=text, exception_type=text, late=late, side_effect_state=text),
            call(f"{text}2", text, status=text, completion=text, cancellation=text),
        )  # fmt: skip
        made.append(batch(number, 0, 1, *calls, log=text, run_id=text, status=text, code=text))
    return run(*made)


def large_run(batches: int, calls: int) -> RunRecord:
    """As many batches of as many calls; one call in a hundred fails, and each takes a little longer than the one before."""

    def one(generation: int, number: int) -> CallRecord:
        length = 0.5 + (generation * calls + number) / (batches * calls)
        failed = (generation * calls + number) % 100 == 99
        status = "failed" if failed else "succeeded"
        return done(
            f"c{generation}.{number}", f"tool_{number % 7}", generation * 3.0, generation * 3.0 + length, status=status
        )

    return run(
        *(batch(at + 1, at * 3.0, at * 3.0 + 2, *(one(at, number) for number in range(calls))) for at in range(batches))
    )


times = st.one_of(st.none(), st.floats(0, 250_000_000_000), st.floats(BEGUN, BEGUN + 10), st.sampled_from([0.0, BEGUN]))
lengths = st.one_of(st.none(), st.floats(0, 250_000_000_000))
texts = st.one_of(st.none(), st.text(max_size=8), st.sampled_from(HOSTILE))
statuses = st.one_of(
    texts, st.sampled_from(["succeeded", "failed", "timed_out", "denied", "pending", "not_started", "cancelled"])
)


@st.composite
def any_call(draw: Callable[[st.SearchStrategy[Any]], Any]) -> CallRecord:
    """A call of which anything may be known."""
    return CallRecord(
        call_id=draw(st.text(max_size=5)), tool_name=draw(st.text(max_size=5)), status=draw(statuses), code=draw(texts),
        admitted_at=draw(times), asked_at=draw(times), started_at=draw(times), settled_at=draw(times), ended_at=draw(times),
        duration=draw(lengths), timeout=draw(lengths), completion=draw(st.sampled_from([None, "unknown", "settled", "odd"])),
        resumed=draw(st.booleans()), late=draw(st.sampled_from([None, LATE, LateRecord()])), progress=draw(st.integers(0, 3)),
    )  # fmt: skip


@st.composite
def any_run(draw: Callable[[st.SearchStrategy[Any]], Any]) -> RunRecord:
    """A run of which anything may be known."""
    return run(
        *(
            BatchRecord(
                log=None, generation=draw(st.one_of(st.none(), st.integers())), run_id=draw(texts), begun_at=draw(times),
                closed_at=draw(times), status=draw(texts), code=draw(texts), calls=tuple(draw(st.lists(any_call(), max_size=3))),
            )
            for _ in range(draw(st.integers(0, 4)))
        )
    )  # fmt: skip
