"""A tool's result as the bytes that an operation store keeps, and back again.

A result is kept as its own JSON, so that a person can read it, and can write one by hand. Only what that can't say - parts, another text
for the model, what else the tool has said of its call - is wrapped into an object with one marked member.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from toolbatch.core import CallProblem, InvalidInputError, Part, from_plain, preview, to_plain
from toolbatch.core import encode as core_encode
from toolbatch.ports import SAVED_MARK, SAVED_VERSION

if TYPE_CHECKING:
    from toolbatch.core import Encoder
    from toolbatch.tools import Rendered

    from ._execution import Execution

__all__ = ["Saved", "read_result", "saved_failure", "saved_result"]


@final
@dataclass(frozen=True, slots=True)
class Saved:
    """A saved result, read again.

    Attributes:
        value: What the tool returned, as JSON has it, or its parts.
        content: What the model got of it; `None` where the result was written by someone who knew the value only.
        meta: What the host was told of it.
        failure: Why the tool's answer could not be shown, where that was so.
        said: What the tool said of its call besides its value, to be said again.
    """

    value: Any
    content: str | tuple[Part, ...] | None
    meta: Any = None
    failure: CallProblem | None = None
    said: Mapping[str, Any] | None = None

    def say(self, execution: "Execution") -> None:
        """Say of a call what its tool said of it (T10, O4)."""
        said = self.said or {}
        execution.concludes = bool(said.get("concludes"))
        execution.added = list(map(str, said.get("added") or ())) or None
        failure = said.get("reported_failure")
        execution.failure = None if failure is None else CallProblem(failure["code"], failure["message"])


def saved_result(value: object, rendered: "Rendered", execution: "Execution", encode: "Encoder") -> bytes:
    """Return the bytes of a result that can be shown.

    Args:
        value: What the tool returned.
        rendered: What the model and the host get of it.
        execution: The call, which knows what else the tool has said.
        encode: The host's encoder.
    """
    said = _said(execution)
    plain = _plain(value, rendered, encode)
    is_text = isinstance(value, str)
    if plain is not None and rendered.meta is None and not said and SAVED_MARK not in plain:
        # What is read back as a text is shown without its quotes: a date, say, has them where it is no text.
        is_text_in_json = plain.lstrip().startswith('"')
        if is_text == is_text_in_json and rendered.content == (value if is_text else plain):
            return plain.encode("utf-8", "surrogatepass")
    wrapped: dict[str, Any] = {SAVED_MARK: SAVED_VERSION, **said}
    if plain is not None:
        wrapped["value"] = json.loads(plain)
    if isinstance(rendered.content, str):
        wrapped["content"] = rendered.content
    else:
        wrapped["parts"] = [to_plain(part) for part in rendered.content]
    if rendered.meta is not None:
        wrapped["meta"] = _plain_or_none(rendered.meta, encode)
    return json.dumps(wrapped, separators=(",", ":")).encode()


def saved_failure(code: str, message: str) -> bytes:
    """Return the bytes of a result that can't be shown, though the tool has done its work (B23)."""
    return json.dumps(
        {SAVED_MARK: SAVED_VERSION, "failure": {"code": code, "message": message}}, separators=(",", ":")
    ).encode()


def read_result(result: bytes) -> Saved:
    """Read what `saved_result` wrote, or any JSON that a host or a resolver has saved as the result.

    Raises:
        InvalidInputError: It is neither.
    """
    try:
        text = result.decode("utf-8", "surrogatepass")
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the saved result {preview(result)} is no JSON: {error}") from error
    if not isinstance(value, dict) or SAVED_MARK not in value:
        return Saved(value, value if isinstance(value, str) else text)
    try:
        if value[SAVED_MARK] != SAVED_VERSION:
            raise InvalidInputError(f"the saved result {preview(result)} was written by a newer toolbatch")
        if "failure" in value:
            problem = CallProblem(str(value["failure"]["code"]), str(value["failure"]["message"]))
            return Saved(None, None, failure=problem)
        content = tuple(map(from_plain, value["parts"])) if "parts" in value else str(value["content"])
        return Saved(value.get("value", content), content, value.get("meta"), said=value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(f"the saved result {preview(result)} can't be read: {error!r}") from error


def _said(execution: "Execution") -> dict[str, Any]:
    said: dict[str, Any] = {}
    if execution.concludes:
        said["concludes"] = True
    if execution.added:
        said["added"] = execution.added
    if execution.failure is not None:
        said["reported_failure"] = {"code": execution.failure.code, "message": execution.failure.message}
    return said


def _plain(value: object, rendered: "Rendered", encode: "Encoder") -> str | None:
    """Return a value as JSON text; `None` for parts, and where a host's encoder writes something else."""
    text = core_encode(value) if isinstance(value, str) else rendered.plain
    if not isinstance(text, str):
        return None
    if encode is not core_encode:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return None
    return text


def _plain_or_none(meta: object, encode: "Encoder") -> Any:
    try:
        return json.loads(encode(meta))
    except Exception:  # noqa: BLE001  the value's own methods may raise anything
        return None  # it is for this process's host alone
