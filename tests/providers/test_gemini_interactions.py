"""Gemini's Interactions API: steps to calls, results as steps. The SDK's own types are the judge."""

import copy
import json
from typing import Any, get_args

import pytest
from google.genai._gaos.types import interactions
from pydantic import TypeAdapter

from tests.providers.google_and_aws import settled
from toolbatch.core import (
    Document,
    Image,
    InvalidInputError,
    InvalidTypeError,
    Json,
    Part,
    ProviderMismatchError,
    ResourceLink,
    Text,
    ToolCall,
    Url,
)
from toolbatch.ports import LateNote
from toolbatch.providers import gemini_interactions

STEP: TypeAdapter[Any] = TypeAdapter(interactions.Step)
ASKED = {"type": "user_input", "content": [{"type": "text", "text": "Hi."}]}
THOUGHT = {"type": "thought", "signature": "c2ln"}
SAID = {"type": "model_output", "content": [{"type": "text", "text": "Let me look."}]}
SEARCH = {"type": "google_search_call", "id": "s", "arguments": {"queries": ["q"]}}
FOUND = {"type": "google_search_result", "call_id": "s", "result": []}


def interaction(*steps: Any, status: Any = "requires_action") -> dict[str, Any]:
    return {"id": "i1", "status": status, "steps": list(steps)}


def call(call_id: Any = "a", name: Any = "lookup", arguments: Any = None) -> dict[str, Any]:
    return {"type": "function_call", "id": call_id, "name": name, "arguments": {} if arguments is None else arguments}


def forms(wire: dict[str, Any]) -> list[Any]:
    made = interactions.Interaction.model_validate(copy.deepcopy(wire))
    return [wire, made, made.model_dump(), made.steps, wire["steps"]]


def judge(steps: list[Any]) -> None:
    """Fail where the SDK does not know a step, or reads something else in it."""
    for step in steps:
        made = STEP.validate_python(step)
        assert "Unknown" not in repr(made)
        assert made.model_dump(mode="json", by_alias=True, exclude_unset=True) == step
    json.dumps(steps, allow_nan=False, ensure_ascii=False).encode()


def code(one: ToolCall) -> str | None:
    return None if one.problem is None else one.problem.code


def extended(response: Any, *ends: Any, history: list[Any] | None = None) -> list[Any]:
    steps: list[Any] = [ASKED] if history is None else history
    gemini_interactions.extend(steps, response, settled(gemini_interactions.calls(response), *ends))
    judge(steps)
    announced = [step["id"] for step in steps if step["type"] == "function_call"]
    answered = [step["call_id"] for step in steps if step["type"] == "function_result"]
    assert announced == answered
    return steps


def result(value: Any) -> Any:
    return extended(interaction(call()), value)[-1]["result"]


def test_every_form_gives_the_same_calls() -> None:
    """Wire JSON, the SDK's object, its dump, and the steps alone are one interaction (P1)."""
    wire = interaction(THOUGHT, SAID, SEARCH, FOUND, call("a", arguments={"q": "é"}), call("b", "other"))
    before = copy.deepcopy(wire)
    first, *others = [gemini_interactions.calls(form) for form in forms(wire)]
    assert [(one.id, one.name, one.arguments, one.problem) for one in first] == [
        ("a", "lookup", {"q": "é"}, None),
        ("b", "other", {}, None),
    ]
    assert others == [first] * 4
    assert wire == before
    assert gemini_interactions.calls({"id": "i1", "status": "completed"}) == []


@pytest.mark.parametrize(
    "stranger", [None, "text", 1, {}, {"steps": 1}, [1], [{}], {"steps": [{"role": "user"}]}, object()]
)
def test_no_interaction(stranger: Any) -> None:
    """What is no interaction is the caller's mistake, and is named."""
    with pytest.raises(InvalidTypeError, match="response must be an Interaction"):
        gemini_interactions.calls(stranger)


def test_what_has_its_result_is_no_call_any_more() -> None:
    """An interaction that is read again later may have results among its steps."""
    answered = {"type": "function_result", "call_id": "a", "result": "x"}
    response = interaction(call("a"), answered, call("a"), call("b"))
    assert [one.wire_id or one.id for one in gemini_interactions.calls(response)] == ["a", "b"]
    steps: list[Any] = []
    gemini_interactions.extend(steps, response, settled(gemini_interactions.calls(response), 1, 2))
    assert steps[:4] == response["steps"]
    assert [step["call_id"] for step in steps[4:]] == ["a", "b"]


STATUSES = {
    "in_progress": "response_truncated",
    "incomplete": "response_truncated",
    "budget_exceeded": "response_truncated",
    "failed": "response_truncated",
    "cancelled": "response_truncated",
    "queued": "response_truncated",
    "requires_continuation": "response_truncated",
    "completed": "not_requested",
    "idle": "not_requested",
    "a_status_of_next_year": "not_requested",
}


@pytest.mark.parametrize(("status", "problem"), STATUSES.items(), ids=STATUSES)
def test_calls_that_may_not_run(status: str, problem: str) -> None:
    """Only `requires_action` asks for tools; all else is announced and answered, never run (P6)."""
    for form in forms(interaction(call("a"), call("b"), status=status))[:3]:
        assert [code(one) for one in gemini_interactions.calls(form)] == [problem] * 2
        assert len(extended(form)) == 5


def test_forced_tool() -> None:
    """`expect` passes the forced tool and refuses another (P7)."""
    assert len(gemini_interactions.calls(interaction(call()), expect="lookup")) == 1
    with pytest.raises(ProviderMismatchError):
        gemini_interactions.calls(interaction(call()), expect="search")


