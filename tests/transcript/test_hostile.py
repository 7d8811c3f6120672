"""What a store, a gateway or an attacker can put into a list: it is read, or refused by name, and nothing is lost or changed."""

import contextlib
import dataclasses
import enum
from collections import UserDict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transcript.kit import Json, frozen, summed
from tests.transcript.test_law import FOLD, forms, result, user
from tests.transcript.worlds import Act, Recorded, Said, Turn, Writer, stories
from toolbatch import transcript
from toolbatch.core import InvalidInputError
from toolbatch.transcript import INTERRUPTED_TEXT, LANES, LaneName

EACH_LANE = pytest.mark.parametrize("lane", LANES)

JSON: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    10**30,
    "",
    "a",
    "\ud800",
    [],
    ["a"],
    [[]],
    [{}],
    {},
    {"type": "text"},
    {"a": [1]},
]
"""What any member of any entry may hold instead of what belongs there: all of it is JSON."""


def calls(*keys: Any) -> Json:
    """A turn of a chat whose calls have these ids."""
    entries = [{"id": key, "type": "function", "function": {"name": "f", "arguments": "{}"}} for key in keys]
    return {"role": "assistant", "content": None, "tool_calls": entries}


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all members and entries below a list of messages; the messages themselves are not among them."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    found = [path] if len(path) > 1 else []
    return found + [place for name, value in inner for place in places(value, (*path, name))]


def replaced(messages: list[Any], path: tuple[Any, ...], value: Any) -> list[Any]:
    """A deep copy with another value at one place."""
    changed = frozen(messages)
    node = changed
    for name in path[:-1]:
        node = node[name]
    node[path[-1]] = value
    return list(changed)


@EACH_LANE
@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_any_member_may_hold_anything(lane: LaneName, data: Any) -> None:
    """One or two members of a broken conversation hold something else: it is repaired, lawful, and nothing was changed (L1, L4)."""
    listed: list[Any] = Writer().write(lane, data.draw(stories(lane)).broken)
    for _ in range(data.draw(st.integers(1, 2))):
        listed = replaced(listed, data.draw(st.sampled_from(places(listed))), data.draw(st.sampled_from(JSON)))
    before = frozen(listed)
    found = transcript.check(listed, lane)
    view = transcript.repair(listed, lane)
    assert summed(view.repairs) == summed(found)
    assert transcript.check(view.messages, lane) == []
    assert transcript.repair(view.messages, lane).messages is view.messages
    sent = data.draw(st.integers(0, len(listed)))
    late = transcript.repair(listed, lane, sent=sent)
    assert all(one is other for one, other in zip(late.messages, listed[:sent], strict=False))
    assert transcript.repair(late.messages, lane, sent=sent).messages is late.messages
    arguments = transcript.repair_arguments(listed, lane)
    assert transcript.repair_arguments(arguments.messages, lane).messages is arguments.messages
    assert listed == before


# -- ids --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [0, -7, 10**5000, "\ud800", "a\x00b", "x" * 100_000, " "],
    ids=["0", "-7", "huge", "surrogate", "zero", "long", "blank"],
)
def test_an_id_may_be_any_text_or_number(key: Any) -> None:
    """It pairs like any other, and reports name it, however long it is (L3)."""
    assert forms(calls(key), result(key)) == []
    view = transcript.repair([calls(key), user(), result(key), result(key, "again")], "openai_chat")
    assert [message["role"] for message in view.messages] == ["assistant", "tool", "user"]
    assert view.messages[1]["tool_call_id"] == key
    assert all(str(repair) for repair in view.repairs)


def test_a_number_and_its_text_are_two_ids() -> None:
    """So are 1 and True: what is no id pairs by order (L3)."""
    assert forms(calls(1), result("1")) == ["missing_result", "orphan_result"]
    assert forms(calls(1), result(True)) == ["missing_result", "orphan_result"]
    assert forms(calls(1), result(1.0)) == ["missing_result", "orphan_result"]


