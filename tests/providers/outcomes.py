"""Any outcomes at all, rich results among them: strategies, and batches that end so."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from toolbatch.core import (
    Data,
    Document,
    Image,
    Json,
    Part,
    ResourceLink,
    Snapshot,
    Text,
    ToolCall,
    ToolCallClosure,
    Url,
)

PNG = b"\x89PNG\r\n\x1a\n"

_texts = st.sampled_from(["", " ", "See.", "日本語", "\x00", '{"a":1}', '[{"a":1},{"b":2}]', "null"]) | st.text(
    max_size=5
)
_names = st.sampled_from(["a.pdf", "é/ü?#", "x" * 300])
_urls = st.sampled_from(["https://example.org/a", "HTTP://example.org", "s3://bucket/key", "file:///etc/passwd"])
_bytes = st.binary(min_size=1, max_size=4)


def _sources(*media_types: str) -> st.SearchStrategy[Data | Url]:
    types = st.sampled_from(media_types)
    return st.builds(Data, _bytes, types) | st.builds(Url, _urls, st.none() | types)


parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, _texts),
    st.builds(Json, st.sampled_from([{}, {"a": [1]}, [{"a": 1}], 2**70, "text", None])),
    st.builds(Image, _sources("image/png", "image/jpeg", "image/webp", "image/gif", "image/tiff")),
    st.builds(
        Document,
        _sources("application/pdf", "text/plain", "application/json", "audio/wav", "video/mp4"),
        st.none() | _names,
    ),
    st.builds(ResourceLink, _urls, _names, st.none() | st.just("text/html"), st.none() | st.just("A page.")),
)
"""Each sort of part that lanes treat differently, and more."""

values: st.SearchStrategy[Any] = (
    _texts | st.sampled_from([{"a": 1}, [1], None]) | st.lists(parts, min_size=1, max_size=4)
)
outcomes: st.SearchStrategy[tuple[str, Any]] = st.one_of(
    st.tuples(st.just("success"), values),
    st.tuples(st.sampled_from(["error", "cancelled"]), _texts),
    st.tuples(st.sampled_from(["started", "closed"]), st.none()),
)
"""How a call ends: its tool's word, or ours (`started` before, or not)."""


def ended(calls: Sequence[ToolCall], ends: Sequence[tuple[str, Any]]) -> Snapshot:
    """Return a closed snapshot of `calls`, each ended as told."""
    closure = ToolCallClosure()
    handle = closure.begin(calls).handle
    for call, (status, value) in zip(calls, ends, strict=False):
        match status:
            case "success":
                closure.succeed(handle, call.id, value)
            case "error":
                closure.fail(handle, call.id, value)
            case "cancelled":
                closure.cancel(handle, call.id, value)
            case "started":
                closure.start(handle, call.id)
            case _:
                pass  # "closed": never started
    snapshot = closure.close(handle, code="timeout", message="Out of time.", side_effect_state=None)
    assert isinstance(snapshot, Snapshot)
    return snapshot


def succeeded(calls: Sequence[ToolCall], *given: Any) -> Snapshot:
    """Return a closed snapshot of `calls` whose tools returned these values."""
    return ended(calls, [("success", value) for value in given])
