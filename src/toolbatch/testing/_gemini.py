"""The rules of Gemini's `generateContent`.

`check_gemini` goes through the list twice: every content alone (its shape), then the turns (their pairing). Within a pass the
first content that breaks a rule decides. Sources: the SDK's types, and error texts quoted in public reports. Two families
of models have a rule of their own: Gemini 3 wants its signatures back, Gemini 2 takes no media in results.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from toolbatch.testing._gemini_parts import (
    call_of,
    content_fault,
    function_names_fault,
    member,
    parts_of,
    response_of,
)
from toolbatch.testing._rejection import Rejection

if TYPE_CHECKING:
    from toolbatch.testing._rejection import Rule

__all__ = ["check_gemini", "check_gemini_body"]

_CALLS = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
_RESPONSES = "Please ensure that function response turn comes immediately after a function call turn."
_NUMBER = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the function "
    "call turn."
)
_LAST = "Please ensure that multiturn requests ends with a user role or a function response."


def check_gemini_body(body: dict[str, object], model: str) -> Rejection | None:
    """Check a whole request body of `POST .../models/{model}:generateContent`."""
    if not body.get("contents"):
        return Rejection(rule="bad_request", message="* GenerateContentRequest.contents: contents is not specified")
    return function_names_fault(body.get("tools")) or check_gemini(body["contents"], model=model)


def check_gemini(contents: object, *, model: str | None = None) -> Rejection | None:
    """Judge a `contents` list as the `generateContent` endpoint does.

    Args:
        contents: The list, of the types that JSON has.
        model: The model's name, such as `gemini-3-pro`, to be judged by its own rules too; `None` for those of all models.

    Returns:
        The first broken rule, or `None` if the list would be accepted.
    """
    if not isinstance(contents, list) or not contents:
        return Rejection(rule="bad_request", message="* GenerateContentRequest.contents: contents is not specified")
    for index, content in enumerate(contents):
        fault = content_fault(content, index)
        if fault is not None:
            return fault
    family = (model or "").removeprefix("models/")
    return (
        _turn_faults(contents)
        or (_signature_fault(contents) if family.startswith("gemini-3") else None)
        or (_media_fault(contents) if family.startswith(("gemini-1", "gemini-2")) else None)
    )


def _calls(content: object) -> list[Any]:
    return [call for call in map(call_of, parts_of(content)) if call is not None]


def _responses(content: object) -> list[Any]:
    return [response for response in map(response_of, parts_of(content)) if response is not None]


def _turn_faults(contents: list[Any]) -> Rejection | None:
    for index, content in enumerate(contents):
        before = contents[index - 1] if index else None
        calls, responses = _calls(content), _responses(content)
        if calls and (before is None or content.get("role") != "model" or before.get("role") == "model"):
            return Rejection(rule="misplaced_content", message=_CALLS)
        if calls and index == len(contents) - 1:
            return Rejection(rule="missing_result", message=_LAST)
        if calls and not _responses(contents[index + 1]):
            return Rejection(rule="missing_result", message=_NUMBER)
        if responses:
            fault = _results_fault([] if before is None else _calls(before), responses, content)
            if fault is not None:
                return fault
    return None


def _results_fault(calls: list[Any], responses: list[Any], content: object) -> Rejection | None:
    """Check the results of one turn against its calls."""
    if not calls or member(content, "role") == "model":
        return Rejection(rule="orphan_result", message=_RESPONSES)
    if len(responses) != len(parts_of(content)):
        # Other parts beside results break the count, or make the server take the content for the model's own.
        return Rejection(rule="misplaced_content", message=_NUMBER)
    if len(responses) < len(calls):
        return Rejection(rule="missing_result", message=_NUMBER)
    if len(responses) > len(calls):
        rule: Rule = "duplicate_result" if _repeated(responses) else "unknown_result_id"
        return Rejection(rule=rule, message=_NUMBER)
    return _identity_fault(calls, responses)


def _identity_fault(calls: list[Any], responses: list[Any]) -> Rejection | None:
    """Check that each result names a call of its turn. The server counts; what it says of wrong names is own words."""
    if _repeated(calls):
        return Rejection(rule="duplicate_call", message="Function calls of one turn must have distinct ids.")
    if _repeated(responses):
        return Rejection(rule="duplicate_result", message="Function responses of one turn must have distinct ids.")
    ids = {call.get("id") for call in calls if call.get("id")}
    for response in responses:
        if response.get("id") and response["id"] not in ids:
            text = (
                f"The function response id `{response['id']}` does not match a function call of the function call turn."
            )
            return Rejection(rule="unknown_result_id", message=text)
    left = Counter(call["name"] for call in calls)
    for response in responses:
        if not left[response["name"]]:
            text = f"The function response name `{response['name']}` does not match a function call of the function call turn."
            return Rejection(rule="unknown_result_id", message=text)
        left[response["name"]] -= 1
    return None


def _repeated(holders: list[Any]) -> bool:
    ids = [holder["id"] for holder in holders if holder.get("id")]
    return len(set(ids)) < len(ids)


def _signature_fault(contents: list[Any]) -> Rejection | None:
    """Check that the first call of each content of the current turn is signed. Earlier turns are not looked at."""
    asked = [
        index for index, content in enumerate(contents) if content.get("role") != "model" and not _responses(content)
    ]
    for index in range(asked[-1] if asked else 0, len(contents)):
        signed = [part for part in parts_of(contents[index]) if call_of(part) is not None]
        if signed and not member(signed[0], "thoughtSignature"):
            text = (
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
                "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
                f"call `default_api:{call_of(signed[0])['name']}` , position {index + 1}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )
            return Rejection(rule="reasoning_pair", message=text)
    return None


def _media_fault(contents: list[Any]) -> Rejection | None:
    if any(response.get("parts") for content in contents for response in _responses(content)):
        return Rejection(rule="bad_content", message="Multimodal function responses are not supported for this model")
    return None
