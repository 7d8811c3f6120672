"""Each example runs by itself, from anywhere, and says what its reader came for."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
SAID = {
    "agent.py": "\n1 flight booked, 3 requests, 0 refused\n",
    "demo.py": "\nOK: 27 requests, 0 refused: every call was answered once, in order, whatever happened.\n",
    "durable_agent.py": "2 payments, 0 of them twice.\n",
    "fastapi_disconnect.py": "2 requests, 0 refused",
    "http_tool.py": 'flaky      3 attempt(s): "fine"\n',
    "langgraph_agent.py": "I could find out about nothing else.",
    "outlive_disconnect.py": "[comes back] Your hotel in Oslo is booked.",
    "plain_asyncio.py": '{"error":{"code":"timeout"',
    "pydantic_ai_agent.py": "I could find out about nothing else.",
    "traced_agent.py": "\n    execute_tool scrape  [timed_out, timeout]\n      late_end scrape  [success]\n",
    "without_toolbatch.py": "400: No tool output found for function call call_1.",
}


@pytest.mark.parametrize("name", SAID)
def test_it_runs(name: str, tmp_path: Path) -> None:
    """It ends with success, shows what it promises, and leaves nothing on stderr: no warning, no leaked task."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=50, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    assert SAID[name] in done.stdout
    assert "\x1b" not in done.stdout


def test_every_example_is_run() -> None:
    """No example is left out above."""
    assert {path.name for path in EXAMPLES.glob("[!_]*.py")} == set(SAID)