@pytest.mark.parametrize("key", [None, "", [], ["a"], {"a": 1}, True, 1.5, b"a", float("nan"), object()])
def test_what_is_no_id_pairs_by_order(key: Any) -> None:
    """Two calls with such ids are two calls, and each is closed with what it came with (LANES 14.6)."""
    assert forms(calls(key, key), result(key), result(key)) == []
    view = transcript.repair([calls(key, key), result(key, "1"), user()], "openai_chat").messages
    assert [message.get("content") for message in view] == [None, "1", INTERRUPTED_TEXT, "Hi."]
    assert view[2]["tool_call_id"] is key
    assert transcript.check(view, "openai_chat") == []


def test_the_id_of_an_enum_or_of_a_subclass_is_its_text() -> None:
    """Its own code is not run where ids are compared; the close carries the very object."""

    class Name(str):
        """A text that can't be compared, hashed or printed."""

        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        def __hash__(self) -> int:
            raise RuntimeError

        def __str__(self) -> str:
            raise RuntimeError

    class Ids(enum.StrEnum):
        A = "a"

    name = Name("a")
    assert forms(calls(name), result("a")) == []
    assert forms(calls(Ids.A), result("a")) == []
    view = transcript.repair([calls(name)], "openai_chat")
    assert view.messages[1]["tool_call_id"] is name
    assert str(view.repairs[0]) == "messages[0]: a has no result: closed as interrupted"


@EACH_LANE
def test_one_id_for_everything(lane: LaneName) -> None:
    """Every call of every turn has the same id, some of them twice: the nearest turn gets each result, nothing is lost (L3, L7)."""
    acts: list[Act] = []
    for number in range(4):
        acts += [Said(f"said-{number}."), Turn((("call", "a"),) * (1 + number % 2))]
        acts += [Recorded("a", f"result-{number}-{n}.") for n in range(number)]
    listed = Writer().write(lane, acts)
    view = transcript.repair(listed, lane)
    assert transcript.check(view.messages, lane) == []
    assert [repair.form for repair in view.repairs] == [
        "missing_result",
        "duplicate_call",
        "duplicate_result",
        "duplicate_call",
        "duplicate_result",
    ]
    text = str(view.messages)
    assert all(act.text in text for act in acts if isinstance(act, Recorded))


# -- shapes -----------------------------------------------------------------------------------------------------------------


@EACH_LANE
def test_results_may_come_before_all_calls(lane: LaneName) -> None:
    """In the wrong order altogether, each result answers nothing, and each call is closed (L2)."""
    acts: list[Act] = [Said("first."), Recorded("a", "1."), Recorded("b", "2."), Turn((("call", "a"), ("call", "b")))]
    listed = Writer().write(lane, acts)
    view = transcript.repair(listed, lane)
    assert [(repair.form, repair.call_ids) for repair in view.repairs] == [
        ("orphan_result", ("a", "b")),
        ("missing_result", ("a", "b")),
    ]
    assert view.lossy
    assert transcript.check(view.messages, lane) == []


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("other", LANES)
def test_a_list_of_several_lanes_is_read_as_the_one_that_is_named(lane: LaneName, other: LaneName) -> None:
    """What belongs to another lane is content: it is neither paired nor lost; what can't be content is refused by its place."""
    acts: list[Act] = [Said("said."), Turn((("call", "a"),)), Recorded("a", "mine."), Said("more.")]
    listed: list[Any] = [*Writer().write(lane, acts), *Writer().write(other, acts)]
    view = transcript.repair(listed, lane)
    assert transcript.check(view.messages, lane) == []
    assert str(view.messages).count("mine.") == 2 - view.lossy


def test_empty_members_are_no_calls() -> None:
    """A turn without calls asks for nothing (L2)."""
    listed: list[Any] = [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": None, "tool_calls": None, "function_call": None},
        {"role": "assistant", "content": ""},
        {},
        {"role": "tool"},
    ]
    assert forms(*listed[:4]) == []
    assert forms(*listed) == ["orphan_result"]


