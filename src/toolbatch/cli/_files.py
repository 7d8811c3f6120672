"""Files of conversations: JSON and JSON lines, one conversation or many, found by their shape.

What is written back differs from what was read in the repaired messages only: a line that did not change keeps its bytes, a
file in which nothing changed is not written anew, and JSON keeps its indentation.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from toolbatch.core import preview

__all__ = ["STDIN", "Conversation", "Document", "FileError", "read", "write"]

STDIN: Final = "-"
_HOLDERS: Final = ("messages", "input", "contents")  # where the bodies of requests keep their messages
_CHUNK: Final = 1 << 20


class FileError(Exception):
    """A file can't be read as conversations, or not be written. The message names the file and the place."""


@dataclass(slots=True)
class Conversation:
    """One conversation of a file.

    Attributes:
        messages: Its messages.
        number: Its number in the file, from 1.
        body: The request that holds the messages, or `None` where they stand alone.
        key: The member of the body that holds them.
    """

    messages: list[Any]
    number: int
    body: dict[str, Any] | None = None
    key: str = ""

    @property
    def server_context(self) -> bool:
        """Whether the request says that earlier context is on the server."""
        return self.body is not None and any(self.body.get(name) for name in ("previous_response_id", "conversation"))

    def written(self, messages: list[Any]) -> Any:
        """Return the conversation with other messages, in the form in which it was found."""
        return messages if self.body is None else {**self.body, self.key: messages}


@dataclass(slots=True)
class Document:
    """What a file holds.

    Attributes:
        path: Its name, or `-`.
        text: Its text.
        conversations: What was found in it.
        layout: `json` (one conversation), `list` (a list of them), `lines` (one a line), `messages` (one message a line).
        lines: The text of each line's value, by the identity of the value.
    """

    path: str
    text: str
    conversations: list[Conversation]
    layout: str
    lines: dict[int, str] = field(default_factory=dict)

    def rendered(self, views: list[list[Any]]) -> str:
        """Return the file's text with these messages, one list a conversation; the same text if all are the same lists."""
        pairs = list(zip(self.conversations, views, strict=True))
        if all(view is one.messages for one, view in pairs):
            return self.text
        if self.layout == "messages":
            return "".join(f"{self.lines.get(id(message)) or _line(message)}\n" for message in views[0])
        if self.layout == "lines":
            kept = [self.lines[id(one)] if view is one.messages else _line(one.written(view)) for one, view in pairs]
            return "".join(f"{line}\n" for line in kept)
        values = [one.written(view) for one, view in pairs]
        return _indented(values if self.layout == "list" else values[0], self.text)


def read(path: str, advance: Callable[[int], object] = lambda _: None) -> Document:
    """Read a file, or standard input for `-`.

    Args:
        path: The file.
        advance: Is told how many bytes were read.

    Raises:
        FileError: It can't be read, is neither JSON nor JSON lines, or holds no conversations.
    """
    text = _text(path, advance)
    if not path.endswith((".jsonl", ".ndjson")):
        try:
            return _document(path, text, json.loads(text))
        except json.JSONDecodeError as error:
            if error.msg != "Extra data":
                raise FileError(f"{path}: not JSON: {error}") from None
    return _lines(path, text)


def write(path: str, text: str) -> None:
    """Write a file whole or not at all, or to standard output for `-`. A device or a pipe is written to as it is.

    Raises:
        FileError: It can't be written; what was there is as it was.
    """
    if path == STDIN:
        sys.stdout.write(text)
        return
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # to replace /dev/null would harm the whole machine
            with target.open("w", encoding="utf-8", newline="") as file:
                file.write(text)
        else:
            _replace(Path(os.path.realpath(target)), text)  # a link stays one
    except OSError as error:
        raise FileError(f"{path}: can't be written: {error.strerror or error}") from None


def _replace(target: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile(
        "w", dir=target.parent, prefix=f".{target.name}.", delete=False, encoding="utf-8", newline=""
    ) as file:
        draft = Path(file.name)
        try:
            file.write(text)
            file.close()
            draft.chmod(_mode(target))
            draft.replace(target)
        except BaseException:
            draft.unlink()
            raise


def _mode(target: Path) -> int:
    """Return a file's permissions, or those that a new one would get: a temporary file is its owner's alone."""
    if target.exists():
        return target.stat().st_mode
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _text(path: str, advance: Callable[[int], object]) -> str:
    try:
        if path == STDIN:
            return sys.stdin.buffer.read().decode()
        chunks: list[bytes] = []
        with Path(path).open("rb") as file:
            while chunk := file.read(_CHUNK):
                chunks.append(chunk)
                advance(len(chunk))
        return b"".join(chunks).decode()
    except OSError as error:
        raise FileError(f"{path}: can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8: {error}") from None


def _document(path: str, text: str, value: Any) -> Document:
    one = _conversation(value, 1)
    if one is not None:
        return Document(path, text, [one], "json")
    if isinstance(value, list) and value and all(_conversation(entry, 1) is not None for entry in value):
        return Document(path, text, [_found(entry, number) for number, entry in enumerate(value, 1)], "list")
    if isinstance(value, dict) and ("role" in value or "type" in value):
        return Document(path, text, [Conversation([value], 1)], "messages")
    raise FileError(f"{path}: holds neither messages nor conversations, but {preview(value)}")


def _lines(path: str, text: str) -> Document:
    values: list[Any] = []
    kept: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines(): JSON's text may hold U+2028
        if line.strip():
            try:
                values.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise FileError(f"{path}: line {number} is not JSON: {error}") from None
            kept.append(line)
    found = [_conversation(value, number) for number, value in enumerate(values, 1)]
    if values and all(one is not None for one in found):
        conversations = [one for one in found if one is not None]
        return Document(path, text, conversations, "lines", _by_identity(conversations, kept))
    odd = next(
        (number for number, value in enumerate(values, 1) if not isinstance(value, dict) or found[number - 1]), None
    )
    if odd is not None:
        raise FileError(f"{path}: entry {odd} is {preview(values[odd - 1])}, but the others are of another kind")
    return Document(path, text, [Conversation(values, 1)], "messages", _by_identity(values, kept))


def _by_identity(values: Iterable[object], lines: Iterable[str]) -> dict[int, str]:
    return {id(value): line for value, line in zip(values, lines, strict=True)}


def _found(value: Any, number: int) -> Conversation:
    one = _conversation(value, number)
    if one is None:
        raise TypeError("only what was found to be a conversation is read as one")
    return one


def _conversation(value: Any, number: int) -> Conversation | None:
    """Return a conversation if `value` is one: a list of messages, or a request's body with such a list."""
    if isinstance(value, list):
        messages = all(isinstance(entry, dict) and _body_key(entry) is None for entry in value)
        return Conversation(value, number) if messages else None
    key = _body_key(value) if isinstance(value, dict) else None
    return None if key is None else Conversation(value[key], number, value, key)


def _body_key(value: dict[str, Any]) -> str | None:
    if "role" in value or "type" in value:
        return None
    return next((key for key in _HOLDERS if isinstance(value.get(key), list)), None)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indented(value: Any, like: str) -> str:
    """Return JSON as `like` is written: on one line, or with its indentation; with its last line's end."""
    indent = re.search(r"\n([ \t]+)", like)
    width = None if indent is None else indent[1]
    return json.dumps(value, ensure_ascii=False, indent=width) + ("\n" if like.endswith("\n") else "")
