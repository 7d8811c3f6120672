"""The law of tool turns: what every provider demands of a stored conversation, checked and restored.

    transcript.check(messages, "anthropic")            # what is wrong, and where
    view = transcript.repair(messages, "anthropic")    # view.messages is what to send

Read `_matching.py` first (which result answers which call), then `_plan.py` (what is done about it), then one lane.
"""

from ._arguments import ArgumentsRepair, RepairedArguments, repair_arguments
from ._detect import detect
from ._findings import FORMS, Action, Form, Repair, RepairedTranscript, Violation
from ._law import LANES, LaneName, check, repair
from ._stamps import STAMP_KEY, Cause, Stamp, stamp, stamps_of, unstamped
from ._texts import INTERRUPTED_TEXT, NOT_STARTED_TEXT, SECOND_RESULT_TEXT

__all__ = [
    "FORMS",
    "INTERRUPTED_TEXT",
    "LANES",
    "NOT_STARTED_TEXT",
    "SECOND_RESULT_TEXT",
    "STAMP_KEY",
    "Action",
    "ArgumentsRepair",
    "Cause",
    "Form",
    "LaneName",
    "Repair",
    "RepairedArguments",
    "RepairedTranscript",
    "Stamp",
    "Violation",
    "check",
    "detect",
    "repair",
    "repair_arguments",
    "stamp",
    "stamps_of",
    "unstamped",
]
