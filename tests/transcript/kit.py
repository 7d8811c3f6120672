"""What the tests of the law share: the collected cases, short ways to write transcripts, and how to compare with a case."""

import copy
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from toolbatch.transcript import INTERRUPTED_TEXT, SECOND_RESULT_TEXT, LaneName, Repair, Violation

Json = dict[str, Any]

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """A transcript from a public report with the list that a correct repair gives (`cases/`, in ../shared its README)."""

    name: str
    lane: LaneName
    broken_forms: list[str]
    input: list[Json]
    expected: list[list[Json]]

    def matches(self, view: list[Any]) -> bool:
        """Whether a repaired list is the expected one, or one of the alternatives."""
        return any(same(view, expected) for expected in self.expected)


def cases() -> list[Case]:
    """All collected cases, in the order of their numbers."""
    found = []
    for file in sorted(CASES.glob("*.json")):
        data = filled(json.loads(file.read_text(encoding="utf-8")))
        expected = [data["expected"], *data.get("alt_expected", [])]
        found.append(Case(file.stem, cast("LaneName", data["lane"]), data["broken_forms"], data["input"], expected))
    return found


def filled(value: Any) -> Any:
    """Put our close in the place of {SYNTHETIC}."""
    if isinstance(value, str):
        return value.replace("{SYNTHETIC}", INTERRUPTED_TEXT)
    if isinstance(value, list):
        return [filled(entry) for entry in value]
    if isinstance(value, dict):
        return {key: filled(entry) for key, entry in value.items()}
    return value


def same(ours: Any, expected: Any) -> bool:
    """Whether two values are equal, where {FOLD} in `expected` stands for our joiner or our block between two results."""
    if isinstance(expected, str) and "{FOLD}" in expected:
        pattern = r"\s*\[[^\]]*\]\s*".join(map(re.escape, expected.split("{FOLD}")))
        return isinstance(ours, str) and SECOND_RESULT_TEXT[:-2] in ours and bool(re.fullmatch(pattern, ours))
    if isinstance(expected, list):
        return isinstance(ours, list) and len(ours) == len(expected) and all(map(same, ours, expected))
    if isinstance(expected, dict):
        return (
            isinstance(ours, dict)
            and list(ours) == list(expected)  # the order of keys is part of the bytes that a cache keeps
            and all(same(ours[key], expected[key]) for key in expected)
        )
    return bool(ours == expected)


def summed(found: Sequence[Violation | Repair]) -> dict[tuple[str, int], tuple[list[str], list[int]]]:
    """The calls and messages that are named for each form of each turn: a repair may tell of one fault in several parts."""
    told: dict[tuple[str, int], tuple[list[str], list[int]]] = {}
    for one in found:
        ids, positions = told.get((one.form, one.position), ([], []))
        told[one.form, one.position] = sorted({*ids, *one.call_ids}), sorted({*positions, *one.positions})
    return told


def frozen(messages: list[Any]) -> Any:
    """A deep copy, to see later that nothing has been changed."""
    return copy.deepcopy(messages)
