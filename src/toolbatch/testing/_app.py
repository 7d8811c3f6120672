"""The HTTP face of the fake provider: routes, keys, errors in each provider's shape, streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from toolbatch.testing._anthropic import check_anthropic_body
from toolbatch.testing._anthropic_wire import anthropic_answer
from toolbatch.testing._body import BodyError, parse_body
from toolbatch.testing._chat import check_chat_body
from toolbatch.testing._chat_wire import chat_answer
from toolbatch.testing._rejection import Rejection
from toolbatch.testing._responses_memory import ResponsesMemory
from toolbatch.testing._responses_wire import responses_answer
from toolbatch.testing._script import RecordedRequest, Reply, ScriptPlayer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.requests import Request

    from toolbatch.testing._wire import Answer, Json

__all__ = ["Desk", "make_app"]

_Check: TypeAlias = Callable[["Json"], "Rejection | None"]
_Write: TypeAlias = Callable[["Reply", "Json", int], "Answer"]

_CHAT, _RESPONSES, _MESSAGES = _ROUTES = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_OPENAI_NOT_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
)
_OPENAI_NO_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
    "(i.e. Authorization: Bearer YOUR_KEY)."
)


@dataclass(frozen=True, slots=True)
class _Lane:
    check: _Check
    write: _Write


class Desk:
    """Where a request is judged, answered from the script and recorded.

    All of it happens in one step without an `await`, so that requests at the same time get their replies in the order of
    the record.
    """

    def __init__(self, player: ScriptPlayer, requests: list[RecordedRequest]) -> None:
        self._requests = requests
        self._player = player
        self._memory = ResponsesMemory()
        self._lanes = {
            _CHAT: _Lane(check_chat_body, chat_answer),
            _RESPONSES: _Lane(self._memory.check, responses_answer),
            _MESSAGES: _Lane(check_anthropic_body, anthropic_answer),
        }

    @property
    def last_id(self) -> str:
        """The id of the request that was handled last."""
        return f"req_{len(self._requests)}"

    def handle(self, path: str, raw: bytes, refused: Rejection | None) -> tuple[RecordedRequest, Answer | None]:
        """Answer one request; `refused` is what its headers and route have already settled.

        The answer is `None` exactly if the record holds a rejection.
        """
        try:
            body, unread = parse_body(raw), None
        except BodyError as exc:
            body, unread = {}, _not_json(path, str(exc))
        request = RecordedRequest(path=path, body=body, stream=body.get("stream") is True)
        lane = self._lanes.get(path)
        rejection = refused or unread or (lane.check(body) if lane is not None else None)
        answer: Answer | None = None
        if rejection is None and lane is not None:
            outcome = self._answer(lane, request)
            if isinstance(outcome, Rejection):
                rejection = outcome
            else:
                answer = outcome
        request = replace(request, rejection=rejection)
        self._requests.append(request)
        return request, answer

    def _answer(self, lane: _Lane, request: RecordedRequest) -> Answer | Rejection:
        reply = self._player.next(request)
        if isinstance(reply, Rejection):
            return reply
        try:
            answer = lane.write(reply, request.body, self._player.played)
        except Exception as exc:  # noqa: BLE001 - a reply that the lane can't carry is a fault of the script
            return Rejection(rule="script", message=f"The scripted reply can't be written here: {exc!r}.", status=500)
        if request.path == _RESPONSES:
            self._memory.remember(request.body, answer.whole)
        return answer


def make_app(desk: Desk) -> Starlette:
    """Make the ASGI application around `desk`."""

    async def endpoint(request: Request) -> Response:
        path = request.url.path
        anthropic = path == _MESSAGES or "anthropic-version" in request.headers
        refused = _key_fault(request, anthropic=anthropic)
        if refused is None and not (request.method == "POST" and path in _ROUTES):
            text = "Not Found" if anthropic else f"Invalid URL ({request.method} {path})"
            refused = Rejection(rule="not_found", message=text, status=404)
        try:
            raw = await request.body()
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it: the client left before it had sent its request
        record, answer = desk.handle(path, raw, refused)
        headers = {"request-id": desk.last_id, "x-request-id": desk.last_id}
        if answer is None:
            return JSONResponse(_error(record, desk.last_id, anthropic=anthropic), record.status, headers)
        if record.stream:
            return StreamingResponse(_send(answer.frames), headers=headers, media_type="text/event-stream")
        return JSONResponse(answer.whole, headers=headers)

    return Starlette(routes=[Route("/{path:path}", endpoint, methods=_METHODS)])


async def _send(frames: Iterable[str]) -> AsyncIterator[str]:
    for frame in frames:
        yield frame


def _key_fault(request: Request, *, anthropic: bool) -> Rejection | None:
    """Any key will do, but a client that sends none is misconfigured."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    bearer = scheme.lower() == "bearer" and bool(token.strip())
    if bearer or (anthropic and request.headers.get("x-api-key")):
        return None
    text = "x-api-key header is required" if anthropic else _OPENAI_NO_KEY
    return Rejection(rule="unauthorized", message=text, status=401)


def _not_json(path: str, problem: str) -> Rejection:
    text = f"The request body is not valid JSON: {problem}" if path == _MESSAGES else _OPENAI_NOT_JSON
    return Rejection(rule="bad_request", message=text)


def _error(record: RecordedRequest, request_id: str, *, anthropic: bool) -> Json:
    """The body of a refusal, in the shape of the API that was asked."""
    rejection, status = record.rejection, record.status
    if anthropic:
        kinds = {401: "authentication_error", 404: "not_found_error", 500: "api_error"}
        error: Json = {"type": kinds.get(status, "invalid_request_error"), "message": record.error}
        return {"type": "error", "error": error, "request_id": request_id}
    kind = "server_error" if status >= 500 else "invalid_request_error"
    pointer, code = (rejection.param, rejection.code) if rejection is not None else (None, None)
    return {"error": {"message": record.error, "type": kind, "param": pointer, "code": code}}
