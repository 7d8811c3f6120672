"""What a tool node is given and gives back: the shapes of LangGraph's own `ToolNode`, whose contract this follows.

Three shapes come in: a state with messages, a list of messages, and single calls that `Send` has dispatched. Out go
messages, and the `Command`s that tools return.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage, convert_to_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Send

from toolbatch.core import (
    Document,
    Image,
    InvalidInputError,
    InvalidTypeError,
    Json,
    Part,
    Text,
    ToolCall,
    Url,
    preview,
)
from toolbatch.providers.kit import Turn, field, items

from ._langchain_messages import is_tool_message, read_turn

__all__ = ["Given", "Output", "Reply", "combined", "read_input", "read_response"]

Output = ToolMessage | Command[Any]
"""What one tool may give to the graph."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a node was invoked with.

    Attributes:
        kind: The shape: messages in a `list`, a state (`dict`, also for an object), or single `tool_calls`.
        state: What tools get as the graph's state; `None` where the graph has to be asked for it.
        turn: The calls as they were announced.
        calls: Those that have no answer yet, with distinct ids.
        earlier: The messages before the model's.
        is_whole: Whether the model's message is here and none of its calls has an answer, so that it may be mended.
    """

    kind: Literal["list", "dict", "tool_calls"]
    state: Any
    turn: Turn
    calls: list[ToolCall]
    earlier: Sequence[Any]
    is_whole: bool


def read_input(given: Any, messages_key: str) -> Given:
    """Return what a node was invoked with.

    Raises:
        InvalidInputError: There is no message of the model's in it.
        InvalidTypeError: It has none of the shapes.
    """
    if isinstance(given, list) and given and field(given[-1], "type") == "tool_call":
        return _direct(given, None)
    if isinstance(given, dict) and given.get("__type") == "tool_call_with_context":
        return _direct([given.get("tool_call")], given.get("state"))
    messages = given if isinstance(given, list) else field(given, messages_key)
    if not isinstance(messages, list | tuple):
        raise InvalidTypeError(
            f"a tool node needs messages, or a state with a list of them under {messages_key!r}, not {preview(given)}"
        )
    place = next((at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], AIMessage)), None)
    if place is None:
        raise InvalidInputError(f"there is no AIMessage in the {len(messages)} messages, so there are no calls to run")
    turn = read_turn(messages[place])
    calls = turn.calls()
    answered = Counter(field(message, "tool_call_id") for message in messages[place + 1 :] if is_tool_message(message))
    waiting = [call for call in calls if not _take(answered, call)]
    is_whole = len(waiting) == len(calls) and messages[place].id is not None
    kind: Literal["list", "dict"] = "list" if isinstance(given, list) else "dict"
    return Given(kind, given, turn, waiting, messages[:place], is_whole)


def _direct(calls: list[Any], state: Any) -> Given:
    turn = read_turn({"type": "ai", "tool_calls": calls})
    return Given("tool_calls", state, turn, turn.calls(), (), is_whole=False)


def _take(answered: "Counter[Any]", call: ToolCall) -> bool:
    wire_id = call.wire_id or call.id
    answered[wire_id] -= 1
    return answered[wire_id] >= 0


# -- what a tool of LangChain's returns ------------------------------------------------------------------------------------


class Reply(NamedTuple):
    """A tool's response.

    Attributes:
        value: What the model reads of it, as a value for the batch: text or parts.
        outputs: What the graph gets.
        answer: The `ToolMessage` that answers the call, in `outputs` or in a command there; `None` where the call leaves the
            graph without one.
    """

    value: str | tuple[Part, ...]
    outputs: list[Output]
    answer: ToolMessage | None

    @property
    def failed(self) -> bool:
        """Whether the tool itself says that it failed, though it returned."""
        return self.answer is not None and self.answer.status == "error"

    def stands(self, text: str, parts: tuple[Part, ...] | None) -> bool:
        """Whether the call was settled with this very value.

        Where an interceptor has replaced it or a budget shortened it, nothing of what the tool gave may reach the graph (T6).
        """
        return self.value == (text if parts is None else parts)


def read_response(response: Any, call_id: str, name: str, given: Given, messages_key: str) -> Reply:
    """Return what a tool gave: a `ToolMessage`, a `Command`, or a list of these with one answer among them.

    Raises:
        TypeError: It is none of these.
        ValueError: A call that stays in this graph has no answer in it, or more than one, or the update has another shape than
            the graph's state.
    """
    found = response if isinstance(response, list) else [response]
    if not all(isinstance(item, ToolMessage | Command) for item in found):
        raise TypeError(
            f"Tool {name} must return a ToolMessage, a Command, or a list of these, not {preview(response)}"
        )
    if len(found) == 1 and isinstance(found[0], ToolMessage):
        own = found[0].model_copy(update={"tool_call_id": call_id, "name": found[0].name or name})
        return Reply(_value(own.content), [own], own)
    outputs: list[Output] = []
    answers: list[ToolMessage] = []
    leaves = False
    for item in found:
        if isinstance(item, Command):
            item, own_messages, has_left = _read_command(item, name, given, messages_key)
            leaves = leaves or has_left
        else:
            item = item.model_copy()
            own_messages = [item]
        outputs.append(item)
        answers += [message for message in own_messages if message.tool_call_id == call_id]
    if len(answers) > 1 or not (answers or leaves):
        raise ValueError(
            f"Tool {name} returned {len(answers)} ToolMessages for the call {call_id!r}; it must have exactly one, in a "
            f"Command's update too: Command(update={{{messages_key!r}: [ToolMessage(..., tool_call_id=...)]}})"
        )
    answer = next(iter(answers), None)
    if answer is None:
        return Reply(f"{name} returned a command.", outputs, None)
    answer.name = name
    return Reply(_value(answer.content), outputs, answer)


def _read_command(
    command: "Command[Any]", name: str, given: Given, messages_key: str
) -> tuple["Command[Any]", list[ToolMessage], bool]:
    """Return a command with its messages as objects, those of tools, and whether the call needs no answer beside it."""
    update = command.update
    if isinstance(update, dict) and given.kind == "list":
        raise ValueError(f"Tool {name} returned a dict as Command.update, but the graph's state is a list of messages")
    if isinstance(update, list) and given.kind != "list":
        raise ValueError(f"Tool {name} returned a list as Command.update, but the graph's state is no list of messages")
    leaves = command.graph is not None
    if not isinstance(update, dict | list):
        return command, [], leaves
    messages = convert_to_messages(update.get(messages_key, []) if isinstance(update, dict) else update)
    own = [message.model_copy() if isinstance(message, ToolMessage) else message for message in messages]
    if own == [RemoveMessage(id=REMOVE_ALL_MESSAGES)]:
        leaves = True  # the whole conversation goes, and the call with it
    changed: Any = own
    if isinstance(update, dict):
        changed = {**update, messages_key: own} if messages_key in update else update
    return replace(command, update=changed), [message for message in own if isinstance(message, ToolMessage)], leaves


def _value(content: Any) -> str | tuple[Part, ...]:
    if isinstance(content, str):
        return content
    return tuple(_part(block) for block in items(content)) or ""


def _part(block: Any) -> Part:
    """Return one of LangChain's content blocks as a part, so that the batch's bounds on media hold for it too."""
    if isinstance(block, str):
        return Text(block)
    kind, data, mime_type = (
        field(block, "type"),
        field(block, "base64") or field(block, "data"),
        field(block, "mime_type"),
    )
    try:
        if kind == "text":
            return Text(field(block, "text"))
        if kind == "image":
            return Image.of(data, mime_type) if data else Image(Url(field(block, "url"), mime_type))
        if kind in ("file", "audio", "video"):
            return Document.of(data, mime_type) if data else Document(Url(field(block, "url"), mime_type))
    except (InvalidInputError, InvalidTypeError):
        pass  # another dialect, such as a provider's own: it is data
    return Json(block)


# -- what a node returns ---------------------------------------------------------------------------------------------------


def combined(outputs: Sequence[BaseMessage | Command[Any]], given: Given, messages_key: str) -> Any:
    """Return a node's outputs in the shape of its input; `Command`s stand beside the other updates, in their order.

    Those for the parent graph become one: LangGraph obeys the first that leaves a graph, and would lose the others.
    """
    if not any(isinstance(output, Command) for output in outputs):
        return list(outputs) if given.kind == "list" else {messages_key: list(outputs)}
    rows: list[Any] = []
    parents: list[Command[Any]] = []
    for output in outputs:
        if not isinstance(output, Command):
            rows.append([output] if given.kind == "list" else {messages_key: [output]})
        elif output.graph == Command.PARENT and (output.update is None or isinstance(output.update, dict)):
            parents.append(output)
        else:
            rows.append(output)
    return rows if not parents else [*rows, _together(parents)]


def _together(commands: Sequence["Command[Any]"]) -> "Command[Any]":
    if len(commands) == 1:
        return commands[0]
    targets: list[Any] = []
    for command in commands:
        targets += [command.goto] if isinstance(command.goto, str | Send) else command.goto
    # As pairs, since two updates of one key are two writes, which its reducer puts together.
    update = [pair for command in commands for pair in (command.update or {}).items()]
    return Command(graph=Command.PARENT, goto=targets, update=update or None)
