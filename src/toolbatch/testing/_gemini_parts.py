"""The shape of Gemini's contents: roles, parts, and what a part may hold.

Keys may be camelCase or snake_case, since protobuf's JSON takes both; what a part may hold is closed ("Cannot find field").
A text that no public report shows is marked *own words*.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from toolbatch.testing._rejection import Rejection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolbatch.testing._rejection import Rule

__all__ = ["Part", "call_of", "content_fault", "function_names_fault", "member", "parts_of", "response_of", "sign"]

Part: TypeAlias = dict[str, Any]

_ROLES = ("user", "model", "function")
_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
_BESIDE_DATA = (
    "thought",
    "thoughtSignature",
    "partMetadata",
    "videoMetadata",
    "mediaResolution",
    "mediaProcessing",
    "speechMetadata",
    "documentMetadata",
    "spreadsheetMetadata",
    "audioMetadata",
)
_CALL_FIELDS = ("id", "name", "args")
_RESPONSE_FIELDS = ("id", "name", "response", "parts", "willContinue", "scheduling")
_FILE_FIELDS = {"inlineData": ("mimeType", "data", "displayName"), "fileData": ("mimeType", "fileUri", "displayName")}
_IN_RESPONSE = ("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain")
_MESSAGES = "type.googleapis.com/google.ai.generativelanguage.v1beta"
_STRUCT = "type.googleapis.com/google.protobuf.Struct"
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}\Z")
_SIGNATURE = b"toolbatch-testing-"  # other signatures are taken on trust: only their provider can check them
_WORD = re.compile(r"_([a-z])")
_HUMP = re.compile(r"[A-Z]")


def member(holder: object, name: str) -> Any:
    """A member under its camelCase or its snake_case name; `None` where there is none."""
    if not isinstance(holder, dict):
        return None
    found = holder.get(name)
    return holder.get(_snake(name)) if found is None else found


def parts_of(content: object) -> list[Any]:
    """The parts of a content."""
    parts = member(content, "parts")
    return parts if isinstance(parts, list) else []


def call_of(part: object) -> Any:
    """The part's call of a client's tool, if it is one."""
    return member(part, "functionCall")


def response_of(part: object) -> Any:
    """The part's result of a client's tool, if it is one."""
    return member(part, "functionResponse")


def sign(name: str, args: object) -> str:
    """The signature that the fake provider puts on a call, to see whether both come back together and unchanged."""
    facts = json.dumps([name, args], sort_keys=True)
    return base64.b64encode(_SIGNATURE + hashlib.sha256(facts.encode()).digest()).decode("ascii")


def function_names_fault(tools: object) -> Rejection | None:
    """Check the names of declared functions."""
    seen: set[object] = set()
    for index, tool in enumerate(tools if isinstance(tools, list) else []):
        declared = member(tool, "functionDeclarations")
        for position, function in enumerate(declared if isinstance(declared, list) else []):
            name = member(function, "name")
            if not isinstance(name, str) or not _NAME.match(name):
                path = f"tools[{index}].function_declarations[{position}].name"
                problem = (
                    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
                    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
                )
                return _broken("bad_name", path, problem)
            if name in seen:
                return Rejection(rule="bad_name", message=f"Duplicate function declaration found: {name}")
            seen.add(name)
    return None


def content_fault(content: object, index: int) -> Rejection | None:
    """Check one content."""
    path = f"contents[{index}]"
    if not isinstance(content, dict):
        return _bad_value("bad_request", path, f"{_MESSAGES}.Content", content)
    fault = _unknown_fault("bad_request", content, ("role", "parts"), path)
    if fault is not None:
        return fault
    if content.get("role") is not None and content["role"] not in _ROLES:
        return Rejection(rule="bad_request", message="Please use a valid role: user, model.")
    parts = content.get("parts")
    if parts is not None and not isinstance(parts, list):
        return _bad_value("bad_content", f"{path}.parts", f"{_MESSAGES}.Part", parts)
    if not parts:
        return _broken("bad_content", f"{path}.parts", "contents.parts must not be empty.")
    for position, part in enumerate(parts):
        fault = _part_fault(part, f"{path}.parts[{position}]")
        if fault is not None:
            return fault
    return None


def _part_fault(part: object, path: str) -> Rejection | None:
    if not isinstance(part, dict):
        return _bad_value("bad_content", path, f"{_MESSAGES}.Part", part)
    fault = _unknown_fault("bad_content", part, (*_DATA, *_BESIDE_DATA), path)
    if fault is not None:
        return fault
    signature = member(part, "thoughtSignature")
    if signature is not None and _decoded(signature) is None:
        return _not_base64(f"{path}.thought_signature", signature)
    held = [name for name in _DATA if member(part, name) is not None]
    if len(held) > 1:
        problem = f"Invalid value at '{path}' (oneof), oneof field 'data' is already set. Cannot set '{held[1]}'"
        return Rejection(rule="bad_content", message=problem)
    # An empty text is as good as none to the server, but the SDKs send one back where a signature stands beside it.
    if not held or (part.get("text") == "" and not signature):
        return _broken("bad_content", f"{path}.data", "required oneof field 'data' must have one initialized field")
    if held == ["text"] and not isinstance(part["text"], str):
        return _bad_value("bad_content", f"{path}.text", "TYPE_STRING", part["text"])
    if held == ["functionCall"]:
        return _call_fault(call_of(part), signature, f"{path}.function_call")
    if held == ["functionResponse"]:
        return _response_fault(response_of(part), f"{path}.function_response")
    if held[0] in _FILE_FIELDS:
        return _file_fault(part, held[0], path)
    return None


def _call_fault(call: object, signature: object, path: str) -> Rejection | None:
    if not isinstance(call, dict):
        return _bad_value("bad_content", path, f"{_MESSAGES}.FunctionCall", call)
    fault = _unknown_fault("bad_content", call, _CALL_FIELDS, path) or _names_fault(call, path)
    if fault is not None:
        return fault
    args = call.get("args")
    if args is not None and not isinstance(args, dict):
        return _bad_value("bad_arguments", f"{path}.args", _STRUCT, args)
    ours = signature is not None and (_decoded(signature) or b"").startswith(_SIGNATURE)
    if ours and _decoded(signature) != _decoded(sign(call["name"], args or {})):
        return Rejection(rule="reasoning_pair", message="Thought signature is not valid")
    return None


def _response_fault(response: object, path: str) -> Rejection | None:
    if not isinstance(response, dict):
        return _bad_value("bad_content", path, f"{_MESSAGES}.FunctionResponse", response)
    fault = _unknown_fault("bad_content", response, _RESPONSE_FIELDS, path) or _names_fault(response, path)
    if fault is not None:
        return fault
    said = response.get("response")
    if said is None:
        return _broken("bad_content", f"{path}.response", "Response cannot be empty.")  # own words
    if not isinstance(said, dict):
        return _bad_value("bad_content", f"{path}.response", _STRUCT, said)
    media = response.get("parts")
    labels: list[object] = []
    for position, part in enumerate(media if isinstance(media, list) else []):
        inner = f"{path}.parts[{position}]"
        kind = next((name for name in _FILE_FIELDS if member(part, name) is not None), None)
        if kind is None:
            return _broken(
                "bad_content", f"{inner}.data", "required oneof field 'data' must have one initialized field"
            )
        fault = _file_fault(part, kind, inner) or _media_type_fault(member(part, kind), kind, inner)
        if fault is not None:
            return fault
        labels.append(member(member(part, kind), "displayName"))
    return _reference_fault(said, labels)


def _media_type_fault(source: object, kind: str, path: str) -> Rejection | None:
    media_type = member(source, "mimeType")
    if media_type in _IN_RESPONSE or (kind == "fileData" and media_type is None):
        return None
    return Rejection(rule="bad_content", message=f"Unsupported MIME type: {media_type} at {path}")  # own words


def _reference_fault(said: object, labels: list[object]) -> Rejection | None:
    """Check that what the result's data points at is there, once."""
    pointed: set[object] = set()
    for name in _references(said):
        if name not in labels or name in pointed or labels.count(name) > 1:
            problem = (
                f"The referenced name `{name}` in function_response.response does not match to a display_name in the "
                "function_response.parts."
            )
            return Rejection(rule="bad_content", message=problem)
        pointed.add(name)
    return None


