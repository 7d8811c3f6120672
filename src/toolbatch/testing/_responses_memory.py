"""What the Responses server keeps: answers that later requests continue or refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolbatch.testing._rejection import Rejection
from toolbatch.testing._responses import check_responses, check_responses_body, input_items
from toolbatch.testing._responses_items import item_type

if TYPE_CHECKING:
    from toolbatch.testing._responses_items import Item
    from toolbatch.testing._wire import Json

__all__ = ["ResponsesMemory"]


class ResponsesMemory:
    """The stored responses of one fake provider."""

    def __init__(self) -> None:
        self._context: dict[str, list[Item]] = {}  # response id -> everything up to and with its output
        self._items: dict[str, Item] = {}  # item id -> item
        self._led_by: dict[str, str] = {}  # item id -> id of the reasoning item that led to it

    def check(self, body: Json) -> Rejection | None:
        """Check a whole request body of `POST /v1/responses` against what is stored."""
        fault = check_responses_body(body)
        if fault is not None:
            return fault
        earlier = self._earlier(body)
        if earlier is None:
            text = f"Previous response with id '{body['previous_response_id']}' not found."
            return Rejection(
                rule="not_found", message=text, param="previous_response_id", code="previous_response_not_found"
            )
        fault = check_responses(body["input"], previous=earlier, stored=self._items)
        return fault or self._torn_reasoning(input_items(body["input"]))

    def remember(self, body: Json, response: Json) -> None:
        """Keep an answer, unless the request said `store: false`."""
        if body.get("store") is False:
            return
        output: list[Item] = response["output"]
        references = [self._items.get(str(item.get("id")), item) for item in input_items(body["input"])]
        self._context[response["id"]] = [*(self._earlier(body) or []), *references, *output]
        led_by = ""
        for item in output:
            item_id = str(item.get("id", ""))
            self._items[item_id] = item
            if item_type(item) == "reasoning":
                led_by = item_id
            elif led_by:
                self._led_by[item_id] = led_by
                led_by = ""

    def _earlier(self, body: Json) -> list[Item] | None:
        """The items before this input; `None` if the response that they belong to is unknown."""
        previous = body.get("previous_response_id")
        return [] if previous is None else self._context.get(str(previous))

    def _torn_reasoning(self, items: list[Item]) -> Rejection | None:
        """An item that reasoning led to may be sent again by its id only together with that reasoning item."""
        before = ""
        for item in items:
            item_id = str(item.get("id", ""))
            reasoning = self._led_by.get(item_id)
            if reasoning is not None and reasoning != before:
                kind = item_type(self._items[item_id])
                text = f"Item '{item_id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
                return Rejection(rule="reasoning_pair", message=text, param="input")
            before = item_id
        return None
