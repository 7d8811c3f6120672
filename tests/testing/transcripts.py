"""Short ways to write transcripts, and the collected ones of `transcripts.jsonl`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

USER: Json = {"role": "user", "content": "Hi."}


def chat_call(*ids: str, **change: Any) -> Json:
    """An assistant message of Chat Completions that announces calls; `change` goes into every call."""
    function = {"name": "f", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": i, "type": "function", "function": function, **change} for i in ids],
    }


def chat_result(call_id: str, content: Any = "ok") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def call_item(call_id: str, **change: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **change}


def output_item(call_id: str, output: Any = "ok", **change: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output, **change}


def uses(*ids: str, **change: Any) -> Json:
    """An assistant message of Anthropic that announces calls; `change` goes into every block."""
    return assistant(*[use(i, **change) for i in ids])


def use(use_id: str, **change: Any) -> Json:
    return {"type": "tool_use", "id": use_id, "name": "f", "input": {}, **change}


def result(use_id: str, **change: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": use_id, **change}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


@dataclass(frozen=True)
class Transcript:
    """A transcript from public reports: `expected` is its repair, and equals `input` if nothing is broken."""

    name: str
    lane: str
    symptom: str
    broken_forms: list[str]
    input: list[Json]
    expected: list[Json]


def collected() -> list[Transcript]:
    lines = (Path(__file__).parent / "transcripts.jsonl").read_text(encoding="utf-8").splitlines()
    return [Transcript(**json.loads(line)) for line in lines]
