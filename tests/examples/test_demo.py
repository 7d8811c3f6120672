"""The demo checks itself; here is that its checks bite, and what a terminal shows."""

import os
import re
import subprocess
import sys
from typing import Any

import openai
import pytest

from examples._demo.lanes import chat_lane
from examples._demo.screen import Silent
from examples._demo.tools import Agency
from examples.demo import BrokenPromiseError, converse, main
from tests.examples.test_scripts import EXAMPLES
from toolbatch import Snapshot
from toolbatch.providers import openai_chat


def in_a_terminal(*command: str | os.PathLike[str]) -> tuple[int, str]:
    """Run a command whose stdout is a terminal, and return its exit code and what it wrote."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "HTTP_PROXY": "http://127.0.0.1:9"}
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        written = bytearray()
        try:
            while block := os.read(ours, 65536):
                written += block
        except OSError:  # Linux says so when the last writer has closed a terminal
            pass
        os.close(ours)
    return process.returncode, written.decode()


def test_a_terminal_gets_tables_and_colours() -> None:
    """With rich and a terminal there are colours, and each call has a row that fits in 100 columns. A proxy is no obstacle."""
    code, written = in_a_terminal(sys.executable, EXAMPLES / "demo.py")
    assert code == 0
    assert "\x1b[" in written
    text = re.sub(r"\x1b\[[0-9;]*m", "", written)
    assert max(map(len, text.splitlines())) <= 100
    for row in (
        "│ ✔ weather Oslo           │ returned               │",
        "│ ✔ read_calendar Saturday │ returned, in a thread  │",
        "│ ✘ exchange_rate NOK      │ raised ConnectionError │",
        "│ ? book_train Oslo        │ too slow, won't stop   │",
        "│ ? book_hotel Oslo        │ cut off, stopped       │",
        "│ ? book_table 2           │ cut off, won't stop    │",
        "│ ○ order_flowers Tulips   │ never started          │",
        "│ ? find_flights Paris     │ cut off, won't stop    │",
        "│ ✔ find_flights Rome      │ returned               │",
    ):
        assert row in text
    assert "27 requests, 0 refused" in text


def test_a_broken_promise_fails_the_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """If one thing is not as promised, the exit code says so and the last line says what."""

    async def refusals() -> dict[str, str]:
        return dict.fromkeys(("Chat Completions", "Responses", "Messages"), "accepted")

    async def accepted(*_args: object) -> tuple[str, int, int]:
        return "Responses", 9, 0

    monkeypatch.setattr("examples.demo.refusals", refusals)
    monkeypatch.setattr("examples.demo.converse", accepted)
    assert main() == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("BROKEN: statuses of the loop by hand")


async def test_a_tool_that_ends_otherwise_fails_the_demo(monkeypatch: pytest.MonkeyPatch, nothing_left: None) -> None:
    """A story in which a call ends otherwise breaks off at once, and leaves no tool running."""

    async def exchange_rate(_self: Agency, to: str) -> str:
        return f"11.7 {to}"

    monkeypatch.setattr(Agency, "exchange_rate", exchange_rate)
    with pytest.raises(BrokenPromiseError, match=r"^four tools at once: "):
        await converse(chat_lane, Silent())


async def test_a_history_without_the_calls_fails_the_demo(monkeypatch: pytest.MonkeyPatch, nothing_left: None) -> None:
    """A history that is accepted because nothing was put in it is not what was promised."""
    monkeypatch.setattr(openai_chat, "extend", lambda *_given: None)
    with pytest.raises(BrokenPromiseError, match=r"^answers on Chat Completions: found \[\] "):
        await converse(chat_lane, Silent())


async def test_a_refused_request_fails_the_demo(monkeypatch: pytest.MonkeyPatch, nothing_left: None) -> None:
    """A history without an answer is refused, and the demo ends with the provider's words."""
    extend = openai_chat.extend

    def forgetful(history: list[Any], response: object, snapshot: Snapshot) -> None:
        extend(history, response, snapshot)
        if snapshot.calls:
            history.pop()

    monkeypatch.setattr(openai_chat, "extend", forgetful)
    with pytest.raises(openai.BadRequestError, match="did not have response messages: call_4"):
        await converse(chat_lane, Silent())
