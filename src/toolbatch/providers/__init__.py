"""One file a lane, pure functions: a provider's response to calls, a closed snapshot to the provider's results."""

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
