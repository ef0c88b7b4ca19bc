"""JSON-RPC 2.0 as the tool server uses it, with its errors and batches."""

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import to_json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
MAX_BATCH = 20
"""Maximum number of messages of a batch."""
_MAX_ERROR_BYTES = 2_000
"""Responses of a batch up to this size are never left out."""
Answer = tuple[int, bytes, dict[str, Any]]
"""HTTP status, body, and further fields of the log line."""


class RpcError(Exception):
    """A JSON-RPC protocol error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:  # noqa: ANN401  JSON
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


def error_body(request_id: str | int | None, error: RpcError) -> bytes:
    """Return the JSON of an error.

    Its id is null if the request has no valid id.
    """
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return to_json({"jsonrpc": "2.0", "id": request_id, "error": body})


def respond_to_batch(
    messages: Sequence[Any], respond: Callable[[Any], Answer], max_bytes: int
) -> Answer:
    """Respond to the messages of a batch, one after the other, as to single messages.

    A batch that is empty, too long or contains ``initialize`` is refused whole (MCP 2025-03-26).
    """
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