def test_a_legacy_call_without_a_name_is_closed_for_good() -> None:
    """Its close has no name either, so that it is found again (case 60)."""
    for legacy in ({"arguments": "{}"}, {"name": None}, {"name": ["f"]}, "f", 5):
        view = transcript.repair([{"role": "assistant", "function_call": legacy}, user()], "openai_chat").messages
        assert view[1] == {"role": "function", "name": "", "content": INTERRUPTED_TEXT}
        assert transcript.repair(view, "openai_chat").messages is view


def test_a_response_item_without_an_id_is_content() -> None:
    """No output could name such a call. It moves in front of the calls like any content, once and for all (LANES 2)."""
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    nameless = {**call, "call_id": None}
    output = {"type": "function_call_output", "call_id": "a", "output": "ok"}
    view = transcript.repair([user(), call, nameless, output], "openai_responses")
    assert view.messages == [user(), nameless, call, output]
    assert transcript.check(view.messages, "openai_responses") == []


@pytest.mark.parametrize("value", ["text", 7, ["a"], True])
def test_a_gemini_response_that_is_no_object_is_kept(value: Any) -> None:
    """Folded or told late, it stands under `output`, where the lane puts what is no object (LANES 4)."""
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "id": "a", "args": {}}}]}
    part = {"functionResponse": {"name": "f", "id": "a", "response": value}}
    view = transcript.repair([call, {"role": "user", "parts": [part, part]}], "gemini").messages
    assert str(value) in str(view[1]["parts"][0]["functionResponse"]["response"]["output"])
    late = transcript.repair([call, *close_of_gemini(call), {"role": "user", "parts": [part]}], "gemini", sent=2)
    assert str(value).replace("'", '"') in late.messages[2]["parts"][0]["text"].replace("true", "True")


def close_of_gemini(call: Json) -> list[Any]:
    """The close of one turn."""
    return transcript.repair([call], "gemini").messages[1:]


def test_a_shell_output_that_is_no_list_is_folded_as_text() -> None:
    """Nothing of it is taken apart (LANES 2)."""
    call = {"type": "shell_call", "call_id": "a"}
    outputs = [{"type": "shell_call_output", "call_id": "a", "output": text} for text in ("one", "two")]
    (_, folded) = transcript.repair([call, *outputs], "openai_responses").messages
    assert folded["output"] == f"one{FOLD}two"


def test_nesting_has_no_bound() -> None:
    """Content is not walked through, so a hundred thousand levels are as good as one; where it must be written, it is cut."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    listed = [calls("a"), user(), result("a", deep), result("a", {"x": deep})]
    view = transcript.repair(listed, "openai_chat")
    assert [repair.form for repair in view.repairs] == ["late_result", "duplicate_result"]
    assert view.messages[1]["content"][0] is deep[0]
    assert transcript.repair_arguments([calls("a"), {"role": "assistant", "tool_calls": [
        {"id": "b", "function": {"name": "f", "arguments": {"x": deep}}}]}], "openai_chat").repairs  # fmt: skip


@pytest.mark.parametrize("number", [20_000])
def test_one_turn_may_have_any_number_of_calls(number: int) -> None:
    """All with one id, all repeated, all answered by one result or by as many: linear, whatever is wrong (L8)."""
    same = transcript.repair([calls(*["a"] * number), *[result("a", "x")] * number], "openai_chat")
    assert len(same.messages) == 2
    assert same.messages[1]["content"].count("x") == number
    ids = [f"c{n}" for n in range(number)]
    late = transcript.repair([calls(*ids), user(), *map(result, reversed(ids))], "openai_chat")
    assert [message.get("tool_call_id") for message in late.messages] == [None, *ids, None]
    blank = transcript.repair([calls(*[""] * number), *map(result, [""] * (number + 1))], "openai_chat")
    assert len(blank.messages) == number + 1


# -- messages with code of their own ------------------------------------------------------------------------------------------


class Angry(Exception):
    """What the objects here raise."""


class Raising:
    """An object every attribute of which raises."""

    def __getattr__(self, name: str) -> Any:
        raise Angry(name)


class Masked:
    """An object that raises when it is asked what it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise Angry


