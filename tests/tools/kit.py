"""What the tests of the tools share: a few types, and short ways to look at errors and declarations."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from toolbatch.core import ToolCall, ToolError
from toolbatch.tools import AnyTool, Prepared, Refused, prepare


class Colour(enum.Enum):
    """An enum."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A dataclass."""

    x: int
    y: int = 3


class Filter(BaseModel):
    """A filter."""

    name: str
    limit: int = 10


class Node(BaseModel):
    """A recursive model."""

    value: int
    children: list["Node"] = []


def refusal(tool: AnyTool, arguments: Mapping[str, Any]) -> str:
    """The message for the model of arguments that don't fit."""
    with pytest.raises(ToolError) as raised:
        tool.validate(arguments)
    assert raised.value.code == "invalid_arguments"
    assert not raised.value.is_fatal
    assert len(raised.value.message.encode()) <= 4096  # more would be cut, and the advice stands at the end
    return raised.value.message


def prepared(name: str, arguments: Any, catalog: Mapping[str, AnyTool]) -> Prepared:
    """A call that may run."""
    ready = prepare(ToolCall("c1", name, arguments), catalog)
    assert isinstance(ready, Prepared), ready
    return ready


def refused(name: str, arguments: Any, catalog: Mapping[str, AnyTool]) -> Refused:
    """A call that may not."""
    ready = prepare(ToolCall("c1", name, arguments), catalog)
    assert isinstance(ready, Refused), ready
    return ready


def run(ready: Prepared) -> Any:
    """Run what was prepared."""
    return ready.fn(*ready.args, **ready.kwargs)
