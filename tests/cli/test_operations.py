"""`toolbatch operations`: what a person sees of a store at three in the morning, and what their word does."""

import asyncio
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli import on_a_terminal
from tests.operations import pg
from tests.operations.conftest import postgres, schema
from toolbatch.cli import main
from toolbatch.operations import PostgresOperationStore, SqliteOperationStore
from toolbatch.operations._owners import this_owner
from toolbatch.ports import Claimed, Operation, OperationRecord, OperationStore

__all__ = ["postgres", "schema"]

PAY = "acme/run-7/call-1"


def filled(make: Callable[..., OperationStore], owner: str | None = None) -> None:
    """A store with an open payment of an hour ago, and a completed one."""

    async def fill() -> None:
        async with make(now=lambda: time.time() - 3600, owner=owner) as store:
            await store.claim(Operation(PAY, "pay", {"amount": 50, "to": "ä"}, idempotency_key="key-1"))
            done = await store.claim(Operation("acme/run-7/call-2", "mail", {}))
            assert isinstance(done, Claimed)
            await store.complete(done.token, b'"sent"')

    asyncio.run(fill())


def stored(path: Path, name: str = PAY) -> OperationRecord | None:
    """What a file has of an operation."""

    async def look() -> OperationRecord | None:
        async with SqliteOperationStore(path) as store:
            return await store.get(name)

    return asyncio.run(look())


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose open operation was claimed by somebody elsewhere, and which the environment names."""
    file = tmp_path / "operations.db"
    filled(lambda **options: SqliteOperationStore(file, **options), owner="worker on another machine")
    monkeypatch.setenv("TOOLBATCH_STORE", str(file))
    return file


def run(*arguments: str) -> int:
    """Run the command."""
    return main(["operations", *arguments])


def test_open_operations_are_listed_and_found_by_the_exit_code(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line each, with its age, its owner and what it is about; what is completed is not there."""
    assert run("list") == 1
    line, summary = capsys.readouterr().out.splitlines()
    assert line.split("  ") == [
        PAY,
        "pay",
        "60m",
        "worker on another machine can't be seen from here",
        "1",
        "if_not_started",
        '{"amount":50,"to":"ä"}',
    ]
    assert summary == "1 open operation"


