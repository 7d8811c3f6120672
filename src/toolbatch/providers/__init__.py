"""One file a lane, pure functions: a provider's response to calls, a closed snapshot to the provider's results."""

from . import anthropic, openai_chat, openai_responses

__all__ = ["anthropic", "openai_chat", "openai_responses"]
