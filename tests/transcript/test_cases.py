"""The collected transcripts come out as they should: list, forms, identity."""

import pytest

from tests.transcript.kit import Case, cases, frozen, summed
from toolbatch import transcript

CASES = cases()
BROKEN = [case for case in CASES if case.broken_forms]
VALID = [case for case in CASES if not case.broken_forms]

every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_the_cases_are_all_here() -> None:
    """Every collected case is one of the six lanes', and there are broken and valid ones (L8)."""
    assert {case.lane for case in CASES} == set(transcript.LANES)
    assert (len(BROKEN), len(VALID)) == (34, 8)


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_broken_transcript_is_repaired_as_expected(case: Case) -> None:
    """The view is the expected list or a listed alternative, and the repairs have exactly the case's forms (L1, L2)."""
    view = transcript.repair(case.input, case.lane)
    assert case.matches(view.messages), view.messages
    assert list(view.forms) == case.broken_forms


@every
def test_check_and_repair_name_a_fault_in_the_same_words(case: Case) -> None:
    """The same forms in the same order, the same calls, the same messages, the same sentence (L1)."""
    found = transcript.check(case.input, case.lane)
    repairs = transcript.repair(case.input, case.lane).repairs
    assert [(one.form, one.position) for one in found] == list(summed(repairs))
    assert summed(repairs) == summed(found)
    if len(repairs) == len(found):
        assert [repair.text.startswith(f"{one.text}: ") for one, repair in zip(found, repairs, strict=True)] == [
            True for _ in found
        ]


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.name)
def test_a_valid_transcript_comes_back_as_the_same_object(case: Case) -> None:
    """Nothing is found, nothing is repaired, and not even a copy is made (L4)."""
    view = transcript.repair(case.input, case.lane)
    assert view.messages is case.input
    assert (view.repairs, view.lossy, view.remaining) == ((), False, ())
    assert transcript.check(case.input, case.lane) == []


@every
def test_repairing_twice_equals_repairing_once(case: Case) -> None:
    """What `repair` returns is lawful, and comes back as the same object (L4)."""
    once = transcript.repair(case.input, case.lane).messages
    assert transcript.check(once, case.lane) == []
    assert transcript.repair(once, case.lane).messages is once


@every
def test_the_input_is_never_changed(case: Case) -> None:
    """Every list, message and block is afterwards what it was (L4)."""
    before = frozen(case.input)
    transcript.check(case.input, case.lane)
    transcript.repair(case.input, case.lane)
    assert case.input == before


@every
def test_an_expected_list_is_lawful(case: Case) -> None:
    """What a case expects is lawful, so that the law does not argue with its own cases (L8)."""
    assert transcript.check(case.expected[0], case.lane) == []
