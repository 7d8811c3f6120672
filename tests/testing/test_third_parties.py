"""The checks against validators that others wrote.

Every list of a few messages that can be made of the pieces below goes to all of them. What a third party refuses,
ours must refuse; where ours refuses more, the rule is one that the third parties are known not to have.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import pytest
import toolrepair  # type: ignore[import-untyped]
import turnsafe
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion

from tests.testing.transcripts import USER, Json, assistant, chat_call, chat_result, result, text, use, user, uses
from toolbatch.testing import Rule, check_anthropic, check_chat

SAID: Json = {"role": "assistant", "content": "ok"}
CHAT_PIECES = [USER, SAID, chat_call("a"), chat_call("a", "b"), chat_call("a", "a"), chat_result("a"), chat_result("b")]
BLOCK_PIECES = [
    USER,
    assistant(text("ok")),
    uses("a"),
    uses("b"),
    uses("a", "b"),
    assistant(use("a"), text("ok")),
    user(result("a")),
    user(result("b"), result("a")),
    user(result("a"), result("a")),
    user(text("ok"), result("a")),
    user(result("a"), text("ok")),
]


def lists(pieces: list[Json], length: int) -> Iterator[list[Json]]:
    for size in range(length):  # the first message asks, so that only the pairing is in question
        for rest in product(pieces, repeat=size):
            yield [USER, *rest]


def mistral(messages: list[Json]) -> bool:
    validator = get_validator(TokenizerVersion("v13"), ValidationMode.serving)
    if messages[-1]["role"] == "assistant":
        messages = [*messages, USER]  # it lets an assistant speak last only in a mode of its own
    try:
        validator.validate_request(ChatCompletionRequest.from_openai(messages=messages, model="m"))
    except MistralCommonException:
        return False
    return True


def turnsafe_openai(messages: list[Json]) -> bool:
    return bool(turnsafe.validate(messages, provider="openai").ok)


def turnsafe_anthropic(messages: list[Json]) -> bool:
    return bool(turnsafe.validate(messages, provider="anthropic").ok)


def toolrepair_openai(messages: list[Json]) -> bool:
    return not toolrepair.validate(messages, format="openai")


def toolrepair_anthropic(messages: list[Json]) -> bool:
    # It knows nothing of merging: lists with one role twice in a row are not its own.
    if any(left["role"] == right["role"] for left, right in pairwise(messages)):
        return True
    return not toolrepair.validate(messages, format="anthropic")


Judge = Callable[[list[Json]], bool]


@pytest.mark.parametrize("accepts", [mistral, turnsafe_openai, toolrepair_openai])
def test_chat_lists_that_another_validator_refuses_are_refused(accepts: Judge) -> None:
    missed = [m for m in lists(CHAT_PIECES, 5) if check_chat(m) is None and not accepts(m)]
    assert missed == []


@pytest.mark.parametrize("accepts", [turnsafe_anthropic, toolrepair_anthropic])
def test_anthropic_lists_that_another_validator_refuses_are_refused(accepts: Judge) -> None:
    missed = [m for m in lists(BLOCK_PIECES, 4) if check_anthropic(m) is None and not accepts(m)]
    assert missed == []


def extra_rules(check: Callable[[Any], Any], judges: Sequence[Judge], all_lists: Iterator[list[Json]]) -> set[Rule]:
    """The rules for which ours refuses lists that every one of `judges` accepts."""
    return {refusal.rule for m in all_lists if (refusal := check(m)) and all(accepts(m) for accepts in judges)}


def test_chat_has_no_pairing_rule_that_nobody_else_has() -> None:
    judges: list[Judge] = [turnsafe_openai, toolrepair_openai, mistral]
    assert extra_rules(check_chat, judges, lists(CHAT_PIECES, 5)) == set()


def test_anthropic_is_stricter_about_content_behind_calls_only() -> None:
    assert extra_rules(check_anthropic, [turnsafe_anthropic], lists(BLOCK_PIECES, 4)) == {"misplaced_content"}
