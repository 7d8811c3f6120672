"""One module a lane, pure functions: a provider's response to calls, a closed snapshot to the provider's results.

Behind `lane.py`, which users see, `_lane_turn.py` reads a whole response, and `_lane_stream.py` makes one of a stream's events.
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
