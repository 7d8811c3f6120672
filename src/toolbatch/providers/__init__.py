"""One module a lane, pure functions: a provider's response to calls, a closed snapshot to the provider's results.

Behind `lane.py`, which users see, `_lane_turn.py` reads a whole response, and `_lane_stream.py` makes one of a stream's events.
What is to be sent is plain data, and typed as `Any`: each SDK has parameter types of its own, which take no `dict[str, Any]`.
"""

from . import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    gemini_interactions,
    mcp,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)

__all__ = [
    "anthropic",
    "bedrock",
    "cohere",
    "gemini",
    "gemini_interactions",
    "mcp",
    "mistral",
    "ollama",
    "openai_chat",
    "openai_responses",
]
