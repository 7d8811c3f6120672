"""Bad reports raise a clear error and leave everything as it was, the call still pending (C5, C7, C8, C9)."""

import math
from collections import UserDict
from types import MappingProxyType
from typing import Any, cast

import pytest

from tests.core.kit import BLANK, LONE, NOT_TEXT, Equal, HostileText, NoRepr, opened, shown, view
from toolbatch.core import (
    BatchHandle,
    Closed,
    EncodingError,
    Failed,
    InvalidInputError,
    InvalidTypeError,
    Limits,
    Rejected,
    Snapshot,
    Succeeded,
    ToolCallClosure,
)


def refused(
    operation: Any, error: type[Exception], match: str | None = None, limits: Limits | None = None, encode: Any = None
) -> None:
    """Assert that `operation(closure, handle)` raises and changes nothing that can be seen, now or at the close."""
    closure, handle = opened("a", "b", limits=limits) if encode is None else opened("a", "b", encode=encode)
    closure.start(handle, "b")
    before = shown(closure).to_dict()
    with pytest.raises(error, match=match):
        operation(closure, handle)
    assert shown(closure).to_dict() == before
    assert [call.started for call in shown(closure).calls] == [False, True]
    assert closure.succeed(handle, "a", "x").accepted
    closed = closure.close(handle, side_effect_state=None)
    assert isinstance(closed, Snapshot)
    assert closed.calls[0].settlement == Succeeded("x")
    assert isinstance(closed.calls[1].settlement, Closed)
    assert closed.calls[1].settlement.partial is None


# -- call ids ------------------------------------------------------------------------------------------------------------

BY_ID: dict[str, Any] = {
    "start": lambda closure, handle, call_id: closure.start(handle, call_id),
    "progress": lambda closure, handle, call_id: closure.progress(handle, call_id, "p"),
    "settle": lambda closure, handle, call_id: closure.settle(handle, call_id, {"status": "error"}),
    "succeed": lambda closure, handle, call_id: closure.succeed(handle, call_id, "x"),
    "fail": lambda closure, handle, call_id: closure.fail(handle, call_id, "x"),
    "cancel": lambda closure, handle, call_id: closure.cancel(handle, call_id),
    "close_call": lambda closure, handle, call_id: closure.close_call(handle, call_id),
}


@pytest.mark.parametrize("operation", BY_ID)
@pytest.mark.parametrize("call_id", NOT_TEXT, ids=type)
def test_a_call_id_of_another_type_is_the_callers_mistake(operation: str, call_id: Any) -> None:
    """An id that is no text raises, unhashable ones too; also where the handle is stale (C5)."""
    refused(
        lambda closure, handle: BY_ID[operation](closure, handle, call_id), InvalidTypeError, "call_id must be a str"
    )
    refused(lambda closure, handle: BY_ID[operation](closure, None, call_id), InvalidTypeError, "call_id must be a str")


@pytest.mark.parametrize("operation", BY_ID)
@pytest.mark.parametrize(
    "call_id",
    [*BLANK, *LONE, "x" * 9, "é" * 5, HostileText(" "), HostileText("x" * 9)],
    ids=lambda text: ascii(str.__str__(text)),
)
def test_a_call_id_that_can_not_be_used_is_the_callers_mistake(operation: str, call_id: str) -> None:
    """An id that nobody could have announced raises instead of filling the diagnostics (C5, C13)."""
    limits = Limits(max_id_bytes=8)
    refused(lambda closure, handle: BY_ID[operation](closure, handle, call_id), InvalidInputError, "call_id", limits)
    refused(lambda closure, handle: BY_ID[operation](closure, None, call_id), InvalidInputError, "call_id", limits)


@pytest.mark.parametrize("operation", BY_ID)
def test_a_call_id_of_a_subclass_is_that_call(operation: str) -> None:
    """An id of a subclass of `str` names the same call, is answered plainly, and none of its methods runs (C14)."""
    HostileText.called.clear()
    closure, handle = opened("a")
    stale = BY_ID[operation](closure, None, HostileText("a"))
    unknown = BY_ID[operation](closure, handle, HostileText("nobody"))
    accepted = BY_ID[operation](closure, handle, HostileText("a"))
    assert accepted.accepted
    for answer in (stale, unknown, accepted):
        assert type(answer.call_id) is str
    assert HostileText.called == []


