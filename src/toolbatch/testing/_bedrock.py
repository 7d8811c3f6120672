"""The rules of AWS Bedrock's Converse.

`check_bedrock` goes through the list three times: every message alone (its shape), the turns (their pairing), then the
conversation as a whole. Within a pass the first message that breaks a rule decides. Some families of models have rules of their
own. Sources: botocore's model of the API, and error texts quoted in public reports.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from toolbatch.testing._bedrock_blocks import Block, broken, is_call, message_fault, tool_names_fault

if TYPE_CHECKING:
    from toolbatch.testing._rejection import Rejection

__all__ = ["check_bedrock", "check_bedrock_body"]

_START = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
_ALTERNATE = (
    "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and "
    "assistant roles and try again."
)
_CONFIG = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
_NAMES = "Messages can't contain duplicate document names. Rename the document and retry your request."
_STATUS = "This model doesn't support the status field. Remove status and try again."
_ALONE = "Conversation blocks and tool result blocks cannot be provided in the same turn."


def check_bedrock_body(body: dict[str, object], model: str) -> Rejection | None:
    """Check a whole request body of `POST /model/{model}/converse`."""
    fault = tool_names_fault(body.get("toolConfig")) or check_bedrock(body.get("messages"), model=model)
    if fault is not None:
        return fault
    messages: Any = body["messages"]
    used = any("toolUse" in block or "toolResult" in block for message in messages for block in message["content"])
    return broken("bad_request", _CONFIG) if used and not body.get("toolConfig") else None


def check_bedrock(messages: object, *, model: str | None = None) -> Rejection | None:
    """Judge a `messages` list as the Converse endpoint does.

    Args:
        messages: The list, in boto3's form or the wire's.
        model: The model's id, such as `mistral.pixtral-large-2502-v1:0`, to be judged by its family's rules too; `None` for
            those of all models.

    Returns:
        The first broken rule, or `None` if the list would be accepted.
    """
    if not isinstance(messages, list) or not messages:
        return broken("bad_request", _START)
    for index, message in enumerate(messages):
        fault = message_fault(message, index)
        if fault is not None:
            return fault
    return _turn_faults(messages) or _conversation_fault(messages) or _family_fault(messages, model or "")


def _turn_faults(messages: list[Any]) -> Rejection | None:
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else {"role": "none", "content": []}
        after = messages[index + 1] if index + 1 < len(messages) else None
        if message["role"] == "assistant":
            fault = _calls_fault(message["content"], after, index)
        else:
            fault = _results_fault(message["content"], before, index)
        if fault is not None:
            return fault
    return None


def _ids(content: list[Block], kind: Literal["toolUse", "toolResult"]) -> list[str]:
    return [block[kind]["toolUseId"] for block in content if kind in block and (kind == "toolResult" or is_call(block))]


def _calls_fault(content: list[Block], after: Any, index: int) -> Rejection | None:
    """Check that the message behind an assistant's answers its calls."""
    calls = _ids(content, "toolUse")
    fault = _repeated_fault("duplicate_call", "toolUse", calls, index)
    if fault is not None or not calls:
        return fault
    answered = _ids(after["content"], "toolResult") if after is not None and after["role"] == "user" else []
    missing = [call_id for call_id in calls if call_id not in answered]
    if not missing:
        return None
    text = f"Expected toolResult blocks at messages.{index + 1}.content for the following Ids: {', '.join(missing)}"
    return broken("missing_result", text)


def _results_fault(content: list[Block], before: Any, index: int) -> Rejection | None:
    """Check that a message has no results but those of the calls before it."""
    calls = _ids(before["content"], "toolUse") if before["role"] == "assistant" else []
    results = _ids(content, "toolResult")
    fault = _repeated_fault("duplicate_result", "toolResult", results, index)
    if fault is not None or len(results) <= len(calls):
        return fault  # each call has its result, as has been looked at before: so none is left over
    text = f"The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of previous turn."
    return broken("unknown_result_id" if calls else "orphan_result", text)


def _repeated_fault(
    rule: Literal["duplicate_call", "duplicate_result"], kind: str, ids: list[str], index: int
) -> Rejection | None:
    repeated = dict.fromkeys(call_id for position, call_id in enumerate(ids) if call_id in ids[:position])
    if not repeated:
        return None
    return broken(rule, f"The {kind} blocks at messages.{index}.content contain duplicate Ids: {', '.join(repeated)}")


def _conversation_fault(messages: list[Any]) -> Rejection | None:
    turns = [message for message in messages if message["role"] != "system"]
    if not turns or turns[0]["role"] != "user":
        return broken("bad_request", _START)
    if any(one["role"] == other["role"] for one, other in pairwise(turns)):
        return broken("bad_request", _ALTERNATE)
    names = [block["document"]["name"].lower() for block in _all_blocks(messages) if "document" in block]
    return broken("bad_name", _NAMES) if len(set(names)) < len(names) else None


def _all_blocks(messages: list[Any]) -> list[Block]:
    """Every block of a conversation, those inside of results too."""
    blocks = [block for message in messages for block in message["content"]]
    return [*blocks, *[inner for block in blocks if "toolResult" in block for inner in block["toolResult"]["content"]]]


def _family_fault(messages: list[Any], model: str) -> Rejection | None:
    results = [block["toolResult"] for block in _all_blocks(messages) if "toolResult" in block]
    if "writer." in model and any("status" in result for result in results):
        return broken("bad_content", _STATUS)
    if not any(family in model for family in ("writer.", "meta.", "mistral.")):
        return None
    for message in messages:
        kinds = {next(iter(block)) for block in message["content"]}
        if "toolResult" in kinds and kinds - {"toolResult", "cachePoint"}:
            return broken("misplaced_content", _ALONE)
    return None
