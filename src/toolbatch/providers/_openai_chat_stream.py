"""Chat Completions as a stream."""

from typing import Any, final

from ._openai_chat_turn import read_turn
from ._plain import field
from ._read import Turn
from ._stream_chat import ChatCollector

__all__ = ["StreamCollector"]


@final
class StreamCollector(ChatCollector):
    """Puts a stream of Chat Completions together.

        collector = openai_chat.StreamCollector()
        async for chunk in await client.chat.completions.create(..., stream=True):
            collector.add(chunk)
        calls = collector.calls()
        ...
        openai_chat.extend(messages, collector.response(), batch.result)

    An event is a `ChatCompletionChunk`, an event of the SDK's `.stream()` helper, or the data of a server-sent event, the last
    of which is `[DONE]`. All choices are put together; the one that begins first is read for calls, since only one can become history.

    This lane has no mark for the end of a call. `add` takes it to be over when its arguments are one whole JSON object, which
    no token limit can have cut and to which nothing can be added, and the next call begins or the finish reason comes. The
    free text of a custom call shows no end, so it is never returned early.

    Calls are told apart by `index`, but a fragment with another id and a name, or with a name and arguments behind a whole
    object, begins a call of its own, whatever its index is (LANES 14.11). A response without a finish reason has broken off,
    also where `[DONE]` came.

    A stream that goes on for ever ends at `max_chars`, about, in characters, as in every lane (`Collector`).
    """

    def _take(self, event: Any) -> bool:
        chunk = field(event, "chunk") if field(event, "type") == "chunk" else None  # of the helper
        return super()._take(event if chunk is None else chunk)

    def _turn(self, response: dict[str, Any]) -> Turn:
        return read_turn(response)
