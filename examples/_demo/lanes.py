"""The three APIs: how to send a history with the real SDK, and toolbatch's lane that reads and answers the response."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from toolbatch import LateNote, Snapshot, ToolCall
from toolbatch.providers import anthropic, openai_chat, openai_responses
from toolbatch.testing import FakeProvider


class Format(Protocol):
    """What the demo uses of a module of `toolbatch.providers`."""

    def calls(self, response: object) -> list[ToolCall]: ...
    def extend(self, messages: list[Any], response: object, snapshot: Snapshot) -> None: ...
    def notes(self, late: Sequence[LateNote]) -> list[dict[str, Any]]: ...


@dataclass(frozen=True, slots=True)
class Lane:
    """One API, behind what the demo needs of it."""

    name: str
    provider: FakeProvider
    format: Format
    send: Callable[[list[Any]], Awaitable[Any]]
    text: Callable[[Any], str]


@asynccontextmanager
async def chat_lane(provider: FakeProvider) -> AsyncIterator[Lane]:
    """Chat Completions, with the `openai` client."""
    async with AsyncOpenAI(base_url=provider.openai_base_url, api_key="demo", max_retries=0) as client:
        yield Lane(
            "Chat Completions",
            provider,
            openai_chat,
            lambda history: client.chat.completions.create(model="fake", messages=history),
            lambda response: response.choices[0].message.content or "",
        )


@asynccontextmanager
async def responses_lane(provider: FakeProvider) -> AsyncIterator[Lane]:
    """Responses, with the `openai` client."""
    async with AsyncOpenAI(base_url=provider.openai_base_url, api_key="demo", max_retries=0) as client:
        yield Lane(
            "Responses",
            provider,
            openai_responses,
            lambda history: client.responses.create(model="fake", input=history, store=False),
            lambda response: str(response.output_text),
        )


@asynccontextmanager
async def messages_lane(provider: FakeProvider) -> AsyncIterator[Lane]:
    """Messages, with the `anthropic` client."""
    async with AsyncAnthropic(base_url=provider.anthropic_base_url, api_key="demo", max_retries=0) as client:
        yield Lane(
            "Messages",
            provider,
            anthropic,
            lambda history: client.messages.create(model="fake", max_tokens=1000, messages=history),
            lambda response: "".join(block.text for block in response.content if block.type == "text"),
        )
