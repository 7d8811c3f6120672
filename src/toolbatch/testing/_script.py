"""What the fake provider says: replies, and who plays them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from toolbatch.testing._rejection import Rejection

__all__ = ["RecordedRequest", "Reply", "Script", "ScriptPlayer", "ScriptedCall"]


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call that the model announces.

    Attributes:
        id: The id that the result must name (`call_id` in Responses). Gemini's calls may go without: an empty one is not sent.
        name: The tool's name.
        arguments: An object, or raw text: malformed or cut JSON, or a custom tool's free text. Anthropic and Bedrock have
            raw text only in a stream; without one, and in Gemini, text that is no JSON object is sent as `{}`.
        custom: Announce a custom tool call (OpenAI's lanes only).
        extra: More wire fields of the call, such as `{"async": True}`, `caller`, `namespace` or `toolset_name`.
    """

    id: str
    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)
    custom: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The arguments as the wire carries them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)

    @property
    def object(self) -> dict[str, Any]:
        """The arguments for a wire that carries an object: none, where they are no object."""
        try:
            parsed = json.loads(self.text)
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model, for any lane.

    Attributes:
        text: What it says before its calls.
        calls: The calls it announces, in order.
        stop: The lane's own stop reason in place of the usual one: `"length"` in Chat, `"max_tokens"` or `"pause_turn"` in
            Messages, `"MAX_TOKENS"` in Gemini, `"end_turn"` beside calls in Bedrock; in Responses the reason for which the
            response is incomplete (`"max_output_tokens"`).
        thinking: A signed thinking block (Messages, Bedrock), a reasoning item (Responses), or a thought and a signature on the
            first call (Gemini, whose third generation signs in any case). Chat has neither and leaves it out.
        blocks: Raw blocks (Messages, Bedrock), parts (Gemini), items (Responses) or entries of `tool_calls` (Chat), put before
            the calls as they are: hosted calls with their results, or calls of a shape that `ScriptedCall` refuses to have.
    """

    text: str = ""
    calls: Sequence[ScriptedCall] = ()
    stop: str | None = None
    thinking: str | None = None
    blocks: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """A request as it came in, and how it was answered.

    Attributes:
        path: The route, such as `/v1/chat/completions`.
        body: The parsed JSON object; empty if there was none.
        stream: Whether it asked for a stream.
        rejection: Why it was refused, or `None`.
    """

    path: str
    body: dict[str, Any]
    stream: bool = False
    rejection: Rejection | None = None

    @property
    def status(self) -> int:
        """The HTTP status that it got."""
        return 200 if self.rejection is None else self.rejection.status

    @property
    def error(self) -> str | None:
        """The error text that it got, if it was refused."""
        return None if self.rejection is None else self.rejection.message


Script: TypeAlias = Sequence[Reply] | Callable[[RecordedRequest], Reply]


class ScriptPlayer:
    """Gives the next reply of a script, once for each accepted request."""

    def __init__(self, script: Script) -> None:
        self._script: Script = script if callable(script) else tuple(script)
        self.played = 0

    @property
    def remaining(self) -> int | None:
        """How many replies are left; `None` for a callable, which has no end."""
        return None if callable(self._script) else len(self._script) - self.played

    def next(self, request: RecordedRequest) -> Reply | Rejection:
        """Take the next reply, or say with a status of 500 why there is none."""
        if callable(self._script):
            try:
                reply = self._script(request)
            except Exception as exc:  # noqa: BLE001 - a script is the test's own code: its failure must reach the test
                return Rejection(rule="script", message=f"The fake provider's script raised {exc!r}.", status=500)
        elif self.played == len(self._script):
            text = f"The fake provider's script has ended: all {self.played} replies were given, and no further one is scripted."
            return Rejection(rule="script", message=text, status=500)
        else:
            reply = self._script[self.played]
        self.played += 1
        return reply