@pytest.mark.parametrize("options", [["--prefix", "acme/run-8/"], ["--older", "2h"], ["--gone"]])
def test_a_list_can_be_narrowed(path: Path, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    """To a run, to old ones, to those whose process has certainly ended; nothing open is exit code 0."""
    assert run("list", *options) == 0
    assert capsys.readouterr().out == "0 open operations\n"
    assert run("list", "--older", "30m", "--prefix", "acme/run-7/", "--limit", "5") == 1


def test_the_limit_counts_what_is_listed_and_tells_of_more(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An old claim of somebody else must not hide one whose process has ended: nothing open would be exit code 0."""
    gone = this_owner().split(" ")
    gone[2] = str(1 << 30)  # no process has such an id

    async def fill() -> None:
        async with SqliteOperationStore(path, owner=" ".join(gone)) as store:
            for number in range(2):
                await store.claim(Operation(f"acme/run-8/{number}", "pay", {}))

    asyncio.run(fill())
    assert run("list", "--gone", "--limit", "1") == 1
    told = capsys.readouterr()
    assert "acme/run-8/0" in told.out
    assert "1 open operation\n" in told.out
    assert "more than these 1" in told.err
    assert run("list", "--gone", "--limit", "2") == 1
    assert not capsys.readouterr().err
    assert run("list", "--limit", "2") == 1
    assert "more than these 2" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["list"], ["list", "--json"], ["show", PAY]])
def test_a_terminal_without_unicode_shows_what_it_can(
    path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """What its encoding lacks is escaped."""
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii", write_through=True))
    run(*options)
    assert b"amount" in shown.getvalue()
    if "--json" in options:
        assert json.loads(shown.getvalue())["summary"] == '{"amount":50,"to":"ä"}'


def test_a_script_gets_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line, with all that is stored but the claimant's secret."""
    assert run("list", "--json") == 1
    (line,) = capsys.readouterr().out.splitlines()
    data = json.loads(line)
    assert (data["id"], data["state"], data["owner_state"], data["result"]) == (PAY, "open", "unknown", None)
    assert 3599 < data["age"] < 3700
    assert run("show", "acme/run-7/call-2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["result"] == "sent"


def test_one_operation_is_shown_whole(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the key that the service knows it by."""
    assert run("show", PAY) == 0
    shown = capsys.readouterr().out
    for part in (
        PAY,
        "open: its outcome is unknown",
        "pay",
        '{"amount":50,"to":"ä"}',
        "key-1",
        "worker on another machine",
        "60m ago",
    ):
        assert part in shown
    assert run("show", "acme/run-7/call-2") == 0
    shown = capsys.readouterr().out
    assert "completed" in shown
    assert '"sent"' in shown


def test_a_result_is_saved_by_hand(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And says by whom; the same again is no error, another is refused."""
    assert run("reconcile", PAY, ' {"paid": 50} ', "--yes", "--json") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["result"] == {"paid": 50}
    assert "is reconciled" in told.err
    record = stored(path)
    assert record is not None
    assert (record.result, record.completed_by) == (b'{"paid": 50}', "toolbatch operations")
    assert run("reconcile", PAY, '{"paid": 50}') == 0
    assert run("reconcile", PAY, '{"paid": 51}') == 1
    assert "another result" in capsys.readouterr().err


def test_a_result_comes_from_a_file_or_a_pipe(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For results that are too long for a line."""
    (tmp_path / "result.json").write_text('["ä"]\n', encoding="utf-8")
    assert run("reconcile", PAY, "--file", str(tmp_path / "result.json"), "-y") == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO('["ä"]'))
    assert run("reconcile", PAY, "--file", "-", "-y") == 0
    record = stored(path)
    assert record is not None
    assert record.result == '["ä"]'.encode()


def test_what_has_not_happened_is_freed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only an open one: what is completed has happened."""
    assert run("release", PAY, "--yes") == 0
    assert "is free" in capsys.readouterr().err
    assert stored(path) is None
    assert run("release", PAY, "--yes") == 1
    assert "no operation" in capsys.readouterr().err
    assert run("release", "acme/run-7/call-2", "--yes") == 1
    assert "completed already" in capsys.readouterr().err


def test_what_may_still_be_done_is_not_freed_by_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its process runs - it is this one - and so it takes a second thought."""
    file = tmp_path / "operations.db"
    filled(lambda **options: SqliteOperationStore(file, **options))
    assert run("release", PAY, "--yes", "--store", str(file)) == 1
    assert "still runs" in capsys.readouterr().err
    assert run("list", "--store", str(file)) == 1
    assert " runs  " in capsys.readouterr().out
    assert run("release", PAY, "--yes", "--force", "--store", str(file)) == 0
    assert stored(file) is None


def test_without_a_terminal_nothing_is_changed_without_yes(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script has to say that it means it."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert run("release", PAY) == 2
    assert run("reconcile", PAY, "1") == 2
    assert "--yes" in capsys.readouterr().err
    record = stored(path)
    assert record is not None
    assert record.is_open


class Terminal(io.StringIO):
    """A person's keyboard."""

    def isatty(self) -> bool:
        return True


class Interrupted(Terminal):
    """A person who presses Ctrl-C."""

    def readline(self, *_: Any) -> Any:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("typed", "is_done"),
    [
        (Terminal("y\n"), True),
        (Terminal("Yes\n"), True),
        (Terminal("\n"), False),
        (Terminal("no\n"), False),
        (Terminal(""), False),
        (Interrupted(), False),
    ],
)
def test_a_person_is_asked_and_sees_what_it_is_about(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: Terminal, is_done: bool
) -> None:
    """Whatever is not a clear yes changes nothing."""
    monkeypatch.setattr(sys, "stdin", typed)
    assert run("release", PAY) == (0 if is_done else 1)
    told = capsys.readouterr().err
    assert "CERTAINLY NOT happened" in told
    assert "key-1" in told
    assert (stored(path) is None) == is_done


def test_another_claim_than_the_one_that_was_looked_at_is_left_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the person thinks, the operation was freed and claimed anew: by someone who runs now."""

    async def claim_anew() -> None:
        async with SqliteOperationStore(path) as store:
            await store.release_unknown(PAY)
            await store.claim(Operation(PAY, "pay", {"amount": 50, "to": "ä"}))

    class Slow(Terminal):
        def readline(self, *_: Any) -> Any:
            asyncio.run(claim_anew())
            return "y\n"

    monkeypatch.setattr(sys, "stdin", Slow())
    assert run("reconcile", PAY, "1") == 1
    assert "nothing was reconciled" in capsys.readouterr().err
    record = stored(path)
    assert record is not None
    assert record.is_open


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["list", "--store", "nowhere.db"], "there is no file nowhere.db"),
        (["list", "--store", ""], "name the store"),
        (["reconcile", PAY], "give the result"),
        (["reconcile", PAY, "1", "--file", "x"], "give the result"),
        (["reconcile", PAY, "paid"], "text has to stand in quotes"),
        (["reconcile", PAY, "NaN"], "NaN is not JSON"),
        (["reconcile", PAY, "--file", "nowhere.json"], "nowhere.json"),
        (["show", " "], "blank"),
    ],
)
def test_what_can_t_be_used_is_named(
    path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    """Exit code 2, and nothing is made or changed."""
    assert run(*arguments) == 2
    assert told in capsys.readouterr().err
    assert not Path("nowhere.db").exists()


@pytest.mark.parametrize(
    "arguments", [["list", "--older", "soon"], ["list", "--limit", "0"], ["list", "--older", "-5s"], []]
)
def test_options_that_can_t_be_read_are_named(arguments: list[str]) -> None:
    """By the parser, with exit code 2."""
    with pytest.raises(SystemExit) as caught:
        run(*arguments)
    assert caught.value.code == 2


def test_a_file_that_is_no_store_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which file, and what is wrong with it."""
    file = tmp_path / "notes.txt"
    file.write_text("no store\n" * 100, encoding="utf-8")
    assert run("list", "--store", str(file)) == 2
    assert "not an SQLite file" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8").startswith("no store")


def test_what_a_model_wrote_does_not_reach_the_terminal_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences could hide a line, or write another one."""
    file = tmp_path / "operations.db"

    async def fill() -> None:
        async with SqliteOperationStore(file, owner="o") as store:
            await store.claim(Operation(PAY, "pay", {}, summary="\x1b[2K\rharmless\u202e"))

    asyncio.run(fill())
    assert run("list", "--store", str(file)) == 1
    assert run("show", PAY, "--store", str(file)) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\x1b[2K\\rharmless\\u202e" in shown


@pytest.mark.parametrize("call", ["a\u202eb", "\u2028", "\U000e0001", "\x85", "literal \\u202e", "\\Uffffffff"])
def test_an_operation_is_found_by_the_id_that_the_list_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    """Also where a model wrote what a terminal must not get, so that it stands there escaped."""
    file, name = tmp_path / "operations.db", f"t/run/{call}"

    async def fill() -> None:
        async with SqliteOperationStore(file, owner="elsewhere") as store:
            await store.claim(Operation(name, "pay", {}))

    asyncio.run(fill())
    run("list", "--store", str(file))
    shown = capsys.readouterr().out.split("  ")[0]
    assert run("show", shown, "--store", str(file)) == 0
    capsys.readouterr()
    assert run("reconcile", shown, "1", "--yes", "--json", "--store", str(file)) == 0
    assert json.loads(capsys.readouterr().out)["id"] == name
    assert run("show", "\ud800", "--store", str(file)) == run("show", "\\ud800", "--store", str(file)) == 2


def test_a_result_that_is_no_json_is_shown_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A host of another kind may have saved it; times may be anything too."""
    file = tmp_path / "operations.db"

    async def fill() -> None:
        async with SqliteOperationStore(file, now=lambda: 1e300) as store:
            claim = await store.claim(Operation(PAY, "pay", {}))
            assert isinstance(claim, Claimed)
            await store.complete(claim.token, b"\xff")

    asyncio.run(fill())
    assert run("show", PAY, "--store", str(file)) == 0
    assert run("show", PAY, "--json", "--store", str(file)) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["result"] == {"base64": "/w=="}


def test_a_terminal_gets_a_table(path: Path) -> None:
    """With rich and a terminal: columns with heads."""
    code, shown = on_a_terminal("operations", "list")
    assert code == 1
    assert all(word in shown for word in ("id", "age", "owner", "summary", PAY, "1 open operation"))


def test_a_server_is_asked_in_the_same_way(
    postgres: pg.Server, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its DSN, in its schema."""
    filled(lambda **options: PostgresOperationStore(postgres.dsn, schema=schema, **options), owner="elsewhere")
    where = ["--store", postgres.dsn, "--schema", schema]
    assert run("list", *where) == 1
    assert PAY in capsys.readouterr().out
    assert run("reconcile", PAY, '{"paid": 50}', "--yes", *where) == 0
    assert run("list", *where) == 0
    assert run("list", "--store", postgres.dsn, "--schema", "No Schema") == 2
