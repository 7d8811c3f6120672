"""Gemini: what is refused, in which words, and what is not."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.testing.transcripts import Json
from toolbatch.testing import Rule, check_gemini
from toolbatch.testing._gemini import check_gemini_body
from toolbatch.testing._gemini_parts import sign

CALLS = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
RESPONSES = "Please ensure that function response turn comes immediately after a function call turn."
NUMBER = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the function "
    "call turn."
)
LAST = "Please ensure that multiturn requests ends with a user role or a function response."
STRUCT = "type.googleapis.com/google.protobuf.Struct"
MESSAGES = "type.googleapis.com/google.ai.generativelanguage.v1beta"
EMPTY = "required oneof field 'data' must have one initialized field"
PNG = {"mimeType": "image/png", "data": "AA==", "displayName": "a.png"}


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def text(words: str) -> Json:
    return {"text": words}


def call(call_id: str | None = "a", name: str = "f", **more: Any) -> Json:
    facts: Json = {"name": name, **more}
    return {"functionCall": facts if call_id is None else {"id": call_id, **facts}}


def response(call_id: str | None = "a", name: str = "f", **more: Any) -> Json:
    facts: Json = {"name": name, "response": {"output": "ok"}, **more}
    return {"functionResponse": facts if call_id is None else {"id": call_id, **facts}}


def signed(part: Json, signature: str = "c2ln") -> Json:
    return {**part, "thoughtSignature": signature}


ASKED = user(text("Hi."))
TURN = [ASKED, model(call()), user(response())]


def holding(**response_facts: Any) -> list[Json]:
    return [ASKED, model(call()), user(response(**response_facts))]


VALID: dict[str, list[Json]] = {
    "a question": [ASKED],
    "a question without a role": [{"parts": [text("Hi.")]}],
    "a turn": TURN,
    "a turn in snake_case": [
        ASKED,
        model({"function_call": {"name": "f", "args": {}}, "thought_signature": "c2ln"}),
        user(
            {
                "function_response": {
                    "name": "f",
                    "response": {},
                    "parts": [{"inline_data": {"mime_type": "image/png", "data": "AA=="}}],
                }
            }
        ),
    ],
    "two calls without ids": [ASKED, model(call(None), call(None)), user(response(None), response(None))],
    "results in another order": [ASKED, model(call("a"), call("b", "g")), user(response("b", "g"), response("a"))],
    "results of the older role": [ASKED, model(call()), {"role": "function", "parts": [response()]}],
    "text before and behind a call": [ASKED, model(text("Well"), call(), text("so")), user(response())],
    "turn after turn": [*TURN, model(call("a")), user(response("a")), model(text("Done.")), ASKED],
    "the user's words behind the results": [*TURN, ASKED],
    "an id that comes again": [*TURN, model(call("a")), user(response("a"))],
    "a model that speaks last": [ASKED, model(text("Hm"))],
    "hosted tools": [
        ASKED,
        model({"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH_WEB"}}, {"toolResponse": {"id": "s"}}, call()),
        user(response()),
    ],
    "code": [ASKED, model({"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}})],
    "media in a result": holding(
        parts=[{"inlineData": PNG}, {"fileData": {"fileUri": "gs://b/a", "mimeType": "image/png"}}]
    ),
    "media in a result without a type": holding(parts=[{"fileData": {"fileUri": "https://x/files/1"}}]),
    "a reference": holding(response={"x": [{"$ref": "a.png"}]}, parts=[{"inlineData": PNG}]),
    "media of the user's": [
        user({"inlineData": {"mimeType": "video/mp4", "data": "AA=="}}, {"fileData": {"fileUri": "gs://b/a"}})
    ],
    "a signature beside empty text": [ASKED, model(signed(text("")))],
    "unpadded, url-safe base64": [ASKED, model(signed(text("x"), "-_8"))],
    "a signature of ours": [ASKED, model(signed(call(args={"x": 1}), sign("f", {"x": 1}))), user(response())],
    "a signature of ours without arguments": [ASKED, model(signed(call(), sign("f", {}))), user(response())],
}


@pytest.mark.parametrize("contents", VALID.values(), ids=VALID)
def test_accepted(contents: list[Json]) -> None:
    """What the API takes is taken, by the rules of no model and of the third generation's but for its signatures."""
    assert check_gemini(contents) is None


