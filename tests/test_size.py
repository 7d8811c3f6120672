"""The README promises a reading time: this keeps the source as small as that takes."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "toolbatch"
FILES = sorted(SOURCE.rglob("*.py"))

LINES_IN_A_FILE = 400
LINES_IN_A_FUNCTION = 60
LINES_IN_NINE_FUNCTIONS_OF_TEN = 40
LINES_IN_THE_CORE = 2300  # docstrings included, which are half of it; rich content is 350 lines of it


def length(file: Path) -> int:
    """How many lines a file has."""
    return len(file.read_text(encoding="utf-8").splitlines())


def functions() -> Iterator[tuple[int, str]]:
    """The length of each function from its first decorator to its last line, and where it is."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                assert node.end_lineno is not None
                yield node.end_lineno - first + 1, f"{file.relative_to(SOURCE)}:{first} {node.name}"


def test_no_file_is_too_long_to_read_at_once() -> None:
    """No source file is over 400 lines."""
    assert FILES
    assert [f"{file.relative_to(SOURCE)}: {length(file)}" for file in FILES if length(file) > LINES_IN_A_FILE] == []


def test_no_function_is_too_long_to_see_at_once() -> None:
    """No function, its docstring included, is over 60 lines."""
    assert [f"{where}: {lines}" for lines, where in functions() if lines > LINES_IN_A_FUNCTION] == []


def test_most_functions_are_short() -> None:
    """Nine functions of ten have at most 40 lines."""
    lengths = sorted(lines for lines, _ in functions())
    assert lengths[len(lengths) * 9 // 10] <= LINES_IN_NINE_FUNCTIONS_OF_TEN


def test_the_core_can_be_read_in_one_sitting() -> None:
    """The core as a whole stays small."""
    assert sum(map(length, (SOURCE / "core").glob("*.py"))) <= LINES_IN_THE_CORE
