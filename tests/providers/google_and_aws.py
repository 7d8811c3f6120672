"""What the tests of Gemini and Bedrock share: responses as servers send them, and other people's judges."""

import copy
import gzip
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore  # type: ignore[import-untyped]
from botocore.model import ServiceModel  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from google.genai import types

from toolbatch import transcript
from toolbatch.core import Snapshot, ToolCall, ToolCallClosure
from toolbatch.testing import check_bedrock, check_gemini

Json = dict[str, Any]
ASKED: Json = {"role": "user", "parts": [{"text": "Hi."}]}
USER: Json = {"role": "user", "content": [{"text": "Hi."}]}


def candidate(*parts: Any, finish: Any = "STOP", **more: Any) -> Json:
    """A GenerateContentResponse as the wire carries it, with these parts."""
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": finish, "index": 0}], "responseId": "resp_1", **more}


def call(call_id: Any = "a", name: Any = "lookup", args: Any = None, **beside: Any) -> Json:
    """A part that calls; what is `None` is not there."""
    facts = {"id": call_id, "name": name, "args": args}
    return {"functionCall": {key: value for key, value in facts.items() if value is not None}, **beside}


def gemini_forms(wire: Json) -> list[Any]:
    """The same response as wire JSON, as the SDK's object, and as that object's dumps."""
    made = types.GenerateContentResponse.model_validate(copy.deepcopy(wire))
    dumps = [made.model_dump(), made.model_dump(exclude_unset=True), made.model_dump(mode="json", by_alias=True)]
    return [wire, made, *dumps]


def converse(*content: Any, stop: Any = "tool_use") -> Json:
    """What boto3's `converse` returns, with these blocks."""
    message = {"role": "assistant", "content": list(content)}
    return {"ResponseMetadata": {"RequestId": "r1"}, "output": {"message": message}, "stopReason": stop}


def use(call_id: Any = "a", name: Any = "lookup", arguments: Any = None, **more: Any) -> Json:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": {} if arguments is None else arguments, **more}}


def settled(calls: list[ToolCall], *ends: Any) -> Snapshot:
    """A closed snapshot: each call succeeds with its value, or fails with its exception; the rest are closed unstarted."""
    closure = ToolCallClosure()
    handle = closure.begin(calls).handle
    for one, end in zip(calls, ends, strict=False):
        if isinstance(end, Exception):
            closure.fail(handle, one.id, end)
        else:
            closure.succeed(handle, one.id, end)
    snapshot = closure.close(handle, code="timeout", message="Out of time.", side_effect_state=None)
    assert isinstance(snapshot, Snapshot)
    return snapshot


def every_order(calls: list[ToolCall]) -> Iterator[Snapshot]:
    """Snapshots of the same outcomes, settled in every order."""
    for order in itertools.permutations(range(len(calls))):
        closure = ToolCallClosure()
        handle = closure.begin(calls).handle
        for position in order:
            closure.succeed(handle, calls[position].id, {"position": position})
        sealed = closure.seal(handle)
        assert isinstance(sealed, Snapshot)
        yield sealed


def gemini_refused(contents: list[Any], model: str | None = None) -> object:
    """What the strict fake, the transcript law or the SDK's own types have against some contents; `None` where nothing."""
    for content in contents:
        made = types.Content.model_validate(copy.deepcopy(content))  # extra keys are forbidden there
        assert made.model_dump(mode="json", by_alias=True, exclude_none=True).keys() == content.keys()
    json.dumps(contents, ensure_ascii=False, allow_nan=False).encode()
    return check_gemini(contents, model=model) or transcript.check(contents, "gemini") or None


def _service() -> ServiceModel:
    path = Path(botocore.__file__).parent / "data" / "bedrock-runtime" / "2023-09-30" / "service-2.json.gz"
    return ServiceModel(json.loads(gzip.decompress(path.read_bytes())), "bedrock-runtime")


SERVICE = _service()
CONVERSE: Any = SERVICE.operation_model("Converse").input_shape


def bedrock_refused(messages: list[Any], model: str | None = None) -> object:
    """What the strict fake, the transcript law or botocore's model of the API have against some messages."""
    request = {"modelId": "m", "messages": messages}
    report = ParamValidator().validate(request, CONVERSE)
    assert not report.has_errors(), report.generate_report()
    faults = list(broken_constraints(messages, CONVERSE.members["messages"], "messages"))
    return faults or check_bedrock(messages, model=model) or transcript.check(messages, "bedrock") or None


def broken_constraints(value: Any, shape: Any, path: str) -> Iterator[str]:
    """The lengths, patterns and enumerations that botocore knows and does not check (LANES 13)."""
    facts = shape.metadata
    if shape.type_name == "structure":
        if getattr(shape, "is_document_type", False):
            return
        for name, inner in value.items():
            yield from broken_constraints(inner, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for position, inner in enumerate(value):
            yield from broken_constraints(inner, shape.member, f"{path}.{position}")
    elif shape.type_name in ("string", "blob"):
        if len(value) < facts.get("min", 0) or len(value) > facts.get("max", len(value)):
            yield f"{path} has {len(value)} characters"
        if "pattern" in facts and not re.fullmatch(facts["pattern"], value):
            yield f"{path} does not match {facts['pattern']}"
        if "enum" in facts and value not in facts["enum"]:
            yield f"{path} is none of {facts['enum']}"


def collect(module: Any, refused: Callable[[list[Any]], object]) -> Callable[..., list[Any]]:
    """A way to write one turn behind a question, which every judge must accept."""

    def extended(response: Any, *ends: Any, history: list[Any] | None = None, **options: Any) -> list[Any]:
        question = ASKED if module.__name__.endswith("gemini") else USER
        messages = [question] if history is None else history
        module.extend(messages, response, settled(module.calls(response), *ends), **options)
        assert refused(messages) is None
        return messages

    return extended
