"""What a lane is made of, for whoever writes one outside this package: the integrations' messages are lanes too.

No part of what is promised to users: it changes when the lanes do.
"""

from ._content import Block, Carrier, content_of, document_text, place
from ._export import Answer, answers, exported, failure_text, late_text, require_list
from ._ids import IdRule, mint, unused
from ._plain import field, items, plain
from ._read import FILTERED, TOKEN_LIMIT, Draft, Turn, cut_off, not_requested, require_choice
from ._replay import arguments_object, arguments_text, replay_name
from ._tail import require_answered

__all__ = [
    "FILTERED",
    "TOKEN_LIMIT",
    "Answer",
    "Block",
    "Carrier",
    "Draft",
    "IdRule",
    "Turn",
    "answers",
    "arguments_object",
    "arguments_text",
    "content_of",
    "cut_off",
    "document_text",
    "exported",
    "failure_text",
    "field",
    "items",
    "late_text",
    "mint",
    "not_requested",
    "place",
    "plain",
    "replay_name",
    "require_answered",
    "require_choice",
    "require_list",
    "unused",
]
