"""The rules of OpenAI Responses.

`check_responses` goes through the input three times: every item alone (its shape), then calls against outputs (the
pairing), then reasoning against what it led to. In a pass the first item that breaks a rule decides.
Pairing spans the conversation: what the server remembers from `previous_response_id` comes first, then the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from toolbatch.testing._openai_shape import absent, name_fault, wrong_type
from toolbatch.testing._rejection import Rejection, Rule
from toolbatch.testing._responses_items import CALL_TO_OUTPUT, HOSTED, Item, item_fault, item_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["check_responses", "check_responses_body", "input_items"]

_OUTPUTS = frozenset(CALL_TO_OUTPUT.values())
# What may follow a reasoning item: anything else that the model makes. A reference may stand for any of them.
_MADE_BY_MODEL = frozenset(CALL_TO_OUTPUT) | HOSTED | {"item_reference"}
_Call: TypeAlias = tuple[str, Item]  # the call's type and the call


def check_responses_body(body: dict[str, object]) -> Rejection | None:
    """Check what a body of `POST /v1/responses` holds beside its input."""
    if not isinstance(body.get("model"), str):
        return absent("bad_request", "model")
    if "input" not in body:
        return absent("bad_request", "input")
    if body.get("conversation") is not None:
        text = "The fake provider keeps no conversations; use 'previous_response_id' or send the whole input."
        return Rejection(rule="bad_request", message=text, param="conversation")
    tools = body.get("tools")
    for index, tool in enumerate(tools if isinstance(tools, list) else []):
        if isinstance(tool, dict) and tool.get("type") in ("function", "custom"):
            fault = name_fault(tool, f"tools[{index}]")
            if fault is not None:
                return fault
    return None


def check_responses(
    items: object, *, previous: Sequence[Mapping[str, object]] = (), stored: Mapping[str, Item] | None = None
) -> Rejection | None:
    """Judge an `input` as the Responses endpoint does.

    Args:
        items: The input: a string or a list, of the types that JSON has.
        previous: The items that `previous_response_id` stands for, oldest first: earlier input and output. They were
            accepted before, so only their open calls and ids matter.
        stored: Items that the server keeps, by `id`, for `item_reference`. `None` means that this is not known: then a
            reference may be any call, and an output without a visible call is given the benefit of the doubt.

    Returns:
        The first broken rule, or `None` if the input would be accepted.
    """
    if isinstance(items, str):
        items = input_items(items)
    if not isinstance(items, list):
        return wrong_type("bad_request", "input", "one of a string or array of input items", items)
    for index, item in enumerate(items):
        fault = item_fault(item, f"input[{index}]")
        if fault is not None:
            return fault
    resolved = _resolve(items, stored)
    if isinstance(resolved, Rejection):
        return resolved
    past = [dict(item) for item in previous]
    return _repeated_item(past, items) or _pairing_fault(past + resolved) or _reasoning_fault(resolved)


def input_items(value: object) -> list[Item]:
    """The items of an accepted input; a string is one user message."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return list(value) if isinstance(value, list) else []


def _resolve(items: list[Item], stored: Mapping[str, Item] | None) -> list[Item] | Rejection:
    """Put the stored item in the place of every reference to it."""
    if stored is None:
        return items
    resolved: list[Item] = []
    for item in items:
        if item_type(item) != "item_reference":
            resolved.append(item)
        elif (found := stored.get(str(item["id"]))) is not None:
            resolved.append(found)
        else:
            return Rejection(
                rule="not_found", message=f"Item with id '{item['id']}' not found.", param="input", status=404
            )
    return resolved


def _repeated_item(past: list[Item], items: list[Item]) -> Rejection | None:
    """An item's `id` names it once: sending it again beside `previous_response_id` doubles it."""
    seen = {item["id"] for item in past if isinstance(item.get("id"), str)}
    for item in items:
        # local_shell_call_output carries its *call's* id in `id`, so outputs are left to the pairing.
        if isinstance(item.get("id"), str) and item_type(item) not in _OUTPUTS:
            if item["id"] in seen:
                text = (
                    f"Duplicate item found with id {item['id']}. Remove duplicate items from your input and try again."
                )
                return Rejection(rule="duplicate_call", message=text, param="input")
            seen.add(item["id"])
    return None