def test_a_turn() -> None:
    """Steps go back as they came, signed and hosted ones too; one result a call follows, in order (P2)."""
    steps = [THOUGHT, SAID, SEARCH, FOUND, call("a", arguments={"snake_case": 1}), call("b")]
    turns = [extended(form, {"n": 1}, ValueError("no")) for form in forms(interaction(*steps))]
    assert turns[0] == [
        ASKED,
        *steps,
        {"type": "function_result", "call_id": "a", "name": "lookup", "result": '{"n":1}'},
        {
            "type": "function_result",
            "call_id": "b",
            "name": "lookup",
            "result": '{"error":{"code":"tool_error","message":"no"}}',
            "is_error": True,
        },
    ]
    assert turns[1:] == [turns[0]] * 4


def test_results_alone_are_the_next_input() -> None:
    """The server keeps the rest; the ids are those that it gave, even where it gave one twice."""
    snapshot = settled(gemini_interactions.calls(interaction(call("a"), call("a"))), 1, 2)
    results = gemini_interactions.results(snapshot)
    assert [(step["call_id"], step["result"]) for step in results] == [("a", "1"), ("a", "2")]
    judge(results)


def test_ids_and_arguments_that_can_not_stay() -> None:
    """Missing and repeated ids are ours on both sides, and arguments are an object (P6)."""
    response = interaction(
        call("a"), call("a"), call(None), call("", arguments='{"x": "cut'), {"type": "function_call"}
    )
    steps = extended(response, 1, 2, 3)
    calls = [step for step in steps if step["type"] == "function_call"]
    assert len({step["id"] for step in calls}) == 5
    assert calls[0]["id"] == "a"
    assert calls[3]["arguments"] == {"INVALID_JSON": '{"x": "cut'}
    assert [code(one) for one in gemini_interactions.calls(response)[3:]] == ["malformed_arguments", "unknown_tool"]


def test_parts() -> None:
    """Images, documents, recordings and films stand in the result; what the API has no name for is said (P5)."""
    assert result([Text("a"), Json({"k": 1})]) == 'a\n{"k":1}'
    files: list[Part] = [
        Image.of(b"x", "image/jpg"),
        Image.of(b"x", "image/tiff"),
        Document.of(b"x", "application/pdf", "a.pdf"),
        Document.of(b"x", "audio/wav"),
        Document.of(b"x", "video/mp4"),
        Image(Url("gs://bucket/a.png", "image/png")),
        Document.of(b"plain", "text/plain", "a.txt"),
        Image.of(b"x", "image/svg+xml"),
        ResourceLink("https://example.org/a", "a"),
        Image(Url("https://example.org/a.png", "image/png")),
    ]
    assert result([Text("See:"), *files]) == [
        {"type": "text", "text": "See:"},
        {"type": "image", "mime_type": "image/jpeg", "data": "eA=="},
        {"type": "image", "mime_type": "image/tiff", "data": "eA=="},
        {"type": "document", "mime_type": "application/pdf", "data": "eA=="},
        {"type": "audio", "mime_type": "audio/wav", "data": "eA=="},
        {"type": "video", "mime_type": "video/mp4", "data": "eA=="},
        {"type": "image", "mime_type": "image/png", "uri": "gs://bucket/a.png"},
        {"type": "text", "text": '[document "a.txt": text/plain, 5 bytes]\nplain'},
        {"type": "text", "text": "[image: image/svg+xml, 1 bytes]"},
        {"type": "text", "text": '[resource "a": https://example.org/a]'},
        {"type": "text", "text": "[image: https://example.org/a.png (image/png)]"},
    ]
    made = interactions.FunctionResultStep.model_validate(extended(interaction(call()), files)[-1])
    assert isinstance(made.result, list)
    assert [type(part).__name__ for part in made.result[:5]] == [
        "ImageContent",
        "ImageContent",
        "DocumentContent",
        "AudioContent",
        "VideoContent",
    ]


def test_every_media_type_of_the_sdk() -> None:
    """Each type of image and document that the SDK names is carried."""
    images, documents = (
        get_args(get_args(kinds)[0])
        for kinds in (
            interactions.imagecontent.ImageContentMimeType,
            interactions.documentcontent.DocumentContentMimeType,
        )
    )
    assert {result([Image.of(b"x", kind), Text("a")])[0]["type"] for kind in images} == {"image"}
    office = [kind for kind in documents if len(result([Document.of(b"x", kind), Text("a")])) == 2]
    assert office == list(documents)


def test_no_turn_goes_behind_an_open_one() -> None:
    """A call without a result is refused before anything is appended, and so are other mistakes."""
    history: list[Any] = [ASKED, call("a"), {"type": "function_result", "call_id": "b", "result": "x"}]
    with pytest.raises(InvalidInputError, match=r"calls without a result: \['a'\]"):
        gemini_interactions.extend(history, interaction(SAID))
    assert len(history) == 3
    with pytest.raises(InvalidInputError, match="no snapshot"):
        gemini_interactions.extend([], interaction(call()))
    answered = [*history, {"type": "function_result", "call_id": "a", "result": "x"}]
    gemini_interactions.extend(answered, interaction(SAID))
    assert answered[-1] == SAID


def test_late_notes_are_a_step_of_the_users() -> None:
    """Late results are new content, behind the turn that was sent (B20)."""
    assert gemini_interactions.notes([]) == []
    (note,) = gemini_interactions.notes([LateNote(call_id="a", name="lookup", generation=1, content="found it")])
    judge([note])
    assert "found it" in note["content"][0]["text"]


def test_what_the_lane_says_it_carries() -> None:
    """The table for the documentation is found out by placing one part of each sort."""
    said = {sort for sort, place in gemini_interactions.CARRIES.items() if place == "text"}
    assert said == {"text", "JSON", "image by URL", "PDF by URL", "text file", "text file by URL", "resource link"}