class Keyless(dict[str, Any]):
    """A dict whose `get` raises."""

    def get(self, *_: Any) -> Any:
        raise Angry


class Endless(list[Any]):
    """A list that can't be walked through."""

    def __iter__(self) -> Any:
        raise Angry


READERS: list[Callable[[list[Any], LaneName], object]] = [
    transcript.check,
    transcript.repair,
    transcript.repair_arguments,
    lambda messages, _: transcript.detect(messages),
]


@EACH_LANE
@pytest.mark.parametrize("make", [Raising, Masked, Keyless])
def test_a_message_that_raises_is_named(lane: LaneName, make: Callable[[], Any]) -> None:
    """Every reader says which message it is and what it raised, as its cause."""
    for read in READERS:
        with pytest.raises(InvalidInputError, match=r"messages\[1\] can't be read or copied: Angry") as caught:
            read([{}, make()], lane)
        assert isinstance(caught.value.__cause__, Angry)


@EACH_LANE
@pytest.mark.parametrize("make", [Raising, Masked, Keyless, Endless])
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_what_raises_inside_a_message_is_refused_or_not_read(
    lane: LaneName, make: Callable[[], Any], data: Any
) -> None:
    """In any member: whoever must read it refuses the list with an error of ours, and all others never notice."""
    listed: list[Any] = Writer().write(lane, data.draw(stories(lane)).broken)
    path = data.draw(st.sampled_from(places(listed)))
    listed = replaced(listed, path, make())
    for read in READERS:
        with contextlib.suppress(InvalidInputError):
            read(listed, lane)


def test_an_error_of_the_system_is_not_disguised() -> None:
    """Memory that runs out, and an interrupt, are no fault of a message."""

    class Exhausted(dict[str, Any]):
        def get(self, *_: Any) -> Any:
            raise self["error"]

    for error in (MemoryError, KeyboardInterrupt):
        for read in READERS:
            with pytest.raises(error):
                read([Exhausted(error=error)], "openai_chat")


# -- messages of other classes ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """A message that can't be changed."""

    role: str
    content: Any = None
    tool_calls: tuple[Any, ...] = ()
    tool_call_id: str | None = None


def test_frozen_dataclasses_are_copied() -> None:
    """A fold of two of them is one of them, and the first is as it was (L4)."""
    first, second = Frozen("tool", "1", tool_call_id="a"), Frozen("tool", "2", tool_call_id="a")
    view = transcript.repair([Frozen("assistant", tool_calls=({"id": "a"},)), first, second], "openai_chat").messages
    assert view[1] == dataclasses.replace(first, content=f"1{FOLD}2")
    assert first.content == "1"


def test_other_mappings_are_read_and_copied_to_dicts() -> None:
    """A mapping that is no dict is as good as one (L4)."""
    listed = [UserDict(calls("a", "a")), UserDict(result("a"))]
    view = transcript.repair(listed, "openai_chat").messages
    assert view == [calls("a"), listed[1]]
    assert view[1] is listed[1]


def test_an_object_that_cannot_be_copied_is_named() -> None:
    """Its error is the cause, and says what could not be done."""

    class Sealed:
        __slots__ = ("content", "role", "tool_call_id")

        def __init__(self, content: str) -> None:
            object.__setattr__(self, "role", "tool")
            object.__setattr__(self, "tool_call_id", "a")
            object.__setattr__(self, "content", content)

        def __setattr__(self, name: str, value: object) -> None:
            raise Angry(name)

    with pytest.raises(InvalidInputError, match="the messages can't be read or copied: Angry: Angry\\('content'\\)"):
        transcript.repair([calls("a"), Sealed("1"), Sealed("2")], "openai_chat")
    assert forms(calls("a"), Sealed("1")) == []  # type: ignore[arg-type]
