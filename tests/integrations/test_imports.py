"""What importing costs: no SDK is loaded unless its own module is asked for (P8)."""

import subprocess
import sys

import pytest

SDKS = {"langchain_core", "langgraph", "pydantic_ai", "agents", "mcp", "mcp_types", "openai"}


@pytest.mark.parametrize("name", ["toolbatch.integrations", "toolbatch.integrations.langchain"])
def test_it_loads_no_sdk(name: str) -> None:
    """The package loads none, and neither does the module that may be needed where no LangChain is installed."""
    code = f"import sys, {name}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=50)
    loaded = {module.partition(".")[0] for module in done.stdout.split()}
    assert "toolbatch" in loaded
    assert loaded & SDKS == set()