def _pairing_fault(items: list[Item]) -> Rejection | None:
    """Match outputs to the calls before them, then name the first call that is still open."""
    open_calls: dict[str, _Call] = {}
    closed: dict[str, str] = {}  # call_id -> the type of the output that closed it
    opaque = any(item_type(item) == "item_reference" for item in items)
    for item in items:
        kind = item_type(item)
        if kind in CALL_TO_OUTPUT and _needs_output(kind, item):
            call_id = _call_id(item)
            if call_id in open_calls:
                text = f"Duplicate {_noun(kind)} found with call_id {call_id}."  # own words
                return Rejection(rule="duplicate_call", message=text, param="input")
            open_calls[call_id] = (kind, item)
            closed.pop(call_id, None)
        elif kind in _OUTPUTS and (call_id := _call_id(item)):
            fault = _output_fault(kind, item, open_calls.get(call_id), closed.get(call_id), opaque=opaque)
            if fault is not None:
                return fault
            open_calls.pop(call_id, None)
            closed[call_id] = kind
    for call_id, (kind, call) in open_calls.items():
        if call.get("async") is not True:  # an asynchronous call may be answered in a later request
            text = f"No tool output found for {_noun(kind)} {call_id}."
            return Rejection(rule="missing_result", message=text, param="input")
    return None


def _output_fault(
    kind: str, output: Item, call: _Call | None, closed_by: str | None, *, opaque: bool
) -> Rejection | None:
    call_id = _call_id(output)
    if call is None and closed_by == kind:
        text = f"Duplicate tool output for call_id: {call_id}"
        return Rejection(rule="duplicate_result", message=text, param="input")
    if call is None and opaque:
        return None
    if call is None or CALL_TO_OUTPUT[call[0]] != kind:
        # The server looks for a call of the output's own kind, so a mismatch reads like an orphan.
        text = f"No tool call found for {kind.replace('_', ' ')} with call_id {call_id}."
        rule: Rule = "orphan_result" if call is None and closed_by is None else "result_kind"
        return Rejection(rule=rule, message=text, param="input")
    wanted, got = call[1].get("caller"), output.get("caller")
    if _program(wanted) != _program(got):
        text = f"The 'caller' of the {kind.replace('_', ' ')} with call_id {call_id} does not match its call's."  # own words
        return Rejection(rule="result_kind", message=text, param="input")
    return None


def _reasoning_fault(items: list[Item]) -> Rejection | None:
    """A reasoning item must stand directly before an item that the model made: the one it led to."""
    for index, item in enumerate(items):
        if item_type(item) != "reasoning" or not isinstance(item.get("id"), str):
            continue
        after = items[index + 1] if index + 1 < len(items) else {}
        if item_type(after) not in _MADE_BY_MODEL and after.get("role") != "assistant":
            text = f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            return Rejection(rule="reasoning_pair", message=text, param="input")
    return None


def _needs_output(kind: str, item: Item) -> bool:
    # A tool search that the server ran brings its own output.
    return kind != "tool_search_call" or item.get("execution") == "client"


def _call_id(item: Item) -> str:
    """What pairs a call with its output; local shell items may carry it in `id` only."""
    value = item.get("call_id")
    if value is None and item_type(item) in ("local_shell_call", "local_shell_call_output"):
        value = item.get("id")
    return value if isinstance(value, str) else ""


def _program(caller: object) -> object:
    """The id of the program that called, or `None` for the model: `{"type": "direct"}` may be left out."""
    return caller.get("caller_id") if isinstance(caller, dict) and caller.get("type") == "program" else None


def _noun(kind: str) -> str:
    return kind.replace("_", " ")
