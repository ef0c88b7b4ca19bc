"""JSON-RPC 2.0 as the tool servers use it, with its errors and batches."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from chalicelib.core.errors import AppError, failure_fields, log_fields
from chalicelib.transports.http import JSON_TYPE, HttpRequest, HttpResponse

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# The code of a request that is refused by its HTTP status. ``error.data`` has the reason.
REFUSED = -32000
_MAX_READ_BYTES = 64 * 1024  # Largest body of a refused request that is parsed for its id.
MAX_BATCH = 20  # Maximum number of messages of a batch.
_MAX_ERROR_BYTES = 2_000  # Responses of a batch up to this size are never left out.
Answer = tuple[int, bytes, dict[str, Any]]  # HTTP status, body, and further fields of the log line.


class RpcError(Exception):
    """A JSON-RPC protocol error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:  # noqa: ANN401  JSON
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


def error_body(request_id: str | int | None, error: RpcError, **members: object) -> bytes:
    """Return the JSON of an error, with further members.

    Its id is null if the request has no valid id.
    """
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return to_json({"jsonrpc": "2.0", "id": request_id, "error": body, **members})


def failure(error: AppError, request: HttpRequest) -> HttpResponse:
    """Return the response to a refused request: a JSON-RPC error and the envelope's data."""
    data = failure_fields(error, request.request_id)
    reason: dict[str, Any] = {"code": error.code, "requestId": request.request_id}
    if error.key:
        reason["key"] = error.key
    if wait := error.headers.get("Retry-After"):
        reason["retryAfter"] = int(wait)
    # Several clients show nothing of a response that is no JSON-RPC message.
    body = error_body(_id_in(request.body), RpcError(REFUSED, error.message, reason), data=data)
    return HttpResponse(
        error.status, body, {"Content-Type": JSON_TYPE, **error.headers}, log_fields(error)
    )


def valid_id(message: dict[str, Any]) -> str | int | None:
    """Return the id of a message, or None if it has no valid one."""
    found = message.get("id")
    # In Python, ``True`` is an integer, but JSON-RPC allows only strings and numbers.
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _id_in(body: bytes) -> str | int | None:
    if len(body) > _MAX_READ_BYTES:
        return None
    try:
        message = from_json(body)
    except ValueError:
        return None
    return valid_id(message) if isinstance(message, dict) else None


def respond_to_batch(
    messages: Sequence[Any], respond: Callable[[Any], Answer], max_bytes: int
) -> Answer:
    """Respond to the messages of a batch, one after the other, as to single messages."""
    # A batch that is empty, too long or contains ``initialize`` is refused whole (MCP 2025-03-26).
    problem = None
    if not 1 <= len(messages) <= MAX_BATCH:
        problem = f"expected a batch of 1 to {MAX_BATCH} messages, received {len(messages)}"
    elif any(
        isinstance(message, dict) and message.get("method") == "initialize" for message in messages
    ):
        problem = "expected initialize outside a batch; send it as a single message"
    if problem:
        return 400, error_body(None, RpcError(INVALID_REQUEST, f"Invalid request: {problem}.")), {}
    answers: list[bytes] = []
    operations: list[str] = []
    # The messages run in their order, because a later one may need the result of an earlier one.
    for message in messages:
        _, body, logged = respond(message)
        # The operation may have written, so the client must not repeat the call.
        if len(body) > max(max_bytes, _MAX_ERROR_BYTES):
            msg = (
                "This request was executed, but the responses of the batch are too large. Send "
                "fewer requests in a batch."
            )
            body = error_body(message["id"], RpcError(INTERNAL_ERROR, msg))
        max_bytes -= len(body)
        answers += [body] if body else []
        operations += [logged["operation"]] if "operation" in logged else []
    more = {"operations": operations, "messages": len(messages)}
    return (200, b"[%b]" % b",".join(answers), more) if answers else (202, b"", more)
