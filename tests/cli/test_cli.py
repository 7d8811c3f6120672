"""The command line: what it reads, prints, writes, and how it ends."""

import io
import json
import os
import pty
import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.transcript.kit import Case, cases
from tests.transcript.test_law import calls, close, result, user
from toolbatch import transcript
from toolbatch.cli import main
from toolbatch.cli._files import FileError, write

BROKEN = [user(), calls("a"), user("so?")]
MENDED = [user(), calls("a"), close("a"), user("so?")]
LAWFUL = [user(), calls("a"), result("a")]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(name: str, value: Any, **layout: Any) -> str:
    """A JSON file with this value."""
    Path(name).write_text(json.dumps(value, **layout), encoding="utf-8")
    return name


def lines(name: str, values: list[Any]) -> str:
    """A file with one value a line."""
    Path(name).write_text("".join(f"{json.dumps(value)}\n" for value in values), encoding="utf-8")
    return name


def loaded(name: str) -> Any:
    return json.loads(Path(name).read_text(encoding="utf-8"))


def test_a_broken_file_is_reported_and_fails(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, a line a violation with file, form and message number, and a summary."""
    assert main(["check", stored("a.json", BROKEN)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "a.json: missing_result: messages[1]: a has no result",
        "1 violation in 1 of 1 conversation, 3 messages",
    ]


def test_lawful_files_pass(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0 over several files of several layouts."""
    names = [stored("a.json", LAWFUL), stored("b.json", {"model": "m", "messages": LAWFUL}), lines("c.jsonl", LAWFUL)]
    assert main(["check", *names]) == 0
    assert capsys.readouterr().out == "0 violations in 0 of 3 conversations, 9 messages\n"


def test_many_conversations_are_numbered(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A list of conversations, or one a line: each is named by its number in the file."""
    for name in (stored("a.json", [LAWFUL, {"messages": BROKEN}]), lines("a.jsonl", [LAWFUL, {"messages": BROKEN}])):
        assert main(["check", name]) == 1
        assert capsys.readouterr().out.startswith(f"{name}#2: missing_result: messages[1]")


def test_violations_can_be_json_lines(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For other programs: one object a violation, and nothing else on standard output."""
    assert main(["check", "--json", stored("a.json", BROKEN)]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "where": "a.json",
        "message": "1",
        "form": "missing_result",
        "calls": "a",
        "text": "messages[1]: a has no result",
    }


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_collected_transcript_goes_through(here: Path, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """The lane is found, check fails where something is broken, and repair writes what the library gives (L8)."""
    name = stored("a.json", case.input, ensure_ascii=False)
    assert main(["check", name]) == bool(case.broken_forms)
    capsys.readouterr()
    assert main(["repair", name]) == 0
    assert json.loads(capsys.readouterr().out) == transcript.repair(case.input, case.lane).messages


def test_repair_writes_to_standard_output_and_reports_beside_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list can be piped on; what was done is on standard error; the file is as it was."""
    assert main(["repair", stored("a.json", BROKEN)]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == MENDED
    assert captured.err.splitlines()[0] == "a.json: missing_result: messages[1]: a has no result: closed as interrupted"
    assert loaded("a.json") == BROKEN


def test_repair_in_place_takes_several_files(here: Path) -> None:
    """As a pre-commit hook calls it: broken ones are written, and a lawful one is not touched."""
    names = [stored("a.json", BROKEN), stored("b.json", LAWFUL), lines("c.jsonl", BROKEN)]
    before = Path("b.json").stat().st_mtime_ns
    assert main(["repair", "--in-place", *names]) == 0
    assert loaded("a.json") == MENDED
    assert Path("b.json").stat().st_mtime_ns == before
    assert [json.loads(line) for line in Path("c.jsonl").read_text().splitlines()] == MENDED
    assert sorted(path.name for path in here.iterdir()) == names
    assert main(["check", *names]) == 0


def test_what_is_written_can_be_read_by_whoever_could_before(here: Path) -> None:
    """A new file has the permissions that the user's mask gives it, an old one keeps its own."""
    name = stored("a.json", BROKEN)
    Path(name).chmod(0o640)
    mask = os.umask(0o027)
    try:
        assert main(["repair", "-o", "new.json", name]) == 0
        assert main(["repair", "-i", name]) == 0
    finally:
        os.umask(mask)
    assert [stat.S_IMODE(Path(one).stat().st_mode) for one in ("new.json", name)] == [0o640, 0o640]


def test_what_did_not_change_keeps_its_bytes(here: Path) -> None:
    """Lines of other messages stay to the byte, and JSON keeps its indentation and its last line's end."""
    odd = '{"role":"user",   "content": "\\u00e9"}'
    Path("a.jsonl").write_text(f"{odd}\n{json.dumps(calls('a'))}\n", encoding="utf-8")
    assert main(["repair", "-i", "a.jsonl"]) == 0
    assert Path("a.jsonl").read_text().splitlines()[0] == odd
    Path("b.json").write_text(json.dumps(BROKEN, indent="\t") + "\n", encoding="utf-8")
    assert main(["repair", "-i", "b.json"]) == 0
    assert Path("b.json").read_text() == json.dumps(MENDED, indent="\t") + "\n"


def test_a_diff_shows_the_change_and_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One change is few lines, however the file is written; with -o the list is written as well."""
    assert main(["repair", "--diff", stored("a.json", BROKEN)]) == 0
    diff = capsys.readouterr().out.splitlines()
    assert diff[:2] == ["--- a.json", "+++ a.json (repaired)"]
    changed = [line for line in diff[2:] if line[0] in "+-"]
    assert [json.loads(line[1:]) for line in changed] == [close("a")]
    assert changed[0][0] == "+"
    assert loaded("a.json") == BROKEN
    assert main(["repair", "--diff", "-o", "b.json", "a.json"]) == 0
    assert loaded("b.json") == MENDED


def test_a_dash_is_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON or JSON lines, from standard input to standard output."""
    for text in (json.dumps(BROKEN), "\n".join(map(json.dumps, BROKEN))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["repair", "-"]) == 0
        out = capsys.readouterr().out
        assert (json.loads(out) if out.startswith("[") else [json.loads(line) for line in out.splitlines()]) == MENDED


def test_a_request_body_says_where_its_context_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`previous_response_id` turns the removal of orphans off; the body around the messages stays (L7)."""
    items = [{"type": "function_call_output", "call_id": "gone", "output": "x"}]
    body = {"model": "m", "previous_response_id": "resp_1", "input": items}
    assert main(["check", stored("a.json", body)]) == 0
    del body["previous_response_id"]
    assert main(["check", stored("a.json", body)]) == 1
    assert main(["check", "--server-context", "a.json"]) == 0
    capsys.readouterr()
    main(["repair", "a.json"])
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"model": "m", "input": []}
    assert captured.err.endswith("recorded content was left out: keep the original\n")


def test_options_reach_the_law(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--open-last, --sent with what remains (exit code 1), --arguments, --lane."""
    assert main(["check", "--open-last", stored("a.json", BROKEN[:2])]) == 0
    assert main(["repair", "--sent", "3", stored("b.json", BROKEN)]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out.partition("\n")[2]) == BROKEN
    assert "was sent, so it stays" in captured.err
    cut = calls("a")
    cut["tool_calls"][0]["function"] = {"name": "f", "arguments": "{"}
    assert main(["repair", "--arguments", stored("c.json", [cut, result("a")])]) == 0
    assert json.loads(capsys.readouterr().out)[0]["tool_calls"][0]["function"]["arguments"] == '{"INVALID_JSON":"{"}'
    assert main(["check", "--lane", "anthropic", "b.json"]) == 0


@pytest.mark.parametrize(("content", "problem"), [
    ("{", "not JSON"),
    ("[1]", "holds neither messages nor conversations"),
    ('"x"', "holds neither"),
    ('{"role": "user"}\nx', "line 2 is not JSON"),
    ('{"role": "user"}\n[]', "entry 2 is []"),
    ('[{"a": 1}]', "name the lane"),
])  # fmt: skip
def test_files_that_cannot_be_used_are_named(
    here: Path, content: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and one line with the file and the place."""
    Path("a.json").write_text(content, encoding="utf-8")
    assert main(["check", "a.json"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("toolbatch: a.json")
    assert problem in error


def test_other_mistakes_end_with_two(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No such file, no UTF-8, no such folder, several files without -i, an unknown lane."""
    assert main(["check", "none.json"]) == 2
    Path("a.json").write_bytes(b"\xff")
    assert main(["check", "a.json"]) == 2
    assert main(["repair", stored("b.json", BROKEN), "-o", "no/such/folder"]) == 2
    assert main(["repair", "b.json", "b.json"]) == 2
    assert main(["repair", "--sent", "9", "b.json"]) == 2
    assert "sent must be between 0 and the 3 messages, not 9" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["check", "--lane", "openai", "b.json"])
    assert ended.value.code == 2


def on_a_terminal(*arguments: str) -> tuple[int, str]:
    """Run the command with a terminal on standard output and standard error; returns the exit code and what was shown."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "toolbatch", *arguments]
    process = subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # the other side was closed
        pass
    os.close(ours)
    return process.wait(timeout=50), shown.decode()


def test_a_terminal_gets_a_table(here: Path) -> None:
    """With rich and a terminal: columns with the message's number, the form and the calls."""
    code, shown = on_a_terminal("check", stored("a.json", BROKEN))
    assert code == 1
    assert all(word in shown for word in ("message", "form", "calls", "what"))
    assert "missing_result" in shown
    assert "a.json:" not in shown


def test_a_big_file_shows_its_progress(here: Path) -> None:
    """10,000 messages on a terminal: a bar while reading, then the summary; the bar leaves no trace in a pipe."""
    big = [message for n in range(3334) for message in (user("x" * 400), calls(f"c{n}"), result(f"c{n}"))]
    code, shown = on_a_terminal("check", stored("a.json", big))
    assert code == 0
    assert "reading" in shown
    assert "0 violations in 0 of 1 conversation, 10002 messages" in shown
    piped = subprocess.run(
        [sys.executable, "-m", "toolbatch", "check", "a.json"],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert (piped.stdout, piped.stderr) == ("0 violations in 0 of 1 conversation, 10002 messages\n", "")


def test_without_rich_there_are_plain_lines(here: Path) -> None:
    """rich is an extra: without it a terminal gets what a pipe gets."""
    stored("a.json", BROKEN)
    code = "import sys; sys.modules['rich'] = None\nfrom toolbatch.cli import main\nsys.stdout.isatty = lambda: True\nsys.exit(main(['check', 'a.json']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("a.json: missing_result: messages[1]")


def test_a_reader_that_leaves_is_no_crash(here: Path) -> None:
    """`toolbatch repair big.json | head` ends quietly."""
    stored("a.json", [user("x" * 1000)] * 1000)
    command = f"{sys.executable} -m toolbatch repair a.json | head -c 10"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=50, check=False)
    assert "Traceback" not in done.stderr


def test_the_hook_definition_names_commands_that_exist(here: Path) -> None:
    """What pre-commit will call parses, with the files that it appends."""
    hooks = (Path(__file__).resolve().parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entries = [line.partition("entry: toolbatch ")[2] for line in hooks.splitlines() if "entry:" in line]
    assert len(entries) == 2
    for entry in entries:
        assert main([*entry.split(), stored("a.json", LAWFUL), stored("b.json", LAWFUL)]) == 0


def test_a_pipe_is_written_to_and_a_link_stays(tmp_path: Path) -> None:
    """What is no plain file, such as a device, is never replaced by one; a link still leads to where it led."""
    pipe, real, link = tmp_path / "pipe", tmp_path / "real", tmp_path / "link"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(str(pipe), "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert pipe.is_fifo()
    real.write_text("old", encoding="utf-8")
    link.symlink_to(real)
    write(str(link), "new")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "new"


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """A file that can't be written whole is as it was, and no half of it lies beside it."""
    target = tmp_path / "file"
    target.write_text("old", encoding="utf-8")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(FileError, match="can't be written"):
            write(str(target), "x" * 1_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert target.read_text(encoding="utf-8") == "old"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [["report", "-", "--json"], ["doctor"], ["check", "--json", "a.json"]])
def test_a_full_standard_output(here: Path, arguments: list[str]) -> None:
    """A disk that is full is told in words, with an exit code that says that nothing can be relied on."""
    stored("a.json", BROKEN)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "toolbatch", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        2,
        b"toolbatch: standard output can't be written: No space left on device\n",
    )
