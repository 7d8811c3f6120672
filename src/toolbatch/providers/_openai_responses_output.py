"""OpenAI Responses: the item that carries one result."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NoReturn

from toolbatch.core import Data, Document, Image, Part, ToolCall, encode

from ._content import (
    IMAGES,
    PDF,
    Block,
    Carrier,
    Place,
    carries,
    content_of,
    data_url,
    file_name,
    place,
    web_url,
)
from ._plain import field

__all__ = ["CARRIERS", "CARRIES", "LANE", "OUTPUTS", "Media", "is_program", "result_item"]

LANE: Final = "openai_responses"
OUTPUTS: Final = {"function": "function_call_output", "custom": "custom_tool_call_output"}
"""The type of a call's output, by the call's kind."""

Media = Literal["nested", "text"]
"""How images and files travel: in the results, or only in words."""

_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
_FILES: Final = {  # what the guide to file inputs accepts, with the ending that each is known by
    "application/json": "json",
    "application/msword": "doc",
    PDF: "pdf",
    "application/rtf": "rtf",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.oasis.opendocument.text": "odt",
    f"{_OFFICE}.presentationml.presentation": "pptx",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    "text/css": "css",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
    "text/rtf": "rtf",
    "text/xml": "xml",
}


def is_program(caller: object) -> bool:
    """Whether a call's `caller` is a program that the server runs, and not the model itself."""
    return bool(field(caller, "type") == "program")


def _nest(part: Part) -> Block | None:
    if isinstance(part, Image) and part.source.media_type in (None, *IMAGES):
        url = data_url(part.source) if isinstance(part.source, Data) else web_url(part.source)
        return None if url is None else {"type": "input_image", "image_url": url, "detail": "auto"}
    if not isinstance(part, Document):
        return None
    media_type = part.source.media_type
    if isinstance(part.source, Data):
        if media_type not in _FILES:
            return None
        return {
            "type": "input_file",
            "filename": file_name(part, _FILES[media_type]),
            "file_data": data_url(part.source),
        }
    url = web_url(part.source)
    return None if url is None or media_type not in (None, *_FILES) else {"type": "input_file", "file_url": url}


CARRIERS: Final[Mapping[str, Carrier]] = {"nested": Carrier(nest=_nest), "text": Carrier()}
"""What a result may hold, by `media`."""

CARRIES: Final[Mapping[str, Place]] = carries(CARRIERS["nested"])
"""Where each sort of part travels in this lane by default (P5)."""


def _text(text: str) -> Block:
    return {"type": "input_text", "text": text}


def result_item(
    call: ToolCall, call_id: str, text: str, parts: Sequence[Part] | None, carrier: Carrier
) -> dict[str, Any]:
    """Return the output item of a call; `parts` are those of a rich success.

    Text for a program is JSON where the tool has an `output_schema`, "describing the JSON value encoded in string outputs"
    (`openai/types/responses/function_tool_param.py`); a failure's always is. Blocks are exempt.
    """
    output = text if parts is None else content_of(place(parts, carrier, call.name, call_id).inside, _text)
    item: dict[str, Any] = {"type": OUTPUTS[call.kind], "call_id": call_id, "output": output}
    if call.echo:
        echo = call.echo.get(LANE, {})
        caller = echo.get("caller")
        if isinstance(caller, Mapping) and is_program(caller):
            item["caller"] = dict(caller)  # must match the call's; the model's own calls may leave it out
            if echo.get("output_schema") and isinstance(output, str) and not _is_json(output):
                item["output"] = encode({"output": output})
    return item


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return False
    return True
