"""T3's first stage: which tool, which arguments, how it may run; or an answer that the model can act on."""

import logging
from typing import Any, NoReturn

import pytest

from tests.tools.kit import prepared, refused, run
from toolbatch.core import CallProblem, InvalidTypeError, ToolCall
from toolbatch.tools import Prepared, Refused, ToolCatalog, prepare, tool

RAN: list[Any] = []


@tool
def look_up(city: str, days: int = 1) -> str:
    """Look up."""
    RAN.append(city)
    return f"{city} {days}"


@tool
def ping() -> str:
    """Ping."""
    RAN.append("ping")
    return "pong"


CATALOG = ToolCatalog([look_up, ping])


@pytest.fixture(autouse=True)
def nothing_ran() -> Any:
    """No stage before dispatch runs a tool."""
    RAN.clear()
    yield
    assert RAN == [], "prepare ran a tool"


def test_a_good_call_is_ready() -> None:
    """T3: resolved, validated, classified; the values are the converted ones."""
    ready = prepared("look_up", '{"city": "Oslo", "days": "3"}', CATALOG)
    assert ready.tool.fn is look_up.fn
    assert (ready.fn, ready.arguments) == (ready.tool.fn, {"city": "Oslo", "days": 3})
    assert (ready.args, ready.kwargs, ready.is_parallel, ready.needs_approval) == (
        (),
        {"city": "Oslo", "days": 3},
        True,
        False,
    )
    assert run(ready) == "Oslo 3"
    RAN.clear()


@pytest.mark.parametrize("arguments", [None, "", "  \n", "{}", {}])
def test_empty_arguments_are_an_empty_object(arguments: Any) -> None:
    """T5: a call without arguments is a call."""
    assert prepared("ping", arguments, CATALOG).kwargs == {}


MALFORMED = ["{", '{"city": "Os', "[1]", "null", '"x"', "3", "NaN", '{"a": NaN}', "{} {}", "[" * 100_000, "city=Oslo"]


@pytest.mark.parametrize("arguments", MALFORMED)
def test_malformed_arguments_never_reach_the_tool(arguments: str) -> None:
    """T4, T5: not JSON, or no object: the model is told what it sent, shortly, even for a tool that needs nothing."""
    for name in ("look_up", "ping"):
        answer = refused(name, arguments, CATALOG)
        assert answer.problem.code == "malformed_arguments"
        assert "was not run" in answer.problem.message
        assert len(answer.problem.message) < 1000
        assert answer.tool is CATALOG[name]


def test_an_unknown_tool_is_answered_with_near_names() -> None:
    """T4, T5: the near name, and nothing is run; of a malformed call too, since better arguments would not help."""
    for arguments in ("{}", "{"):
        answer = refused("lookup", arguments, CATALOG)
        assert answer.problem.code == "unknown_tool"
        assert "Did you mean look_up?" in answer.problem.message
        assert answer.tool is None


def test_a_view_hides_what_it_denies() -> None:
    """T2, T5: a denied tool is unknown, and its name isn't told."""
    answer = refused("look_up", "{}", CATALOG.view(deny=["look_up"]))
    assert answer.problem.code == "unknown_tool"
    assert "Did you mean look_up" not in answer.problem.message


def test_arguments_that_do_not_fit_are_refused() -> None:
    """T4: what was wrong, where, what was expected."""
    answer = refused("look_up", '{"citi": "x", "days": "many"}', CATALOG)
    assert answer.problem.code == "invalid_arguments"
    for part in ("city: is required", "days: Input should be a valid integer", "'many'", "did you mean city?"):
        assert part in answer.problem.message


def test_what_the_lane_found_stands() -> None:
    """P6: a call of a response that was cut off is refused with that, known tool or not."""
    problem = CallProblem("response_truncated", "cut off")
    for name in ("look_up", "nowhere"):
        answer = prepare(ToolCall("c", name, {"city": "x"}, problem=problem), CATALOG)
        assert isinstance(answer, Refused)
        assert answer.problem is problem


def test_free_form_input_is_one_argument() -> None:
    """P3: a custom tool's text arrives as `input`, whatever it looks like."""

    @tool
    def shell(input: str) -> None: ...

    ready = prepare(ToolCall("c", "shell", {"input": "{not json"}, kind="custom"), ToolCatalog([shell]))
    assert isinstance(ready, Prepared)
    assert ready.kwargs == {"input": "{not json"}


def test_the_catalog_may_change_afterwards() -> None:
    """O7: what was resolved stays; a later tool of the name is for later calls."""
    catalog = ToolCatalog()
    remove = catalog.register(tool(name="which")(lambda: "old"))
    ready = prepared("which", "{}", catalog)
    remove()
    catalog.register(tool(name="which", parallel=False)(lambda: "new"))
    later = prepared("which", "{}", catalog)
    assert (run(ready), ready.is_parallel, run(later), later.is_parallel) == ("old", True, "new", False)
    for name in ("tool", "kwargs"):
        with pytest.raises(AttributeError):
            setattr(ready, name, None)


def test_the_arguments_are_detached_from_the_call() -> None:
    """O7, B22: a tool that changes what it was given changes neither the announced call nor its key."""

    @tool
    def change(items: list[Any], more: Any) -> None:
        items.append(1)
        more.clear()

    call = ToolCall("c", "change", {"items": [[0]], "more": {"a": 1}})
    ready = prepare(call, ToolCatalog([change]))
    assert isinstance(ready, Prepared)
    run(ready)
    ready.kwargs["items"][0].append(2)
    assert call.arguments == {"items": [[0]], "more": {"a": 1}}


def boom(arguments: Any) -> NoReturn:
    """Fail."""
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("judge", "parallel", "approval"),
    [
        (True, True, True),
        (False, False, False),
        (lambda a: a["n"] > 1, True, True),
        (lambda a: a["n"] > 5, False, False),
        (lambda a: None, False, True),
        (boom, False, True),
    ],
)
def test_classifiers_decide_by_arguments(judge: Any, parallel: bool, approval: bool, caplog: Any) -> None:
    """T8, T7: one that raises or says nothing clear means the careful answer: alone, and with approval."""
    made = tool(name="t", parallel=judge, needs_approval=judge)(lambda n: n)
    with caplog.at_level(logging.WARNING, "toolbatch.tools"):
        ready = prepared("t", {"n": 3}, {"t": made})
    assert (ready.is_parallel, ready.needs_approval) == (parallel, approval)
    assert len(caplog.records) == (2 if judge is boom else 0)


def test_a_classifier_can_not_take_arguments_away() -> None:
    """T8: it is shown a copy of the arguments."""
    made = tool(name="t", parallel=lambda a: bool(a.clear()))(lambda n: n)  # type: ignore[attr-defined]
    assert prepared("t", {"n": 3}, {"t": made}).kwargs == {"n": 3}


def test_what_is_no_tool_is_the_hosts_mistake() -> None:
    """A dict of functions has no schemas: it raises, and is not blamed on the model."""
    catalog: Any = {"f": len}
    with pytest.raises(InvalidTypeError, match="'f' is no tool"):
        prepare(ToolCall("c", "f"), catalog)
