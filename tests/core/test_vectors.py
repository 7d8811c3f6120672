"""The conformance vectors: 1,000 programs with what a correct closure answers at each step."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolbatch.core import BatchHandle, Limits, Rejected, ToolCallClosure
from toolbatch.providers import anthropic, openai_chat, openai_responses

VECTORS = Path(__file__).with_name("vectors.jsonl").read_text(encoding="utf-8").splitlines()
EXPORTS = {"chat": openai_chat.results, "responses": openai_responses.results, "anthropic": anthropic.results}


class Program:
    """Runs the steps of one vector on a fresh closure."""

    def __init__(self, limits: dict[str, Any]) -> None:
        self.closure = ToolCallClosure(Limits(**limits))
        self.handles: list[BatchHandle] = []

    def handle(self, spec: Any) -> Any:
        match spec:
            case int():
                return self.handles[spec] if spec < len(self.handles) else None
            case {"forged": index}:
                known = self.handles[index] if index < len(self.handles) else None
                return SimpleNamespace(generation=None if known is None else known.generation)
            case {"bad": {"generation": number}}:
                return SimpleNamespace(generation=number)
            case {"bad": {}}:
                return object()
            case {"bad": value}:
                return value
            case _:
                raise AssertionError(spec)

    def run(self, step: dict[str, Any]) -> Any:
        match step["op"]:
            case "begin":
                begun = self.closure.begin(step["calls"])
                self.handles.append(begun.handle)
                superseded = None if begun.superseded is None else begun.superseded.to_dict()
                return {"generation": begun.generation, "superseded": superseded}
            case "snapshot":
                snapshot = self.closure.snapshot()
                return None if snapshot is None else snapshot.to_dict()
            case "active":
                return self.closure.active_generation
            case "chat" | "responses" | "anthropic" as lane:
                return EXPORTS[lane](self.closure.snapshot())  # type: ignore[arg-type]
            case _:
                pass
        handle = self.handle(step["handle"])
        return self.answer(step, handle).to_dict()

    def answer(self, step: dict[str, Any], handle: Any) -> Any:
        closure, given = self.closure, {key: step[key] for key in ("message", "code") if key in step}
        match step["op"]:
            case "settle":
                return closure.settle(handle, step["id"], step["outcome"])
            case "succeed":
                return closure.succeed(handle, step["id"], step["content"])
            case "fail":
                return closure.fail(handle, step["id"], Exception(step["error"]), **given)
            case "cancel":
                return closure.cancel(handle, step["id"], **given)
            case "close":
                return closure.close(handle, **step["reason"])
            case "seal":
                return closure.seal(handle)
            case _:
                raise AssertionError(step)


def same(expected: Any, actual: Any) -> bool:
    """Whether `actual` has all that `expected` shows; it may have more keys."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(key in actual and same(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list):
        return isinstance(actual, list) and len(expected) == len(actual) and all(map(same, expected, actual))
    return type(expected) is type(actual) and bool(expected == actual)


def programs() -> Iterator[Any]:
    for number, line in enumerate(VECTORS):
        yield pytest.param(json.loads(line), id=str(number))


@pytest.mark.parametrize("vector", list(programs()))
def test_program_answers_as_the_reference(vector: dict[str, Any]) -> None:
    """Every step returns what the reference returned, or raises where it raised."""
    if vector.get("construct_raises"):
        with pytest.raises((TypeError, ValueError)):
            Program(vector["limits"])
        return
    program = Program(vector["limits"])
    for number, step in enumerate(vector["steps"]):
        if step.get("raises"):
            before = program.closure.snapshot()
            with pytest.raises((TypeError, ValueError)):
                program.run(step)
            assert program.closure.snapshot() is before, f"step {number} raised and changed something"
        else:
            answer = program.run(step)
            assert same(step["returns"], answer), f"step {number}: {step['op']} answered {answer}"


def test_there_are_a_thousand() -> None:
    """All programs are here, and the comparison can tell a difference."""
    assert len(VECTORS) == 1000
    assert same({"a": [1]}, {"a": [1], "b": 2})
    assert not same({"a": [1]}, {"a": [True]})
    assert not same({"a": [1]}, {"a": []})
    assert Rejected("run_closed", None, None, None).to_dict()["accepted"] is False
