"""A model of the Agents SDK whose calls have distinct ids: the SDK asks that of every model, and ends the run where it isn't so."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Final

from agents import Model, ModelResponse
from agents.items import TResponseStreamEvent

from toolbatch.core import InvalidTypeError, preview
from toolbatch.providers.kit import IdRule, field, mint

__all__ = ["distinct_ids"]

_IDS: Final = IdRule(max_chars=64)  # of `call_id` (LANES 2)
_CALLS: Final = ("function_call", "custom_tool_call")


def distinct_ids(model: Model) -> Model:
    """Return the same model with ids of ours where its calls have none, share one, or repeat one of an earlier turn (P6).

    It is for models of gateways; OpenAI's own never need it. It works for streamed responses as well.

    Raises:
        InvalidTypeError: It is no model; a model's name is none.
    """
    if not isinstance(model, Model):
        raise InvalidTypeError(f"model must be an object of the SDK's Model, not {preview(model)}")
    return _DistinctIds(model)


class _DistinctIds(Model):
    def __init__(self, model: Model) -> None:
        self._model = model

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002  the SDK's name; what follows is handed on
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        response = await self._model.get_response(system_instructions, input, *args, **kwargs)
        ids = _Ids(input)
        output = [ids.put(item, at) for at, item in enumerate(response.output)]
        return replace(response, output=output) if ids.have_changed else response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002  the SDK's name
        *args: Any,
        **kwargs: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        ids = _Ids(input)
        async for event in self._model.stream_response(system_instructions, input, *args, **kwargs):
            yield _event(event, ids)

    def get_retry_advice(self, request: Any) -> Any:
        return self._model.get_retry_advice(request)

    async def close(self) -> None:
        await self._model.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)


class _Ids:
    """The ids of one response: an item keeps the one it was given, in whichever event it comes again."""

    def __init__(self, given: str | Sequence[Any]) -> None:
        earlier = () if isinstance(given, str) else given
        self._taken = {field(item, "call_id") for item in earlier if field(item, "type") in _CALLS}
        self._chosen: dict[int, str] = {}
        self.have_changed = False

    def put(self, item: Any, at: int) -> Any:
        """Return an output item with the id of its place; what is no call is the same object."""
        if field(item, "type") not in _CALLS:
            return item
        wire_id = field(item, "call_id")
        call_id = self._chosen.get(at)
        if call_id is None:
            is_free = _IDS.usable(wire_id) and wire_id not in self._taken
            call_id = wire_id if is_free else mint((at, wire_id, field(item, "name")), self._taken)
            self._chosen[at] = call_id
            self._taken.add(call_id)
        if call_id == wire_id:
            return item
        self.have_changed = True
        return {**item, "call_id": call_id} if isinstance(item, dict) else item.model_copy(update={"call_id": call_id})


def _event(event: Any, ids: _Ids) -> Any:
    item, response = field(event, "item"), field(event, "response")
    if item is not None and isinstance(at := field(event, "output_index"), int):
        changed = ids.put(item, at)
        return event if changed is item else event.model_copy(update={"item": changed})
    output = field(response, "output")
    if output:
        changed = [ids.put(entry, at) for at, entry in enumerate(output)]
        if any(new is not old for new, old in zip(changed, output, strict=True)):
            return event.model_copy(update={"response": response.model_copy(update={"output": changed})})
    return event
