"""Why a request is refused: the value that every rule returns, and nothing that depends on a lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Rejection", "Rule"]

Rule: TypeAlias = Literal[
    "missing_result",  # a call has no result where the lane demands one
    "orphan_result",  # a result answers no call at all
    "unknown_result_id",  # a result stands in the right place and names a call that is not there
    "duplicate_result",  # a call is answered twice
    "duplicate_call",  # two calls share one id
    "misplaced_content",  # something stands between a call and its results, or behind the calls of a turn
    "result_kind",  # the result's type, caller or toolset differs from its call's
    "reasoning_pair",  # a reasoning item and the item it led to were torn apart
    "server_tool",  # a hosted call and its hosted result were torn apart, or the client answered for the host
    "bad_id",  # an id is missing, empty, too long or has foreign characters
    "bad_name",  # a tool name is missing, too long or has foreign characters
    "bad_content",  # the content of a message or result has a shape the lane refuses
    "bad_arguments",  # a call's arguments have the wrong type
    "bad_request",  # anything else about the body
    "not_found",  # no such route, stored response or stored item
    "unauthorized",  # no key was sent
    "script",  # not the caller's fault: the script has ended or failed
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """The first rule that a request breaks.

    Attributes:
        rule: Which kind of rule it is, stable across lanes and releases.
        message: What the provider says, in its own words where these are known.
        param: OpenAI's pointer to the offending field; Anthropic writes it into the message.
        code: OpenAI's machine-readable code, if it has one for this error.
        status: The HTTP status that goes with it.
    """

    rule: Rule
    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400
