"""Ids that a lane can use. A gateway may send none, the same one twice, or one that its own strict cousin refuses (P6)."""

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from toolbatch.core import encode

__all__ = ["IdRule", "assign", "is_blank", "mint", "unused"]

_MAX_BYTES: Final = 512  # what the core takes by default (`Limits.max_id_bytes`)
_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_UNSET: Final = "null"  # the Mistral SDK's default for an id that it did not get, sent on as text by gateways


@dataclass(frozen=True, slots=True)
class IdRule:
    """What a lane accepts as the id of a call.

    Attributes:
        max_chars: The longest id; `None` where the provider names no bound.
        alphabet: What the whole id must match; `None` where any text will do.
        exact_chars: The one length that ids must have, of ASCII letters and digits alone; `None` where there is no such rule.
    """

    max_chars: int | None = None
    alphabet: re.Pattern[str] | None = None
    exact_chars: int | None = None

    def usable(self, wire_id: object) -> bool:
        """Whether the provider's id can stay as it is."""
        if not isinstance(wire_id, str) or is_blank(wire_id):
            return False
        if self.max_chars is not None and len(wire_id) > self.max_chars:
            return False
        if self.alphabet is not None and self.alphabet.fullmatch(wire_id) is None:
            return False
        if self.exact_chars is not None:
            return len(wire_id) == self.exact_chars and wire_id.isascii() and wire_id.isalnum()
        try:
            return len(wire_id.encode()) <= _MAX_BYTES
        except UnicodeEncodeError:  # a lone surrogate is not text
            return False


def is_blank(wire_id: object) -> bool:
    """Whether what stands for an id, or for another of a provider's words, says nothing."""
    return wire_id is None or (isinstance(wire_id, str) and (not wire_id.strip() or wire_id == _UNSET))


def mint(seed: Sequence[object], taken: Collection[str], exact_chars: int | None = None) -> str:
    """Return an id of ours that is not `taken`: the same for the same `seed` (P6).

    Every lane accepts it, but for one that wants `exact_chars`, for which it has that many letters and digits.

    It is a digest and not a counter or random, so that a response read again after a crash gives the same ids, and two
    turns that both lack ids give different ones.
    """
    salt = 0
    while True:
        digest = hashlib.sha256(encode([salt, *map(repr, seed)]).encode()).hexdigest()
        minted = f"call_{digest[:32]}" if exact_chars is None else _alphanumeric(digest, exact_chars)
        if minted not in taken:
            return minted
        salt += 1


def _alphanumeric(digest: str, chars: int) -> str:
    number, letters = int(digest, 16), ""
    for _ in range(chars):
        number, letter = divmod(number, len(_LETTERS))
        letters += _LETTERS[letter]
    return letters


def assign(wire_ids: Sequence[object], rule: IdRule, seed_of: Callable[[int], Sequence[object]]) -> list[str]:
    """Return one id a call, distinct and fit for the lane. Of repeated ids the first keeps its own.

    Args:
        wire_ids: What the provider sent, in order, of any type; `None` where it sent nothing.
        rule: What the lane accepts.
        seed_of: Gives what tells the call at a position from all others; asked only where an id has to be made.
    """
    taken = {wire_id for wire_id in wire_ids if isinstance(wire_id, str)}
    kept: set[str] = set()
    assigned: list[str] = []
    for position, wire_id in enumerate(wire_ids):
        if isinstance(wire_id, str) and wire_id not in kept and rule.usable(wire_id):
            kept.add(wire_id)
            assigned.append(str(wire_id))
        else:
            minted = mint((position, *seed_of(position)), taken, rule.exact_chars)
            taken.add(minted)
            assigned.append(minted)
    return assigned


def unused(ids: Sequence[str], used: Collection[str]) -> list[str]:
    """Return `ids`, which are distinct, with a fresh one for each that is `used` elsewhere: the same for the same ids."""
    taken = {*ids, *used}
    fresh: list[str] = []
    for position, call_id in enumerate(ids):
        made = mint(("used before", position, call_id), taken) if call_id in used else call_id
        taken.add(made)
        fresh.append(made)
    return fresh
