"""The program that looks for a pattern, in a process of its own: a pattern that never ends is stopped by killing it (G4).

It is run by its path with an interpreter that loads nothing of the host's, so it imports the standard library only.

It reads UTF-8 (lone surrogates included): a line of figures, that many bytes of pattern, and then the text. It writes lines::

    ready                       it runs
    bad MESSAGE                 the pattern is none
    match LINE OFFSET EXCERPT   one match, in the order of the text
    passed OFFSET               everything before was searched
    full OFFSET                 as many matches as were asked for; the rest begins there
    end                         everything was searched

Offsets count characters from the text's beginning, lines from 1.
"""

import codecs
import faulthandler
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedIOBase, BufferedReader, FileIO
from typing import NamedTuple

__all__ = ["Order", "answer", "batches_of", "main"]

_READ = 1 << 18
_MEMORY = 2 << 30  # bytes: the stack of a pattern that backtracks over a long line grows without a bound of its own

Find = Callable[..., "re.Match[str] | None"]


class Order(NamedTuple):
    """What is asked for.

    Attributes:
        pattern_bytes: How many bytes of pattern follow.
        start: Matches that begin before this offset are passed over.
        max_matches: At most so many matches.
        max_chars: At most so many characters of all excerpts, and no more matches once that is reached.
        width: A line of more characters is shown around its match.
        seconds: After so long the process ends by itself, should its parent be gone.
    """

    pattern_bytes: int
    start: int
    max_matches: int
    max_chars: int
    width: int
    seconds: int


def answer(source: BufferedIOBase, order: Order) -> Iterator[str]:
    """Yield the lines that answer an order whose pattern and text come from `source`."""
    yield "ready"
    try:
        find = re.compile(source.read(order.pattern_bytes).decode("utf-8", "surrogatepass")).search
    except (re.error, OverflowError, RecursionError) as error:
        yield f"bad {' '.join(str(error).split()) or type(error).__name__}"
        return
    room, matches = order.max_chars, 0
    number, offset = 0, 0
    for lines in batches_of(source):
        for line in lines:
            number += 1
            bare = line.removesuffix("\r")
            if offset + len(line) >= order.start and find(bare) is not None:
                for place, excerpt, rest in _found(find, bare, max(0, order.start - offset), order.width):
                    yield f"match {number} {offset + place} {excerpt}"
                    matches, room = matches + 1, room - len(excerpt)
                    if matches >= order.max_matches or room <= 0:
                        yield f"full {offset + rest}"
                        return
            offset += len(line) + 1
        yield f"passed {offset}"
    yield "end"


def batches_of(source: BufferedIOBase) -> Iterator[list[str]]:
    """Yield the lines of a text, without the line feeds between them, as many at a time as have come."""
    decode = codecs.getincrementaldecoder("utf-8")("surrogatepass").decode
    begun: list[str] = []
    while data := source.read1(_READ):
        lines = decode(data).split("\n")
        begun.append(lines[0])
        if len(lines) > 1:
            lines[0] = "".join(begun)
            begun = [lines.pop()]
            yield lines
    yield ["".join(begun)]


def _found(find: Find, line: str, start: int, width: int) -> Iterator[tuple[int, str, int]]:
    """Yield each match of a line as its place, what to show of it, and the place from which to go on.

    A line that is shown whole is one match. A longer one, such as a whole document of JSON, may have many.
    """
    while start <= len(line) and (match := find(line, start)) is not None:
        place, end = match.span()
        if len(line) <= width:
            yield place, line, len(line) + 1
            return
        first = max(0, place - width // 4)
        last = min(len(line), first + width)
        start = max(last, end, start + 1)
        yield place, f"{'…' * (first > 0)}{line[first:last]}{'…' * (last < len(line))}", start


def _limit(seconds: int) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True)  # from C: no pattern keeps it from running
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def main() -> None:
    """Read an order and write its answer."""
    source, sink = BufferedReader(FileIO(0, closefd=False)), sys.stdout.buffer
    order = Order(*map(int, source.readline().split()))
    _limit(order.seconds)
    for line in answer(source, order):
        sink.write(f"{line}\n".encode("utf-8", "surrogatepass"))
        sink.flush()


if __name__ == "__main__":
    main()