def test_a_rejected_id_is_noted_plainly_after_its_batch_was_replaced() -> None:
    """The diagnostic of a report that was overtaken while it was read holds plain text as well (C13, C14)."""
    closure, handle = opened("a")

    class Overtakes:
        def __str__(self) -> str:
            closure.begin([])
            return "x"

    HostileText.called.clear()
    answer = closure.fail(handle, HostileText("a"), Overtakes())
    assert isinstance(answer, Rejected)
    assert type(answer.call_id) is str
    assert type(shown(closure).diagnostics[0].call_id) is str
    assert HostileText.called == []


# -- outcomes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        "success",
        b"success",
        5,
        True,
        ["status"],
        [("status", "error")],
        ("error",),
        {"status"},
        object(),
        Equal(),
        NoRepr(),
        dict,
    ],
    ids=type,
)
def test_an_outcome_that_is_no_mapping_is_refused(outcome: Any) -> None:
    """An outcome of another type raises a type error (C5)."""
    refused(lambda closure, handle: closure.settle(handle, "a", outcome), InvalidTypeError, "outcome must be a mapping")


@pytest.mark.parametrize(
    "status",
    [
        None,
        "",
        "Success",
        "done",
        "pending",
        "complete",
        5,
        True,
        b"error",
        ["error"],
        {},
        Equal(),
        NoRepr(),
        HostileText("done"),
    ],
    ids=type,
)
def test_an_outcome_of_no_known_status_is_refused(status: Any) -> None:
    """Only success, error and cancelled are outcomes; what claims to equal them is not (C5)."""
    refused(
        lambda closure, handle: closure.settle(handle, "a", {"status": status}), InvalidInputError, r"outcome\.status"
    )
    refused(lambda closure, handle: closure.settle(handle, "a", {}), InvalidInputError, r"outcome\.status")


def test_a_success_needs_content() -> None:
    """A missing content is no `null` (C7)."""
    refused(lambda closure, handle: closure.settle(handle, "a", {"status": "success"}), InvalidInputError, "content")
    closure, handle = opened("a")
    closure.settle(handle, "a", {"status": "success", "content": None})
    assert shown(closure).calls[0].settlement == Succeeded("null")


@pytest.mark.parametrize("make", [dict, UserDict, MappingProxyType], ids=["dict", "UserDict", "MappingProxyType"])
def test_any_mapping_is_an_outcome(make: Any) -> None:
    """A mapping that is no dict describes an outcome just as well; a hostile status comes out plain (C5)."""
    HostileText.called.clear()
    closure, handle = opened("a", "b")
    closure.settle(handle, "a", make({"status": HostileText("error"), "code": HostileText("c"), "message": "m"}))
    assert shown(closure).calls[0].settlement == Failed("c", "m")
    assert type(shown(closure).to_dict()["calls"][0]["settlement"]["code"]) is str
    assert (
        closure.settle(BatchHandle(1), "b", make({"status": HostileText("error")})).to_dict()["observed_status"]
        == "error"
    )
    assert closure.settle(BatchHandle(1), "b", make({"status": Equal()})).to_dict()["observed_status"] == "invalid"
    assert HostileText.called == []


# -- content -------------------------------------------------------------------------------------------------------------

NOT_JSON: list[Any] = [
    object(),
    NoRepr(),
    math.nan,
    [math.inf],
    {"k": -math.inf},
    {math.nan: 1},
    {(): 1},
    10**5000,
    print,
    iter([]),
    *LONE,
    [LONE[0]],
    {LONE[0]: 1},
]


@pytest.mark.parametrize("content", NOT_JSON, ids=lambda content: type(content).__name__)
def test_content_that_is_not_json_is_refused(content: Any) -> None:
    """Not serialisable, NaN, infinite, or with a lone surrogate anywhere: the call is still pending (C7)."""
    refused(lambda closure, handle: closure.succeed(handle, "a", content), EncodingError)
    refused(
        lambda closure, handle: closure.settle(handle, "a", {"status": "success", "content": content}), EncodingError
    )


def test_circular_content_is_refused() -> None:
    """A value that holds itself raises, and the call is still pending (C7)."""
    circle: list[Any] = []
    circle.append({"in": circle})
    refused(lambda closure, handle: closure.succeed(handle, "a", circle), EncodingError, "holds itself|[Cc]ircular")


