"""Gemini and Bedrock: what holds for any list of calls, however hostile, and any outcomes, rich ones too."""

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.providers.google_and_aws import (
    ASKED,
    USER,
    bedrock_refused,
    call,
    candidate,
    converse,
    gemini_refused,
    settled,
    use,
)
from toolbatch.core import Document, Image, InvalidTypeError, Json, Part, ResourceLink, Text, ToolCall, Url
from toolbatch.providers import bedrock, gemini

SURROGATES = st.characters()  # of all categories, lone surrogates too
ids = st.one_of(
    st.sampled_from([None, "", " ", "null", "a", "b", "call_0", 0, "x" * 65, "x" * 513, "f:0", "日本"]),
    st.text(SURROGATES, max_size=70),
)
names = st.one_of(
    st.sampled_from(["lookup", "f", "", None, "a.b", "1a", "n" * 65, "n" * 513]), st.text(SURROGATES, max_size=9)
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(SURROGATES, max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(SURROGATES, max_size=3), inner, max_size=2),
    max_leaves=4,
)
announced = st.lists(st.tuples(ids, names, values), max_size=5)

plain_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
keys = st.sampled_from(["a", "output", "error", "$ref", "__type", "json", "text"]) | plain_text
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | plain_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
urls = st.sampled_from(["https://example.org/a", "gs://bucket/a.png", "s3://bucket/a.png", "ftp://x"])
image_types = st.sampled_from(["png", "jpeg", "jpg", "gif", "webp", "heic", "tiff"]).map("image/{}".format)
file_types = st.sampled_from(
    ["application/pdf", "text/plain", "text/csv", "audio/wav", "video/mp4", "application/zip", "text/html"]
)
some_bytes = st.binary(min_size=1, max_size=9)
file_names = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9).filter(str.strip)
images = st.builds(Image.of, some_bytes, image_types) | st.builds(Url, urls, st.none() | image_types).map(Image)
files = st.builds(Document.of, some_bytes, file_types, file_names) | st.builds(
    Document, st.builds(Url, urls, st.none() | file_types), file_names
)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, plain_text), st.builds(Json, data), images, files, st.builds(ResourceLink, urls, st.just("a"))
)
rich = st.lists(parts, min_size=1, max_size=8)
ends = st.lists(data | rich | st.builds(ValueError, plain_text), max_size=5)


def fair(calls: list[ToolCall], given_ends: list[Any]) -> list[Any]:
    """The ends of calls that may have run; a tool whose name no server takes has not."""
    legal = [one.problem is None and one.name in ("lookup", "f") for one in calls]
    padded = [*given_ends, *[ValueError("no")] * len(calls)]
    return [end if runs else ValueError("no such tool") for end, runs in zip(padded, legal, strict=False)]


@settings(deadline=None, max_examples=150)
@given(
    calls=announced, given_ends=ends, turns=st.integers(1, 3), media=st.sampled_from(["nested", "referenced", "after"])
)
def test_gemini_turns_obey_the_rules(calls: list[Any], given_ends: list[Any], turns: int, media: Any) -> None:
    """Results alone, in one content, one a call, in order, and every judge accepts every turn (P2, P5, P6)."""
    response = candidate({"text": "Hm."}, *[call(*one, thoughtSignature="c2ln") for one in calls])
    before = repr(response)
    messages: list[Any] = [ASKED]
    for _ in range(turns):
        read = gemini.calls(response)
        assert len(read) == len(calls)
        gemini.extend(messages, response, settled(read, *fair(read, given_ends)), media=media)
        assert gemini_refused(messages, "gemini-2.5-pro" if media == "after" else "gemini-3-pro") is None
    assert repr(response) == before
    announced_facts = [part["functionCall"] for one in messages for part in one["parts"] if "functionCall" in part]
    answers = [part["functionResponse"] for one in messages for part in one["parts"] if "functionResponse" in part]
    assert [(one.get("id"), one["name"]) for one in answers] == [
        (one.get("id"), one["name"]) for one in announced_facts
    ]
    assert len(answers) == turns * len(calls)


@settings(deadline=None, max_examples=150)
@given(
    calls=announced,
    given_ends=ends,
    turns=st.integers(1, 3),
    media=st.sampled_from(["nested", "after", "text"]),
    options=st.fixed_dictionaries({"status": st.booleans(), "data": st.booleans()}),
)
def test_bedrock_turns_obey_the_rules(
    calls: list[Any], given_ends: list[Any], turns: int, media: Any, options: Any
) -> None:
    """Ids in the alphabet and distinct, results first in one message, one a call, in order: every judge accepts (P2, P5, P6)."""
    response = converse({"text": "Hm."}, *[use(*one) for one in calls])
    before = repr(response)
    messages: list[Any] = [USER]
    for _ in range(turns):
        read = bedrock.calls(response)
        assert len(read) == len(calls)
        bedrock.extend(messages, response, settled(read, *fair(read, given_ends)), media=media, **options)
        writer = "writer.palmyra-x5" if media == "text" and not options["status"] else None
        assert bedrock_refused(messages, writer) is None
        messages += [] if calls else [USER]
        if calls:
            messages += [{"role": "assistant", "content": [{"text": "I see."}]}, USER]
    assert repr(response) == before
    blocks = [block for message in messages for block in message["content"]]
    announced_ids = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
    assert [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block] == announced_ids
    assert len(set(announced_ids)) == len(announced_ids) == turns * len(calls)


@settings(deadline=None, max_examples=150)
@given(value=data)
def test_what_a_tool_returned_can_be_read_out_of_its_result(value: Any) -> None:
    """Nothing of a result is lost or changed on the way: from data or from text, the model can have the very value (C7)."""
    snapshot = settled([ToolCall("a", "f")], value)
    said = gemini.results(snapshot)[0]["functionResponse"]["response"]
    assert "error" not in said or value == said
    inner = said["output"] if set(said) == {"output"} else said
    assert same(inner if not isinstance(inner, str) or isinstance(value, str) else json.loads(inner), value)
    (block,) = bedrock.results(snapshot, data=True)[0]["toolResult"]["content"]
    if isinstance(value, str):
        assert block == {"text": value if value.strip() else "[the result is empty]"}
    else:
        assert same(block["json"] if "json" in block else json.loads(block["text"]), value)


def same(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON: `true` is no 1 there."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@settings(deadline=None, max_examples=100)
@given(calls=announced, given_ends=ends)
def test_the_same_in_gives_the_same_out(calls: list[Any], given_ends: list[Any]) -> None:
    """A response that is read again, and a snapshot that is written again, give the same bytes (C16)."""
    for lane, response in (
        (gemini, candidate(*[call(*one) for one in calls])),
        (bedrock, converse(*[use(*one) for one in calls])),
    ):
        turns = []
        for given_response in (response, copy.deepcopy(response)):
            messages: list[Any] = []
            read = lane.calls(given_response)
            lane.extend(messages, given_response, settled(read, *fair(read, given_ends)))
            turns.append(repr(messages))
        assert turns[0] == turns[1]


KEYS = [
    "role",
    "parts",
    "candidates",
    "content",
    "output",
    "message",
    "functionCall",
    "toolUse",
    "finishReason",
    "stopReason",
    "type",
]
strangers = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["model", "assistant", "user", "STOP", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, max_examples=300)
@given(response=strangers)
def test_strangers_raise_one_error_or_none(response: Any) -> None:
    """Whatever JSON comes, a reader returns calls, which a turn can be made of, or names its mistake."""
    for lane in (gemini, bedrock):
        try:
            read = lane.calls(response)
        except InvalidTypeError:
            continue
        lane.extend([], response, settled(read))
