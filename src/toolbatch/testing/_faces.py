"""How each provider's API speaks HTTP beside its answers: keys, refusals in its own shape, the type of its streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from toolbatch.testing._rejection import Rejection

if TYPE_CHECKING:
    from starlette.requests import Request

    from toolbatch.testing._wire import Json

__all__ = ["ANTHROPIC", "BEDROCK", "GEMINI", "OPENAI", "Face", "face_of"]

_EVENTS = "text/event-stream"
_OPENAI_NOT_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
)
_OPENAI_NO_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
    "(i.e. Authorization: Bearer YOUR_KEY)."
)
_GEMINI_NO_KEY = (
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of "
    "API consumer identity to call this API."
)

_Shape: TypeAlias = Callable[[Rejection, str], "Json"]


@dataclass(frozen=True, slots=True)
class Face:
    """One API.

    Attributes:
        has_key: Whether a request brings a key. Any will do, and no signature is verified.
        no_key: The refusal of a request without.
        not_json: The refusal of a body that can't be read, from what is wrong with it.
        not_found: What it says where there is no such route, from the method and the path.
        shape: A refusal's body, from the refusal and the request's id.
        stream_type: The media type of a stream.
        error_header: A header that names the kind of a refusal, if it has one.
    """

    has_key: Callable[[Request], bool]
    no_key: Rejection
    not_json: Callable[[str], str]
    not_found: Callable[[str, str], str]
    shape: _Shape
    stream_type: str = _EVENTS
    error_header: str | None = None

    def headers(self, rejection: Rejection) -> dict[str, str]:
        """The headers of a refusal."""
        return {} if self.error_header is None else {self.error_header: _aws_kind(rejection)}


def _bearer(request: Request) -> bool:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and bool(token.strip())


def _signed(request: Request) -> bool:
    return request.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 ")


def _openai_shape(rejection: Rejection, _request_id: str) -> Json:
    kind = "server_error" if rejection.status >= 500 else "invalid_request_error"
    error = {"message": rejection.message, "type": kind, "param": rejection.param, "code": rejection.code}
    return {"error": error}


def _anthropic_shape(rejection: Rejection, request_id: str) -> Json:
    kinds = {401: "authentication_error", 404: "not_found_error", 500: "api_error"}
    error = {"type": kinds.get(rejection.status, "invalid_request_error"), "message": rejection.message}
    return {"type": "error", "error": error, "request_id": request_id}


def _gemini_shape(rejection: Rejection, _request_id: str) -> Json:
    kinds = {403: "PERMISSION_DENIED", 404: "NOT_FOUND", 500: "INTERNAL"}
    status = kinds.get(rejection.status, "INVALID_ARGUMENT")
    return {"error": {"code": rejection.status, "message": rejection.message, "status": status}}


def _aws_kind(rejection: Rejection) -> str:
    kinds = {403: "AccessDeniedException", 404: "ResourceNotFoundException", 500: "InternalServerException"}
    return kinds.get(rejection.status, "ValidationException")


OPENAI = Face(
    has_key=_bearer,
    no_key=Rejection(rule="unauthorized", message=_OPENAI_NO_KEY, status=401),
    not_json=lambda _problem: _OPENAI_NOT_JSON,
    not_found=lambda method, path: f"Invalid URL ({method} {path})",
    shape=_openai_shape,
)
ANTHROPIC = Face(
    has_key=lambda request: _bearer(request) or bool(request.headers.get("x-api-key")),
    no_key=Rejection(rule="unauthorized", message="x-api-key header is required", status=401),
    not_json=lambda problem: f"The request body is not valid JSON: {problem}",
    not_found=lambda _method, _path: "Not Found",
    shape=_anthropic_shape,
)
GEMINI = Face(
    has_key=lambda request: (
        _bearer(request) or bool(request.headers.get("x-goog-api-key") or request.query_params.get("key"))
    ),
    no_key=Rejection(rule="unauthorized", message=_GEMINI_NO_KEY, status=403),
    not_json=lambda problem: f"Invalid JSON payload received. {problem}",
    not_found=lambda method, path: f"The requested URL was not found: {method} {path}",
    shape=_gemini_shape,
)
BEDROCK = Face(
    has_key=lambda request: _bearer(request) or _signed(request),
    no_key=Rejection(rule="unauthorized", message="Missing Authentication Token", status=403),
    not_json=lambda _problem: "Malformed input request, please reformat your input and try again.",
    not_found=lambda method, path: f"Unable to determine service/operation name to be authorized: {method} {path}",
    shape=lambda rejection, _request_id: {"message": rejection.message},
    stream_type="application/vnd.amazon.eventstream",
    error_header="x-amzn-ErrorType",
)


def face_of(request: Request) -> Face:
    """The API that a client means which asks for a route that there isn't, by the headers of its kind."""
    if "anthropic-version" in request.headers:
        return ANTHROPIC
    if "x-goog-api-key" in request.headers:
        return GEMINI
    return BEDROCK if _signed(request) else OPENAI