@pytest.mark.parametrize("made", [None, b"text", 5, ["x"], bytearray(b"x"), HostileText("x"), NoRepr()], ids=type)
def test_an_encoder_that_gives_no_text_is_refused(made: Any) -> None:
    """What an injected encoder returns must be a plain `str`, for a result and for progress alike (C7, B19)."""
    refused(
        lambda closure, handle: closure.succeed(handle, "a", {}),
        EncodingError,
        "encoder must return a str",
        encode=lambda _: made,
    )
    refused(
        lambda closure, handle: closure.progress(handle, "b", {}),
        EncodingError,
        "encoder must return a str",
        encode=lambda _: made,
    )


@pytest.mark.parametrize("text", LONE, ids=ascii)
def test_an_encoders_text_is_checked_like_any_other(text: str) -> None:
    """A lone surrogate or too many bytes out of an injected encoder raise as well (C7)."""
    refused(lambda closure, handle: closure.succeed(handle, "a", {}), EncodingError, "surrogate", encode=lambda _: text)


@pytest.mark.parametrize("operation", ["succeed", "progress"])
@pytest.mark.parametrize("error", [ValueError("v"), KeyError("k"), RuntimeError("r"), KeyboardInterrupt()], ids=type)
def test_what_an_injected_encoder_raises_passes_untouched(operation: str, error: BaseException) -> None:
    """A host's encoder raises what it likes, and the state is as it was (C7)."""

    def broken(value: object) -> str:
        raise error

    closure, handle = opened("a", encode=broken)
    before = view(closure)
    with pytest.raises(type(error)) as caught:
        getattr(closure, operation)(handle, "a", {})
    assert caught.value is error
    assert view(closure) == before


@pytest.mark.parametrize("content", [object(), math.nan, {(): 1}], ids=type)
def test_progress_that_is_not_json_is_refused(content: Any) -> None:
    """Progress that can't be written raises and leaves no trace (B19)."""
    refused(lambda closure, handle: closure.progress(handle, "b", content), EncodingError)


# -- messages and codes ------------------------------------------------------------------------------------------------------

WITH_CODE: dict[str, Any] = {
    "settle error": lambda closure, handle, code: closure.settle(handle, "a", {"status": "error", "code": code}),
    "settle cancelled": lambda closure, handle, code: closure.settle(
        handle, "a", {"status": "cancelled", "code": code}
    ),
    "fail": lambda closure, handle, code: closure.fail(handle, "a", "x", code),
    "cancel": lambda closure, handle, code: closure.cancel(handle, "a", "x", code),
    "close_call": lambda closure, handle, code: closure.close_call(handle, "a", "error", code),
    "close": lambda closure, handle, code: closure.close(handle, "error", code),
}


@pytest.mark.parametrize("operation", WITH_CODE)
@pytest.mark.parametrize("code", [code for code in NOT_TEXT if code is not None], ids=type)
def test_a_code_of_another_type_is_refused(operation: str, code: Any) -> None:
    """A code that is no text raises a type error; falsy ones are no way of giving none (C8)."""
    refused(lambda closure, handle: WITH_CODE[operation](closure, handle, code), InvalidTypeError, "code must be a str")


@pytest.mark.parametrize("operation", WITH_CODE)
@pytest.mark.parametrize(
    "code", [*BLANK, *LONE, "x" * 9, "é" * 5, HostileText("")], ids=lambda text: ascii(str.__str__(text))
)
def test_a_code_that_can_not_be_used_is_refused(operation: str, code: str) -> None:
    """A code over its limit or blank raises; it is never cut (C8)."""
    refused(
        lambda closure, handle: WITH_CODE[operation](closure, handle, code),
        InvalidInputError,
        "code",
        Limits(max_code_bytes=8),
    )


@pytest.mark.parametrize("operation", WITH_CODE)
def test_a_good_code_is_kept_whole(operation: str) -> None:
    """A code within its limit is the settlement's code, as plain text (C8)."""
    HostileText.called.clear()
    closure, handle = opened("a", limits=Limits(max_code_bytes=8))
    WITH_CODE[operation](closure, handle, HostileText("timeout!"))
    settlement = shown(closure).to_dict()["calls"][0]["settlement"]
    assert settlement["code"] == "timeout!"
    assert type(settlement["code"]) is str
    assert HostileText.called == []


