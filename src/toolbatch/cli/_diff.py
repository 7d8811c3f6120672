"""A diff with one line a message.

`difflib` compares texts, and takes a quarter of a minute for ten thousand messages that repeat. Here it is known which message
is which, since the law keeps what it does not change by identity: one pass is enough.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import count

__all__ = ["diff"]

_CONTEXT = 3
_Step = tuple[str, object, int, int]  # " ", "-" or "+", the message, and how many were before it on either side


def diff(before: Sequence[object], after: Sequence[object], name: str) -> Iterator[str]:
    """Yield the lines of a unified diff of two lists of messages; none if they hold the same objects in the same order."""
    steps = list(_steps(before, after))
    changes = [index for index, step in enumerate(steps) if step[0] != " "]
    if not changes:
        return
    yield f"--- {name}\n"
    yield f"+++ {name} (repaired)\n"
    first = last = changes[0]
    for index in [*changes[1:], None]:
        if index is not None and index - last <= 2 * _CONTEXT:
            last = index
            continue
        yield from _hunk(steps[max(0, first - _CONTEXT) : last + _CONTEXT + 1])
        if index is not None:
            first = last = index


def _steps(before: Sequence[object], after: Sequence[object]) -> Iterator[_Step]:
    places = dict(zip(map(id, after), count(), strict=False))
    done = 0
    for index, message in enumerate(before):
        place = places.get(id(message), -1)
        if place < done:  # changed, left out, or moved to an earlier place
            yield "-", message, index, done
            continue
        for added in range(done, place):
            yield "+", after[added], index, added
        yield " ", message, index, place
        done = place + 1
    for added in range(done, len(after)):
        yield "+", after[added], len(before), added


def _hunk(steps: Sequence[_Step]) -> Iterator[str]:
    _, _, old, new = steps[0]
    removed = sum(sign != "+" for sign, *_ in steps)
    added = sum(sign != "-" for sign, *_ in steps)
    yield f"@@ -{old + 1},{removed} +{new + 1},{added} @@\n"
    for sign, message, *_ in steps:
        yield f"{sign}{json.dumps(message, ensure_ascii=False)}\n"
