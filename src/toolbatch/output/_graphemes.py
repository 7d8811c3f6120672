"""Where a text may be cut: not within what a reader sees as one character.

The rules are those of extended grapheme clusters (Unicode Annex 29) as far as a cut can do harm: combining marks, joined emoji, flags,
Hangul that is written in pieces, line ends of two characters, and surrogates that stand as a pair.
"""

from typing import Final
from unicodedata import category

__all__ = ["cut_after", "cut_before"]

_MAX_STEPS: Final = 64  # a "character" of thousands of marks is an attack on whoever draws it, and may be cut
_MAX_FLAGS: Final = 1000  # a longer row of flags may be cut within one
_JOINER: Final = "\u200d"


def cut_before(text: str, index: int) -> int:
    """Return the last place at or before `index` at which `text` may be cut; `index` where there is none near."""
    return _seek(text, index, -1)


def cut_after(text: str, index: int) -> int:
    """Return the first place at or after `index` at which `text` may be cut; `index` where there is none near."""
    return _seek(text, index, 1)


def _seek(text: str, index: int, step: int) -> int:
    place = index
    for _ in range(_MAX_STEPS):
        if not 0 < place < len(text) or not _is_joined(text, place):
            return place
        place += step
    return index


def _is_joined(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if after < "\u0300":
        return after == "\n" and before == "\r"
    if _JOINER in {before, after} or category(after)[0] == "M":
        return True
    if "\U0001f1e6" <= after <= "\U0001f1ff":
        return _flags_before(text, place) % 2 == 1
    return (
        "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= after <= "\U000e007f"  # tags, as in some flags
        or ("\udc00" <= after <= "\udfff" and "\ud800" <= before <= "\udbff")
        or ("\u1160" <= after <= "\u11ff" and ("\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"))
    )


def _flags_before(text: str, place: int) -> int:
    """How many regional indicators stand right before a place: two make a flag."""
    start = place
    while start and place - start < _MAX_FLAGS and "\U0001f1e6" <= text[start - 1] <= "\U0001f1ff":
        start -= 1
    return place - start