# name -> contents, rule, the provider's sentence
BROKEN: dict[str, tuple[Any, Rule, str]] = {
    # pairing
    "no result at the end": ([ASKED, model(call())], "missing_result", LAST),
    "no result before the user": ([ASKED, model(call()), ASKED], "missing_result", NUMBER),
    "no result before the model": ([ASKED, model(call()), model(text("x"))], "missing_result", NUMBER),
    "too few results": ([ASKED, model(call("a"), call("b")), user(response("a"))], "missing_result", NUMBER),
    "too many results": ([ASKED, model(call("a")), user(response("a"), response("b"))], "unknown_result_id", NUMBER),
    "a result twice": ([ASKED, model(call("a")), user(response("a"), response("a"))], "duplicate_result", NUMBER),
    "a result without a call": ([ASKED, user(response())], "orphan_result", RESPONSES),
    "a result first of all": ([user(response())], "orphan_result", RESPONSES),
    "a result in two contents": (
        [ASKED, model(call("a"), call("b")), user(response("a")), user(response("b"))],
        "missing_result",
        NUMBER,
    ),
    "a result behind other words": ([*TURN[:2], user(response()), ASKED, user(response())], "orphan_result", RESPONSES),
    "a result of the model's": ([ASKED, model(call()), model(response())], "orphan_result", RESPONSES),
    "text beside results": ([ASKED, model(call()), user(response(), text("Well?"))], "misplaced_content", NUMBER),
    "media beside results": (
        [ASKED, model(call()), user(response(), {"inlineData": PNG})],
        "misplaced_content",
        NUMBER,
    ),
    "a call first of all": ([model(call()), user(response())], "misplaced_content", CALLS),
    "a call behind the model's words": (
        [ASKED, model(text("x")), model(call()), user(response())],
        "misplaced_content",
        CALLS,
    ),
    "a call of the user's": ([ASKED, user(call()), user(response())], "misplaced_content", CALLS),
    "one id for two calls": (
        [ASKED, model(call("a"), call("a")), user(response("a"), response("a"))],
        "duplicate_call",
        "Function calls of one turn must have distinct ids.",
    ),
    "one id for two results": (
        [ASKED, model(call("a"), call("b")), user(response("a"), response("a"))],
        "duplicate_result",
        "Function responses of one turn must have distinct ids.",
    ),
    "another id": (
        [ASKED, model(call("a")), user(response("b"))],
        "unknown_result_id",
        "The function response id `b` does not match a function call of the function call turn.",
    ),
    "another name": (
        [ASKED, model(call(None, "f")), user(response(None, "g"))],
        "unknown_result_id",
        "The function response name `g` does not match a function call of the function call turn.",
    ),
    # shape
    "no contents": ([], "bad_request", "* GenerateContentRequest.contents: contents is not specified"),
    "no list": ("Hi.", "bad_request", "* GenerateContentRequest.contents: contents is not specified"),
    "no content": ([1], "bad_request", f"Invalid value at 'contents[0]' ({MESSAGES}.Content), 1"),
    "another lane's content": (
        [{"role": "user", "content": "Hi."}],
        "bad_request",
        "Invalid JSON payload received. Unknown name \"content\" at 'contents[0]': Cannot find field.",
    ),
    "another role": (
        [{"role": "assistant", "parts": [text("x")]}],
        "bad_request",
        "Please use a valid role: user, model.",
    ),
    "no parts": (
        [user()],
        "bad_content",
        "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.",
    ),
    "parts of another type": (
        [{"parts": "x"}],
        "bad_content",
        f"Invalid value at 'contents[0].parts' ({MESSAGES}.Part), \"x\"",
    ),
    "no part": ([{"parts": ["x"]}], "bad_content", f"Invalid value at 'contents[0].parts[0]' ({MESSAGES}.Part), \"x\""),
    "a hollow part": ([user({})], "bad_content", f"* GenerateContentRequest.contents[0].parts[0].data: {EMPTY}"),
    "an empty text": ([user(text(""))], "bad_content", f"* GenerateContentRequest.contents[0].parts[0].data: {EMPTY}"),
    "a text that is none": (
        [{"parts": [{"text": 5}]}],
        "bad_content",
        "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5",
    ),
    "two things in a part": (
        [user({"text": "x", "inlineData": PNG})],
        "bad_content",
        "Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. Cannot set 'inlineData'",
    ),
    "a field of another lane": (
        [ASKED, model(call()), user({"functionResponse": {"name": "f", "response": {}, "isError": True}})],
        "bad_content",
        "Invalid JSON payload received. Unknown name \"isError\" at 'contents[2].parts[0].function_response': Cannot find field.",
    ),
    "a piece of a call": (
        [ASKED, model(call(willContinue=True))],
        "bad_content",
        "Invalid JSON payload received. Unknown name \"willContinue\" at 'contents[1].parts[0].function_call': Cannot find field.",
    ),
    "arguments as text": (
        [ASKED, model(call(args="{}"))],
        "bad_arguments",
        f"Invalid value at 'contents[1].parts[0].function_call.args' ({STRUCT}), \"{{}}\"",
    ),
    "a call that is none": (
        [ASKED, model({"functionCall": "f"})],
        "bad_content",
        f"Invalid value at 'contents[1].parts[0].function_call' ({MESSAGES}.FunctionCall), \"f\"",
    ),
    "a call without a name": (
        [ASKED, model({"functionCall": {}})],
        "bad_name",
        "* GenerateContentRequest.contents[1].parts[0].function_call.name: Name cannot be empty.",
    ),
    "a result without a name": (
        [ASKED, model(call()), user(response(name=""))],
        "bad_name",
        "* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.",
    ),
    "a name that is none": (
        [ASKED, model({"functionCall": {"name": 5}})],
        "bad_name",
        "Invalid value at 'contents[1].parts[0].function_call.name' (TYPE_STRING), 5",
    ),
    "an id that is none": (
        [ASKED, model({"functionCall": {"name": "f", "id": 5}})],
        "bad_id",
        "Invalid value at 'contents[1].parts[0].function_call.id' (TYPE_STRING), 5",
    ),
    "a result that is text": (
        holding(response="ok"),
        "bad_content",
        f"Invalid value at 'contents[2].parts[0].function_response.response' ({STRUCT}), \"ok\"",
    ),
    "a result that is none": (
        [ASKED, model(call()), user({"functionResponse": "x"})],
        "bad_content",
        f"Invalid value at 'contents[2].parts[0].function_response' ({MESSAGES}.FunctionResponse), \"x\"",
    ),
    "no result in a result": (
        holding(response=None),
        "bad_content",
        "* GenerateContentRequest.contents[2].parts[0].function_response.response: Response cannot be empty.",
    ),
    "a reference to nothing": (
        holding(response={"schema": {"$ref": "#/$defs/A"}}),
        "bad_content",
        "The referenced name `#/$defs/A` in function_response.response does not match to a display_name in the function_response.parts.",
    ),
    "a name that is pointed at twice": (
        holding(response={"x": [{"$ref": "a.png"}, {"$ref": "a.png"}]}, parts=[{"inlineData": PNG}]),
        "bad_content",
        "The referenced name `a.png` in function_response.response does not match to a display_name in the function_response.parts.",
    ),
    "one name for two files": (
        holding(response={"x": {"$ref": "a.png"}}, parts=[{"inlineData": PNG}, {"inlineData": PNG}]),
        "bad_content",
        "The referenced name `a.png` in function_response.response does not match to a display_name in the function_response.parts.",
    ),
    "media of another type in a result": (
        holding(parts=[{"inlineData": {**PNG, "mimeType": "audio/wav"}}]),
        "bad_content",
        "Unsupported MIME type: audio/wav at contents[2].parts[0].function_response.parts[0]",
    ),
    "text among a result's media": (
        holding(parts=[{"text": "x"}]),
        "bad_content",
        f"* GenerateContentRequest.contents[2].parts[0].function_response.parts[0].data: {EMPTY}",
    ),
    "bytes that are no base64": (
        [user({"inlineData": {"mimeType": "image/png", "data": "?"}})],
        "bad_content",
        "Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"?\"",
    ),
    "no bytes": (
        [user({"inlineData": {"mimeType": "image/png"}})],
        "bad_content",
        "Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding failed for null",
    ),
    "bytes without a type": (
        [user({"inlineData": {"data": "AA=="}})],
        "bad_content",
        "* GenerateContentRequest.contents[0].parts[0].inline_data.mime_type: MIME type cannot be empty.",
    ),
    "a file without an address": (
        [user({"fileData": {"mimeType": "image/png"}})],
        "bad_content",
        "* GenerateContentRequest.contents[0].parts[0].file_data.file_uri: File URI cannot be empty.",
    ),
    "a file that is none": (
        [user({"inlineData": "x"})],
        "bad_content",
        f"Invalid value at 'contents[0].parts[0].inline_data' ({MESSAGES}.Blob), \"x\"",
    ),
    "a signature that is no base64": (
        [ASKED, model(signed(text("x"), "?"))],
        "bad_content",
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for \"?\"",
    ),
    "a signature of another call": (
        [ASKED, model(signed(call(args={"x": 2}), sign("f", {"x": 1}))), user(response())],
        "reasoning_pair",
        "Thought signature is not valid",
    ),
}


