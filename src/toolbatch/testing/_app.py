"""The HTTP face of the fake provider: routes, and what becomes of a request on its way to an answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from toolbatch.testing._anthropic import check_anthropic_body
from toolbatch.testing._anthropic_wire import anthropic_answer
from toolbatch.testing._bedrock import check_bedrock_body
from toolbatch.testing._bedrock_wire import bedrock_answer
from toolbatch.testing._body import BodyError, parse_body
from toolbatch.testing._chat import check_chat_body
from toolbatch.testing._chat_wire import chat_answer
from toolbatch.testing._faces import ANTHROPIC, BEDROCK, GEMINI, OPENAI, Face, face_of
from toolbatch.testing._gemini import check_gemini_body
from toolbatch.testing._gemini_wire import gemini_answer
from toolbatch.testing._rejection import Rejection
from toolbatch.testing._responses_memory import ResponsesMemory
from toolbatch.testing._responses_wire import responses_answer
from toolbatch.testing._script import RecordedRequest, Reply, ScriptPlayer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from starlette.requests import Request

    from toolbatch.testing._wire import Answer, Json

__all__ = ["Desk", "Target", "make_app"]

_Check: TypeAlias = Callable[["Json", str], "Rejection | None"]
_Write: TypeAlias = Callable[["Reply", "Json", int, str], "Answer"]

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True, slots=True)
class _Lane:
    """One API's route.

    Attributes:
        path: What its path matches, with the groups `model` and `stream` where these are in the path.
        face: The API.
        check: Judges a body, for a model.
        write: Writes a reply for a body, with the number of the reply and the model.
        remember: Keeps an answer to a body for later requests.
    """

    path: re.Pattern[str]
    face: Face
    check: _Check
    write: _Write
    remember: Callable[[Json, Json], None] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What a request asks for.

    Attributes:
        lane: Of which API.
        model: Of which model, where the path says it; else empty.
        stream: Whether the path asks for a stream.
    """

    lane: _Lane
    model: str
    stream: bool


class Desk:
    """Where a request is judged, answered from the script and recorded.

    All of it happens in one step without an `await`, so that requests at the same time get their replies in the order of
    the record.
    """

    def __init__(self, player: ScriptPlayer, requests: list[RecordedRequest]) -> None:
        self._requests = requests
        self._player = player
        memory = ResponsesMemory()
        self._lanes = (
            _Lane(re.compile("/v1/chat/completions"), OPENAI, _bare(check_chat_body), _named(chat_answer)),
            _Lane(re.compile("/v1/responses"), OPENAI, _bare(memory.check), _named(responses_answer), memory.remember),
            _Lane(re.compile("/v1/messages"), ANTHROPIC, _bare(check_anthropic_body), _named(anthropic_answer)),
            _Lane(
                re.compile(r"/.*models/(?P<model>[^/:]+):(?:generateContent|(?P<stream>streamGenerateContent))"),
                GEMINI,
                check_gemini_body,
                gemini_answer,
            ),
            _Lane(
                re.compile(r"/model/(?P<model>[^/]+)/converse(?P<stream>-stream)?"),
                BEDROCK,
                check_bedrock_body,
                _named(bedrock_answer),
            ),
        )

    @property
    def last_id(self) -> str:
        """The id of the request that was handled last."""
        return f"req_{len(self._requests)}"

    def target(self, path: str) -> Target | None:
        """What a path asks for; `None` where there is no such route."""
        for lane in self._lanes:
            match = lane.path.fullmatch(path)
            if match is not None:
                said = match.groupdict()
                return Target(lane, unquote(said.get("model") or ""), said.get("stream") is not None)
        return None

    def handle(
        self, path: str, raw: bytes, aim: Target | Rejection, face: Face
    ) -> tuple[RecordedRequest, Answer | Rejection]:
        """Answer or refuse one request; `aim` is a rejection where its headers and route have settled that already."""
        body: Json = {}
        unread: Rejection | None = None
        try:
            body = parse_body(raw)
        except BodyError as exc:
            unread = Rejection(rule="bad_request", message=face.not_json(str(exc)))
        stream = body.get("stream") is True or (isinstance(aim, Target) and aim.stream)
        request = RecordedRequest(path=path, body=body, stream=stream)
        outcome = aim if isinstance(aim, Rejection) else unread or self._answer(aim, request)
        request = replace(request, rejection=outcome if isinstance(outcome, Rejection) else None)
        self._requests.append(request)
        return request, outcome

    def _answer(self, target: Target, request: RecordedRequest) -> Answer | Rejection:
        lane = target.lane
        fault = lane.check(request.body, target.model)
        if fault is not None:
            return fault
        reply = self._player.next(request)
        if isinstance(reply, Rejection):
            return reply
        try:
            answer = lane.write(reply, request.body, self._player.played, target.model)
        except Exception as exc:  # noqa: BLE001 - a reply that the lane can't carry is a fault of the script
            return Rejection(rule="script", message=f"The scripted reply can't be written here: {exc!r}.", status=500)
        if lane.remember is not None:
            lane.remember(request.body, answer.whole)
        return answer


def make_app(desk: Desk) -> Starlette:
    """Make the ASGI application around `desk`."""

    async def endpoint(request: Request) -> Response:
        path = request.url.path
        target = desk.target(path)
        face = face_of(request) if target is None else target.lane.face
        aim: Target | Rejection
        if not face.has_key(request):
            aim = face.no_key
        elif target is None or request.method != "POST":
            aim = Rejection(rule="not_found", message=face.not_found(request.method, path), status=404)
        else:
            aim = target
        try:
            raw = await request.body()
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it: the client left before it had sent its request
        record, outcome = desk.handle(path, raw, aim, face)
        headers = {"request-id": desk.last_id, "x-request-id": desk.last_id, "x-amzn-requestid": desk.last_id}
        if isinstance(outcome, Rejection):
            return JSONResponse(face.shape(outcome, desk.last_id), outcome.status, headers | face.headers(outcome))
        if record.stream:
            return StreamingResponse(_send(outcome.frames), headers=headers, media_type=face.stream_type)
        return JSONResponse(outcome.whole, headers=headers)

    return Starlette(routes=[Route("/{path:path}", endpoint, methods=_METHODS)])


def _bare(check: Callable[[Json], Rejection | None]) -> _Check:
    """A check for an API whose body names the model."""
    return lambda body, _model: check(body)


def _named(write: Callable[[Reply, Json, int], Answer]) -> _Write:
    """A writer for an API whose answer does not name the model, or whose body does."""
    return lambda reply, body, serial, _model: write(reply, body, serial)


async def _send(frames: Iterable[str | bytes]) -> AsyncIterator[str | bytes]:
    for frame in frames:
        yield frame
