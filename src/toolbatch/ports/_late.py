"""The words in which a late result is given to the model: one home for batches, lanes and stored transcripts (B20)."""

from typing import Final

__all__ = ["LATE_HEAD", "late_line"]

LATE_HEAD: Final = (
    "Results of earlier tool calls arrived after those calls had been answered. They replace nothing that was said "
    "before; use them if they still matter."
)
"""How such content begins. It is new content of a later turn: a turn that was sent is never rewritten."""


def late_line(name: str, call_id: str, generation: int | None = None) -> str:
    """Return the line over one late result. A stored transcript does not know generations."""
    turn = "" if generation is None else f", tool turn {generation}"
    return f"{name} (call {call_id}{turn}) returned:"