@pytest.mark.parametrize(("contents", "rule", "message"), BROKEN.values(), ids=BROKEN)
def test_refused(contents: Any, rule: Rule, message: str) -> None:
    """What the API refuses is refused, by this rule, in these words."""
    refusal = check_gemini(contents)
    assert refusal is not None
    assert (refusal.rule, refusal.message, refusal.status) == (rule, message, 400)


def test_gemini_3_wants_its_signatures_back() -> None:
    """Of the current turn, the first call of each content is signed; earlier turns, and other models, are not looked at."""
    unsigned = [ASKED, model(signed(call("a")), call("b")), user(response("a"), response("b")), *TURN[1:]]
    refusal = check_gemini(unsigned, model="gemini-3-pro-preview")
    assert refusal is not None
    assert refusal.rule == "reasoning_pair"
    assert refusal.message == (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
        "and missing thought_signature may lead to degraded model performance. Additional data, function call "
        "`default_api:f` , position 4. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )
    assert check_gemini(unsigned, model="models/gemini-3-flash") is not None
    assert check_gemini([*unsigned, ASKED], model="gemini-3-pro") is None
    assert check_gemini(unsigned[:3], model="gemini-3-pro") is None
    for other in (None, "gemini-2.5-pro", "m"):
        assert check_gemini(unsigned, model=other) is None


def test_gemini_2_takes_no_media_in_results() -> None:
    """It has a 400 of its own for them."""
    contents = holding(parts=[{"inlineData": PNG}])
    refusal = check_gemini(contents, model="gemini-2.5-flash")
    assert refusal is not None
    assert refusal.message == "Multimodal function responses are not supported for this model"
    assert check_gemini(TURN, model="gemini-2.5-flash") is None


BODIES: dict[str, tuple[Json, str]] = {
    "no contents": ({}, "* GenerateContentRequest.contents: contents is not specified"),
    "a function's name": (
        {"contents": [ASKED], "tools": [{"functionDeclarations": [{"name": "a b"}]}]},
        (
            "* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name. Must start with a letter or "
            "an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a "
            "maximum length of 128."
        ),
    ),
    "a function twice": (
        {"contents": [ASKED], "tools": [{"function_declarations": [{"name": "f"}, {"name": "f"}]}]},
        "Duplicate function declaration found: f",
    ),
}


@pytest.mark.parametrize(("body", "message"), BODIES.values(), ids=BODIES)
def test_bodies_refused(body: Json, message: str) -> None:
    """A body is judged as a whole."""
    refusal = check_gemini_body(body, "m")
    assert refusal is not None
    assert refusal.message == message
    assert (
        check_gemini_body({"contents": [ASKED], "tools": [{"functionDeclarations": [{"name": "a.b:c-d"}]}]}, "m")
        is None
    )


WORDS = st.sampled_from(
    [
        "role",
        "parts",
        "text",
        "model",
        "user",
        "functionCall",
        "functionResponse",
        "function_call",
        "name",
        "id",
        "response",
        "args",
        "inlineData",
        "data",
        "mimeType",
        "thoughtSignature",
        "fileData",
        "fileUri",
        "displayName",
        "$ref",
        "a",
        "image/png",
        "AA==",
        "thought",
        "tools",
        "functionDeclarations",
        "contents",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | WORDS | st.just(""),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "functionCall": st.fixed_dictionaries({"name": WORDS}, optional={"id": WORDS, "args": VALUES}) | VALUES,
        "functionResponse": st.fixed_dictionaries(
            {"name": WORDS, "response": st.dictionaries(WORDS, VALUES, max_size=3)},
            optional={"id": WORDS, "parts": VALUES},
        ),
        "text": WORDS,
        "thoughtSignature": VALUES,
        "inlineData": VALUES,
    },
)
CONTENTS = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "model"]), "parts": st.lists(PARTS, max_size=3)}),
    max_size=5,
)


@settings(max_examples=300, deadline=None)
@given(CONTENTS | VALUES, st.sampled_from([None, "gemini-2.5-pro", "gemini-3-pro"]))
def test_whatever_comes_is_judged(contents: object, name: str | None) -> None:
    """A judge that crashes has not judged."""
    check_gemini(contents, model=name)


@settings(max_examples=100, deadline=None)
@given(st.fixed_dictionaries({"contents": VALUES}, optional={"tools": VALUES}))
def test_whatever_body_comes_is_judged(body: Json) -> None:
    """So it is with whole bodies."""
    check_gemini_body(body, "m")
