"""Rich results as one text, and that text's truncation as parts again. Images and what else is no text stay as they are (G2)."""

from toolbatch.core import Json, Part, Text

from ._shorten import Truncation

__all__ = ["joined", "split_again"]

Parts = tuple[Part, ...]


def joined(parts: Parts) -> str:
    """Return the text of all parts that are text, a line end between two."""
    return "\n".join(part.text for part in parts if isinstance(part, Text | Json))


def split_again(parts: Parts, cut: Truncation) -> Parts:
    """Return the parts as a truncation of their joined text leaves them, in their order.

    A part that is kept whole is the same object, one that lies in the gap is left out, and one at its edge is a `Text`. The notice
    stands once, where the gap begins.
    """
    size = cut.head + cut.gone_chars + cut.tail
    notice = cut.text[cut.head : len(cut.text) - cut.tail]
    made: list[Part] = []
    gap = (cut.head, size - cut.tail)
    position = 0
    for part in parts:
        if not isinstance(part, Text | Json):
            made.append(part)
            continue
        end = position + len(part.text)
        if end < gap[0] or position >= gap[1]:
            made.append(part)
        else:
            before = part.text[: max(0, gap[0] - position)]
            after = part.text[max(0, gap[1] - position) :]
            made.extend(_pieces(part, before, notice, after))
            notice = ""
        position = end + 1
    return tuple(made)


def _pieces(part: Text | Json, before: str, notice: str, after: str) -> list[Part]:
    if before == part.text and notice:
        return [part, Text(notice)] if before else [Text(notice)]  # the gap begins right behind it
    text = f"{before}{notice}{after}"
    return [Text(text)] if text else []