def _references(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield str(inner)
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _file_fault(part: Part, kind: str, path: str) -> Rejection | None:
    source, path = member(part, kind), f"{path}.{_snake(kind)}"
    if not isinstance(source, dict):
        return _bad_value("bad_content", path, f"{_MESSAGES}.Blob", source)
    fault = _unknown_fault("bad_content", source, _FILE_FIELDS[kind], path)
    if fault is not None:
        return fault
    if kind == "fileData":
        if not member(source, "fileUri"):
            return _broken("bad_content", f"{path}.file_uri", "File URI cannot be empty.")  # own words
        return None
    if not member(source, "mimeType"):
        return _broken("bad_content", f"{path}.mime_type", "MIME type cannot be empty.")  # own words
    data = source.get("data")
    return _not_base64(f"{path}.data", data) if not data or _decoded(data) is None else None


def _names_fault(holder: Part, path: str) -> Rejection | None:
    """Check the name and the id of a call or a result."""
    for key in ("id", "name"):
        value = holder.get(key)
        if value is not None and not isinstance(value, str):
            return _bad_value("bad_id" if key == "id" else "bad_name", f"{path}.{key}", "TYPE_STRING", value)
    return None if holder.get("name") else _broken("bad_name", f"{path}.name", "Name cannot be empty.")


def _unknown_fault(rule: Rule, holder: Part, known: tuple[str, ...], path: str) -> Rejection | None:
    for name in holder:
        if _camel(str(name)) not in known:
            problem = f"Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Cannot find field."
            return Rejection(rule=rule, message=problem)
    return None


def _broken(rule: Rule, path: str, problem: str) -> Rejection:
    return Rejection(rule=rule, message=f"* GenerateContentRequest.{path}: {problem}")


def _bad_value(rule: Rule, path: str, kind: str, value: object) -> Rejection:
    return Rejection(rule=rule, message=f"Invalid value at '{path}' ({kind}), {json.dumps(value)}")


def _not_base64(path: str, value: object) -> Rejection:
    problem = f"Invalid value at '{path}' (TYPE_BYTES), Base64 decoding failed for {json.dumps(value)}"
    return Rejection(rule="bad_content", message=problem)


def _decoded(text: object) -> bytes | None:
    """Read base64 as protobuf does: both alphabets, with padding or without."""
    if not isinstance(text, str):
        return None
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _camel(name: str) -> str:
    return _WORD.sub(lambda match: match[1].upper(), name)


def _snake(name: str) -> str:
    return _HUMP.sub(lambda match: f"_{match[0].lower()}", name)
