"""The diff of two lists of messages: what it says is true, and all of it is said."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolbatch.cli._diff import diff


class Message(dict[str, int]):
    """A message that is told by its identity."""


@given(data=st.data(), size=st.integers(0, 30))
def test_applying_the_diff_gives_the_other_list(data: Any, size: int) -> None:
    """Removed lines taken out and added ones put in, at the places that the hunks name, make `before` to `after`."""
    before: list[object] = [Message(n=n) for n in range(size)]
    after = list(before)
    for n in range(data.draw(st.integers(0, 5))):
        if after and data.draw(st.booleans()):
            del after[data.draw(st.integers(0, len(after) - 1))]
        after.insert(data.draw(st.integers(0, len(after))), Message(n=100 + n))
        if before and data.draw(st.booleans()):
            moved = data.draw(st.sampled_from(before))
            if moved in after:
                after.remove(moved)
                after.insert(data.draw(st.integers(0, len(after))), moved)
    lines = [line.rstrip("\n") for line in diff(before, after, "x")]
    assert bool(lines) == (list(map(id, before)) != list(map(id, after)))
    made: list[str] = []
    done = 0
    for line in lines[2:]:
        if line.startswith("@@"):
            start, length = map(int, line.split()[1][1:].split(","))
            made += [str(message).replace("'", '"') for message in before[done : start - 1]]
            done = start - 1 + length
        elif line[0] != "-":
            made.append(line[1:])
    made += [str(message).replace("'", '"') for message in before[done:]]
    assert made == [str(message).replace("'", '"') for message in after]
