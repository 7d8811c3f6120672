"""The code blocks of README and docs are tests, each page one story from top to bottom."""

import gc

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["README.md", "docs/*.md", "docs/*/*.md"]
).pytest()


def pytest_collection_finish() -> None:
    """Keep the modules and the thousands of tests out of every later collection: tests that collect garbage then take no time."""
    gc.collect()
    gc.freeze()
