"""The laws and the stories are good enough: together they notice every wrong cell that the table could have."""

from collections.abc import Iterator

from tests.core.tables import LAWS, STORIES, Broken, Mutant, mutants, play
from toolbatch.core import TABLE, Input, State


def accusers(mutant: Mutant) -> Iterator[str]:
    """Name each law and story that notices the mutant."""
    for law in LAWS:
        try:
            law(mutant.table)
        except Broken:
            yield law.__name__
    for story in STORIES:
        try:
            play(story, mutant.table)
        except Broken:
            yield story.words


def test_every_wrong_cell_is_noticed() -> None:
    """No table that differs from ours in one cell keeps all laws and tells all stories (C17)."""
    assert [mutant.name for mutant in mutants() if not any(accusers(mutant))] == []


def test_all_wrong_cells_were_tried() -> None:
    """Each cell was given each other state, `LATE`, and a gap; and none of them is the table itself."""
    tried = list(mutants())
    assert len(tried) == len({mutant.name for mutant in tried}) == len(State) * len(Input) * (len(State) + 1)
    assert all(mutant.table != TABLE for mutant in tried)


def test_every_story_and_law_earns_its_place() -> None:
    """None of them is idle: each notices some wrong table, and each wrong transition is told by a story as well."""
    noticed: dict[str, int] = {}
    told = {story.words for story in STORIES}
    untold = []
    for mutant in mutants():
        names = set(accusers(mutant))
        for name in names:
            noticed[name] = noticed.get(name, 0) + 1
        if not names & told:
            untold.append(mutant.name)
    assert set(noticed) == {law.__name__ for law in LAWS} | told
    assert untold == []
