"""The estimate: what it promises by its table, and how far it is from tokenizers that models really use."""

from collections.abc import Callable
from pathlib import Path

import mistral_common
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from tests.output.texts import BADLY_KNOWN, TEXTS
from toolbatch.output import estimate_tokens
from toolbatch.output._estimate import _PIECE, surely_fits

EVERYTHING = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.fixture(scope="module")
def tekken() -> Callable[[str], int]:
    """Mistral's tokenizer, whose vocabulary comes with its package."""
    path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    tokenizer = Tekkenizer.from_file(path)
    return lambda text: len(tokenizer.encode(text, bos=False, eos=False))


@pytest.mark.parametrize("kind", TEXTS)
def test_the_estimate_is_near_the_count(kind: str, tekken: Callable[[str], int]) -> None:
    """Of each of these kinds of text, it is 0.6 to 1.6 times what either tokenizer counts."""
    sample = TEXTS[kind]
    for count in (sample.o200k, tekken(sample.text)):
        assert 0.6 <= estimate_tokens(sample.text) / count <= 1.6


@pytest.mark.parametrize("kind", BADLY_KNOWN)
def test_the_estimate_is_too_low_where_it_says_so(kind: str, tekken: Callable[[str], int]) -> None:
    """For texts that tokenizers hardly know it is too low, by no more than its description says."""
    sample = BADLY_KNOWN[kind]
    for count in (sample.o200k, tekken(sample.text)):
        assert 0.29 <= estimate_tokens(sample.text) / count <= 0.7


@pytest.mark.parametrize("kind", ["Chinese", "emoji", "log", "json"])
def test_it_is_nearer_than_four_characters_a_token(kind: str, tekken: Callable[[str], int]) -> None:
    """The usual rule of four characters a token is further off, on dense scripts, logs and numbers."""
    text = TEXTS[kind].text
    count = tekken(text)
    assert abs(estimate_tokens(text) / count - 1) < abs(len(text) / 4 / count - 1)


@pytest.mark.parametrize(
    ("character", "hundred"),
    [
        ("a", 20), ("z", 20), (" ", 20), ("\t", 20), ("A", 60), ("Z", 60), ("0", 75), ("9", 75),
        ("\n", 65), ("{", 65), ("\0", 65), ("\x7f", 65), ("\x80", 45), ("é", 45), ("\u07ff", 45), ("\u0800", 50), ("\u1fff", 50),
        ("\u2000", 100), ("\u2fff", 100), ("\u3000", 90), ("上", 90), ("\u9fff", 90), ("\ua000", 70), ("한", 70), ("\ud800", 70),
        (chr(0xDFFF), 70), ("\ue000", 100), ("\uffff", 100), ("\U00010000", 300), ("😀", 300), ("\U0010ffff", 300),
    ],
)  # fmt: skip
def test_each_character_has_the_weight_that_the_table_says(character: str, hundred: int) -> None:
    """A hundred of one character have the tokens of the table, at both ends of every range."""
    assert estimate_tokens(character * 100) == hundred


def test_no_text_has_no_tokens_and_any_other_has_one() -> None:
    """It is rounded up."""
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1
    assert estimate_tokens("a" * 5) == 1
    assert estimate_tokens("a" * 6) == 2


@given(EVERYTHING, EVERYTHING)
def test_it_adds_up(one: str, other: str) -> None:
    """Two texts together have as many as both, less what was rounded up once too often: so it can be foretold."""
    together = estimate_tokens(one + other)
    assert (
        estimate_tokens(one) + estimate_tokens(other) - 1 <= together <= estimate_tokens(one) + estimate_tokens(other)
    )


def test_a_long_text_is_counted_whole() -> None:
    """What is looked at piece by piece is added up, whatever stands at the pieces' edges."""
    text = "a😀" * (_PIECE * 3 // 2 + 1)
    assert estimate_tokens(text) == -(-(len(text) // 2) * 320 // 100)


@given(EVERYTHING)
def test_what_surely_fits_does_fit(text: str) -> None:
    """The quick look never lets a text through that is over the budget, by the estimate or by its bytes."""
    tokens = max(estimate_tokens(text), len(text.encode("utf-8", "surrogatepass")))
    assert not surely_fits(text, tokens - 1)
    assert surely_fits(text, 4 * len(text))
