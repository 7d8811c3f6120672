"""T9: text for the model, facts for the host, and no failure in either loses the result."""

import datetime as dt
import logging
import math
import uuid
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, NoReturn

import pytest

from tests.tools.kit import Colour, Filter, Point
from toolbatch.core import ToolError
from toolbatch.tools import Rendered, render_result, tool

PLAIN = tool(name="plain")(lambda: None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, "null"),
        ({"success": False}, '{"success":false}'),
        ([1, "é"], '[1,"é"]'),
        (Point(1), '{"x":1,"y":3}'),
        (Filter(name="n"), '{"name":"n","limit":10}'),
        (dt.datetime(2024, 5, 6, tzinfo=dt.UTC), '"2024-05-06T00:00:00+00:00"'),
        (dt.date(2024, 5, 6), '"2024-05-06"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Colour.RED, '"red"'),
        (Decimal("1.50"), '"1.50"'),
        ({2, 1}, "[1,2]"),
        (b"hi", '"aGk="'),
        (PurePosixPath("/a"), '"/a"'),
    ],
)
def test_results_become_text(value: Any, text: str) -> None:
    """T9, C7, O4: the documented conversions, by the one encoder; `{"success": false}` is a result."""
    assert render_result(PLAIN, value) == Rendered(text)


class Sly:
    """A value whose own method raises."""

    def model_dump(self, mode: str) -> NoReturn:
        raise RuntimeError("secret")


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("value", [object(), math.nan, [math.inf], CIRCLE, Sly(), lambda: 1, {"a": iter([])}])
def test_what_has_no_json_form_is_an_invalid_result(value: Any) -> None:
    """T9, B23: the model hears that the tool ran; what the value's own code said stays with the host. `render` changes nothing."""
    for made in (PLAIN, PLAIN.replace(render=lambda _: "nice")):
        with pytest.raises(ToolError) as raised:
            render_result(made, value)
        assert raised.value.code == "invalid_result"
        assert "plain ran" in raised.value.message
        assert "secret" not in raised.value.message
        assert raised.value.__cause__ is not None


def test_render_and_meta_are_for_model_and_host() -> None:
    """T9: the model reads `render`'s text; `meta` goes to the host alone."""
    made = PLAIN.replace(render=lambda value: f"{len(value)} rows", meta=lambda value: {"rows": value})
    assert render_result(made, [1, 2]) == Rendered("2 rows", {"rows": [1, 2]})


def boom(value: Any) -> NoReturn:
    """Fail."""
    raise ValueError("boom")


@pytest.mark.parametrize("render", [boom, lambda value: 3, lambda value: None, lambda value: b"x"])
def test_a_failing_render_loses_nothing(render: Any, caplog: Any) -> None:
    """T9: the model reads the plain result, the host what went wrong, and `meta` is still asked."""
    made = PLAIN.replace(render=render, meta=lambda value: "meta")
    with caplog.at_level(logging.WARNING, "toolbatch.tools"):
        rendered = render_result(made, {"a": 1})
    assert (rendered.content, rendered.meta) == ('{"a":1}', "meta")
    assert len(rendered.problems) == 1
    assert "render of plain" in rendered.problems[0]


def test_a_failing_meta_loses_nothing() -> None:
    """T9: the model's text is as it was."""
    rendered = render_result(PLAIN.replace(render=lambda value: "nice", meta=boom), 1)
    assert (rendered.content, rendered.meta) == ("nice", None)
    assert "boom" in rendered.problems[0]


def test_a_host_may_bring_its_encoder() -> None:
    """C7: one encoder everywhere, the injected one too."""
    assert render_result(PLAIN, object(), encode=lambda value: "mine").content == "mine"
