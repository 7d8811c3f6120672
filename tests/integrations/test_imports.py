"""What importing costs, and from where: no SDK is loaded unless its own module is asked for (P8)."""

import subprocess
import sys
from pathlib import Path

import pytest

import toolbatch

SOURCE = Path(toolbatch.__file__).parent
SDKS = {"langchain_core", "langgraph", "pydantic_ai", "agents", "mcp", "mcp_types", "openai"}


@pytest.mark.parametrize("name", ["toolbatch.integrations", "toolbatch.integrations.langchain"])
def test_it_loads_no_sdk(name: str) -> None:
    """The package loads none, and neither does the module that may be needed where no LangChain is installed."""
    code = f"import sys, {name}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=50)
    loaded = {module.partition(".")[0] for module in done.stdout.split()}
    assert "toolbatch" in loaded
    assert loaded & SDKS == set()


def test_kits_are_loaded_by_who_needs_them() -> None:
    """They cost users nothing: importing the root loads none."""
    code = f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); import toolbatch; print(toolbatch.__file__, *sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=50)
    found, *loaded = done.stdout.split()
    assert Path(found).parent == SOURCE
    assert [name for name in loaded if name.startswith("toolbatch") and name.endswith(".kit")] == []
