"""Fakes for tests: a strict provider for the real clients, and its rules as functions.

`FakeProvider` needs the `testing` extra (Starlette and uvicorn); the checks need nothing.
"""

from toolbatch.testing._anthropic import check_anthropic
from toolbatch.testing._chat import check_chat
from toolbatch.testing._provider import FakeProvider
from toolbatch.testing._rejection import Rejection, Rule
from toolbatch.testing._responses import check_responses
from toolbatch.testing._script import RecordedRequest, Reply, Script, ScriptedCall

__all__ = [
    "FakeProvider",
    "RecordedRequest",
    "Rejection",
    "Reply",
    "Rule",
    "Script",
    "ScriptedCall",
    "check_anthropic",
    "check_chat",
    "check_responses",
]
