"""Fakes for tests: a strict provider for the real clients, and its rules as functions.

`FakeProvider` needs the `testing` extra (Starlette and uvicorn); the checks need nothing.
"""

from toolbatch.testing._anthropic import check_anthropic
from toolbatch.testing._backend_checks import check_backend
from toolbatch.testing._backend_tools import BACKEND_TOOLS, BACKEND_VARIABLE
from toolbatch.testing._bedrock import check_bedrock
from toolbatch.testing._chat import check_chat
from toolbatch.testing._gemini import check_gemini
from toolbatch.testing._journal_checks import check_journal
from toolbatch.testing._provider import FakeProvider
from toolbatch.testing._rejection import Rejection, Rule
from toolbatch.testing._responses import check_responses
from toolbatch.testing._script import RecordedRequest, Reply, Script, ScriptedCall
from toolbatch.testing._spill_checks import check_spill_store
from toolbatch.testing._store_checks import check_store

__all__ = [
    "BACKEND_TOOLS",
    "BACKEND_VARIABLE",
    "FakeProvider",
    "RecordedRequest",
    "Rejection",
    "Reply",
    "Rule",
    "Script",
    "ScriptedCall",
    "check_anthropic",
    "check_backend",
    "check_bedrock",
    "check_chat",
    "check_gemini",
    "check_journal",
    "check_responses",
    "check_spill_store",
    "check_store",
]
