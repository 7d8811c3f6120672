"""What becomes of a tool's result: text for the model, facts for the host. Nothing in here loses the result (T9)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from toolbatch.core import Encoder, Part, ToolError, as_parts, encode, preview

from ._tool import AnyTool

__all__ = ["Rendered", "render_result"]

_INVALID_RESULT = "invalid_result"
_log = logging.getLogger("toolbatch.tools")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A result, made ready.

    Attributes:
        content: What the model gets: text, or parts (P5).
        meta: What the tool's `meta` says of the result, for the host; `None` where there is none or it failed.
        problems: What failed on the way, one sentence each, for the host. The content is the plain result then.
        plain: The result as it is without a `render`: what stores save.
    """

    content: str | tuple[Part, ...]
    meta: Any = None
    problems: tuple[str, ...] = ()
    plain: str | tuple[Part, ...] | None = field(default=None, compare=False)


def render_result(tool: AnyTool, value: Any, *, encode: Encoder = encode) -> Rendered:
    """Make a result ready: a `str` as it is, parts as parts, anything else as JSON, unless the tool has a `render`.

    The result must have a JSON form even where `render` makes other text of it: it is what stores save, and what is left
    if `render` fails. A `render` or `meta` that raises, or a `render` whose answer is no text, is logged and noted in `problems`.

    Only results come here. A failed call has none, so neither function can stand before the tool's own failure.

    Raises:
        ToolError: The result has no lossless JSON form: code `invalid_result`. The tool did run.
    """
    try:
        plain = value if isinstance(value, str) else as_parts(value) or encode(value)
    except Exception as error:
        raise ToolError.respond_to_model(
            f"{tool.name} ran, but its result can't be shown: it is not plain JSON data ({type(error).__name__}).",
            _INVALID_RESULT,
        ) from error
    problems: list[str] = []
    shown = plain if tool.render is None else _attempt(tool, "render", partial(_rendered, tool.render), value, problems)
    if shown is None:
        shown = plain
    meta = None if tool.meta is None else _attempt(tool, "meta", tool.meta, value, problems)
    return Rendered(shown, meta, tuple(problems), plain)


def _rendered(render: Callable[[Any], Any], value: Any) -> str | tuple[Part, ...]:
    shown = render(value)
    parts = shown if isinstance(shown, str) else as_parts(shown)
    if parts is None:
        raise TypeError(f"render must return text or parts, not {preview(shown)}")
    return parts


def _attempt(tool: AnyTool, what: str, make: Callable[[Any], Any], value: Any, problems: list[str]) -> Any:
    try:
        return make(value)
    except Exception as error:  # noqa: BLE001  the result stands, whatever is said of it
        _log.warning("%s of tool %s failed; its result is used as it is", what, tool.name, exc_info=True)
        problems.append(f"{what} of {tool.name} raised {preview(error)}")
        return None
