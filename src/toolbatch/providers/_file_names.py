"""Names of files on the wire, for lanes that check them: in an alphabet, of a length, and each once."""

import re
from collections.abc import Collection

__all__ = ["file_label"]


def file_label(wanted: str, illegal: re.Pattern[str], max_chars: int, taken: Collection[str]) -> str:
    """Return `wanted` as a name that the lane takes and that is not `taken`: the same for the same arguments.

    Args:
        wanted: What to call the file. What is `illegal` in it becomes a blank, and blanks never stand in a row.
        illegal: What the lane takes no character of. Letters, digits, blanks and parentheses must be legal.
        max_chars: The lane's bound.
        taken: Names that are in use. A repeated one gets a number: `report`, `report (2)`. Case does not tell names apart.
    """
    plain = " ".join(illegal.sub(" ", wanted).split())[:max_chars].rstrip() or "file"
    used = {name.lower() for name in taken}
    label, count = plain, 1
    while label.lower() in used:
        count += 1
        ending = f" ({count})"
        label = plain[: max_chars - len(ending)].rstrip() + ending
    return label