class Speaks(str):
    """Text that says something else when it is asked."""

    __slots__ = ()

    def __str__(self) -> str:
        return HostileText("spoken")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (5, "5"),
        (None, "None"),
        (["x"], "['x']"),
        (b"x", "b'x'"),
        (Exception(), ""),
        (KeyError("k"), "'k'"),
        (Speaks("x"), "spoken"),
    ],
    ids=repr,
)
def test_an_error_of_any_type_has_a_message(message: Any, text: str) -> None:
    """`fail` takes whatever there is to say, as its own `str`, and keeps it plain (C8)."""
    HostileText.called.clear()
    closure, handle = opened("a")
    closure.fail(handle, "a", message)
    settlement = shown(closure).calls[0].settlement
    assert settlement == Failed("tool_error", text)
    assert type(settlement.message) is str
    assert HostileText.called == []


@pytest.mark.parametrize(
    "operation",
    [
        lambda closure, handle, message: closure.fail(handle, "a", message),
        lambda closure, handle, message: closure.cancel(handle, "a", message),
        lambda closure, handle, message: closure.close_call(handle, "a", message=message),
        lambda closure, handle, message: closure.close(handle, message=message),
        lambda closure, handle, message: closure.settle(handle, "a", {"status": "error", "message": message}),
    ],
    ids=["fail", "cancel", "close_call", "close", "settle"],
)
def test_a_message_that_can_not_be_read_leaves_the_call_pending(operation: Any) -> None:
    """An exception whose `__str__` raises, or returns no text, raises out of ours; nothing has changed (C8, C14)."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("mute")

    class Wrong:
        def __str__(self) -> str:
            return cast(str, 5)

    refused(lambda closure, handle: operation(closure, handle, Mute()), RuntimeError, "mute")
    refused(lambda closure, handle: operation(closure, handle, Wrong()), TypeError)


# -- closing -------------------------------------------------------------------------------------------------------------

CLOSING: dict[str, Any] = {
    "close": lambda closure, handle, **options: closure.close(handle, **options),
    "close_call": lambda closure, handle, **options: closure.close_call(handle, "a", **options),
}


@pytest.mark.parametrize("operation", CLOSING)
@pytest.mark.parametrize(
    "status",
    [
        None,
        "",
        "success",
        "complete",
        "pending",
        "Error",
        5,
        True,
        b"error",
        ["error"],
        Equal(),
        NoRepr(),
        HostileText("success"),
    ],
    ids=type,
)
def test_a_close_status_that_there_is_not_is_refused(operation: str, status: Any) -> None:
    """A call can only be closed as error or cancelled; what claims to equal them is neither (C9)."""
    refused(
        lambda closure, handle: CLOSING[operation](closure, handle, status=status), InvalidInputError, "close status"
    )


@pytest.mark.parametrize("operation", CLOSING)
@pytest.mark.parametrize(
    "state",
    ["", "started", "Unknown", 0, False, 5, b"unknown", [], Equal(), NoRepr(), HostileText("stopped")],
    ids=type,
)
def test_a_side_effect_state_that_there_is_not_is_refused(operation: str, state: Any) -> None:
    """Nothing but unknown, not_started and None can be claimed: not that work stopped, nor anything falsy (C10)."""
    refused(
        lambda closure, handle: CLOSING[operation](closure, handle, side_effect_state=state),
        InvalidInputError,
        "side_effect_state",
    )


@pytest.mark.parametrize("operation", CLOSING)
def test_words_of_a_subclass_are_made_plain(operation: str) -> None:
    """A status and a side-effect state of a subclass of `str` are taken as ours; none of their methods runs (C14)."""
    HostileText.called.clear()
    closure, handle = opened("a")
    CLOSING[operation](closure, handle, status=HostileText("error"), side_effect_state=HostileText("not_started"))
    settlement = shown(closure).calls[0].settlement
    assert isinstance(settlement, Closed)
    assert (settlement.status, settlement.side_effect_state) == ("error", "not_started")
    assert {type(value) for value in settlement.to_dict().values()} == {str}
    superseded = ToolCallClosure()
    superseded.begin([{"id": "a", "name": "t"}])
    hostile: Any = HostileText("not_started")
    before = superseded.begin([], side_effect_state=hostile).superseded
    assert before is not None
    assert type(before.to_dict()["calls"][0]["settlement"]["side_effect_state"]) is str
    assert HostileText.called == []
