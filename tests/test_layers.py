"""The layers of DESIGN.md hold, and the linter that says so is awake: each way of breaking them is noticed.

A linter that is asleep looks like one that is happy. So the tree is copied, a pass is demanded, and then one rule at a time is
broken and a failure demanded that names it.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "toolbatch"

LAYERS = "each layer imports only from the layers below it"
SANS_IO = "the core and the lanes are sans-IO"
NO_ROOT = "nothing inside imports the root"
CONTRACTS = (LAYERS, SANS_IO, NO_ROOT)

UNDER_TYPE_CHECKING = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {0} import {1}\n"
INSIDE_A_FUNCTION = "def f() -> None:\n    import {0}\n"

VIOLATIONS = {
    "core imports asyncio": ("core/_run.py", "import asyncio\n", SANS_IO),
    "core imports anyio": ("core/_text.py", "from anyio import Event\n", SANS_IO),
    "core imports time inside a function": ("core/_closure.py", INSIDE_A_FUNCTION.format("time"), SANS_IO),
    "core imports threading under TYPE_CHECKING": ("core/_limits.py", UNDER_TYPE_CHECKING.format("threading", "Lock"), SANS_IO),
    "core imports logging": ("core/_errors.py", "import logging\n", SANS_IO),
    "core imports pydantic": ("core/_encode.py", "import pydantic\n", SANS_IO),
    "providers import an SDK": ("providers/__init__.py", "import openai\n", SANS_IO),
    "core imports batch": ("core/_calls.py", "from toolbatch import batch\n", LAYERS),
    "core imports batch inside a function": ("core/_calls.py", INSIDE_A_FUNCTION.format("toolbatch.batch"), LAYERS),
    "core imports batch under TYPE_CHECKING": ("core/_run.py", UNDER_TYPE_CHECKING.format("toolbatch", "batch"), LAYERS),
    "core imports ports": ("core/_answers.py", "from .. import ports\n", LAYERS),
    "providers import batch": ("providers/__init__.py", "import toolbatch.batch\n", LAYERS),
    "observe imports batch": ("observe/__init__.py", "import toolbatch.batch\n", LAYERS),
    "batch imports testing": ("batch/__init__.py", "import toolbatch.testing\n", LAYERS),
    "a new module is in no layer": ("novelty.py", "", LAYERS),
    "a new folder is in no layer": ("novelty/__init__.py", "", LAYERS),
    "the core's root imports the root": ("core/__init__.py", "import toolbatch\n", NO_ROOT),
    "a file of the core imports the root": ("core/_run.py", "from toolbatch import ToolBatch\n", NO_ROOT),
    "a file of batch imports the root": ("batch/_new.py", "from .. import ToolCall\n", NO_ROOT),
}  # fmt: skip


def lint(tree: Path) -> "subprocess.CompletedProcess[str]":
    """Check the contracts of `pyproject.toml` on the package under `tree`."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as main; main()",
            "--no-cache",
            "--no-logo",
        ],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package and its configuration."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_layers_hold() -> None:
    """Every contract is kept by the source as it is."""
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    for contract in CONTRACTS:
        assert f"{contract} KEPT" in result.stdout


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_the_linter_is_awake(tree: Path, violation: str) -> None:
    """A copy of the tree with one rule broken fails, and for that rule."""
    where, line, contract = VIOLATIONS[violation]
    file = tree / "src" / "toolbatch" / where
    file.parent.mkdir(exist_ok=True)
    with file.open("a", encoding="utf-8") as text:
        text.write(line)
    result = lint(tree)
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract} BROKEN" in result.stdout


def test_an_unbroken_copy_passes(tree: Path) -> None:
    """The copy itself is no reason to fail: it is the copy that is checked, and it keeps every contract."""
    result = lint(tree)
    assert result.returncode == 0, result.stdout + result.stderr


def foreign(file: Path) -> list[str]:
    """The private modules of other packages that a file of the source imports."""
    package = file.relative_to(SOURCE).parts[0]
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level <= 1, f"{file} climbs out of its package"
            names = [f"{node.module}.{name.name}" for name in node.names] if node.level == 0 else []
        else:
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        found += [name for name in names if re.match(rf"toolbatch\.(?!{package}\.)\w+\._", name)]
    return found


def test_no_private_module_of_another_package_is_used() -> None:
    """What one package needs of another is a public name, or in the other's `kit`."""
    assert {file: names for file in SOURCE.rglob("*.py") if (names := foreign(file))} == {}


@pytest.mark.parametrize(
    "line", ["from toolbatch.core._text import cut", "from toolbatch.core import _text", "import toolbatch.core._text"]
)
def test_private_imports_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Each way of writing one is noticed, also inside a function; one's own is not."""
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    for package, expected in (("batch", ["toolbatch.core._text"]), ("core", [])):
        (tmp_path / package).mkdir()
        file = tmp_path / package / "_new.py"
        file.write_text(f"def f():\n    {line}\n", encoding="utf-8")
        assert [name.removesuffix(".cut") for name in foreign(file)] == expected


def test_dynamic_imports_are_banned() -> None:
    """What the layer linter can't see, an import by name, is refused by ruff (TID251)."""
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--no-cache",
            "--select",
            "TID251",
            "--stdin-filename",
            "src/toolbatch/core/_new.py",
            "-",
        ],
        cwd=ROOT,
        input='import importlib\n\nimportlib.import_module("toolbatch.batch")\n',
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert result.returncode == 1, result.stdout + result.stderr
    assert "TID251" in result.stdout
