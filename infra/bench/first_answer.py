"""Measure a cold start up to the first response.

``infra.bench.cold_start`` runs ``python first_answer.py <kind> <calls>`` in new processes and
measures them. More calls than one repeat the request. A stub replaces the database at the point
where botocore would send a request. It contains one API key and nothing else. With the name of a
file, what the bare function of ``infra.bench.floor`` needs is written to it.
"""

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from chalicelib.domains.identity.store.api_keys import ApiKeyRow  # A part of the cost.

REQUESTS: dict[str, tuple[str, str, Any]] = {
    "read": ("GET", "/api/forms/collection-list", None),
    "write": ("POST", "/api/products/create", {"name": "Bread", "price": 12000}),
    "tools/list": ("POST", "/api/mcp", {}),
    "tools/call": ("POST", "/api/mcp", {"name": "svc_list_leads", "arguments": {}}),
}
KINDS = ("import", *REQUESTS, "jobs", "chat")
SCHEDULED: dict[str, Any] = {
    "source": "aws.events",
    "detail-type": "Scheduled Event",
    "detail": {},
    "id": "1",
    "account": "1",
    "region": "eu-central-1",
    "version": "0",
    "time": "2027-01-15T12:00:00Z",
    "resources": [],
}
MESSAGE: dict[str, Any] = {
    "rawPath": "/api/agents/public/chat-stream",
    "requestContext": {
        "requestId": "bench",
        "http": {"method": "POST", "sourceIp": "192.0.2.1"},
    },
    "headers": {"content-type": "application/json"},
    "body": '{"agentId": "01JD0000000000000000000000", "message": "Good morning!"}',
}
OPERATION = "X-Amz-Target"


def main(kind: str, calls: int = 1, recording: str = "") -> None:
    """Import the application and serve a request of a kind. ``import`` only imports.

    Raises:
        RuntimeError: the response is not the expected one.
    """
    sys.path.insert(0, "")
    if kind == "chat":
        _chat()
        return
    import app  # noqa: PLC0415  the import is part of the measurement

    if kind == "jobs":
        stub_database({})
        app.run_jobs(SCHEDULED, None)
    elif kind != "import":
        token, key = new_key()
        stub_database(key.serialize())
        requests = _record_requests() if recording else []
        for _ in range(calls):
            requests.append([])
            reply = app.app(_event(kind, token), None)
            if reply["statusCode"] != 200 or '"isError":true' in reply["body"]:  # noqa: PLR2004  OK
                raise RuntimeError(reply)
        if recording:
            recorded = {"event": _event(kind, token), "key": key.serialize(), "body": reply["body"]}
            with open(recording, "w") as file:  # noqa: PTH123  pathlib is not a part of the cost
                json.dump({**recorded, "first": requests[0], "next": requests[-1]}, file)


def _chat() -> None:
    """Start as the streaming function does, and respond to a message."""
    import gc  # noqa: PLC0415  the import is part of the measurement

    from chalicelib.transports.chat import stream_runtime  # noqa: PLC0415  as above

    gc.disable()  # ``stream_runtime.main`` does the same.
    serve = stream_runtime.load()
    stub_database({})
    reply = serve(MESSAGE)
    if reply.status != 404:  # noqa: PLR2004  there is no such bot
        raise RuntimeError(reply)


def _event(kind: str, token: str) -> dict[str, Any]:
    """Return an API Gateway (REST) event."""
    method, path, payload = REQUESTS[kind]
    if path == "/api/mcp":
        payload = {"jsonrpc": "2.0", "id": 1, "method": kind, "params": payload}
    about = {"httpMethod": method, "resourcePath": path, "identity": {"sourceIp": "192.0.2.1"}}
    return {
        "requestContext": {**about, "requestId": "bench"},
        "headers": {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        "multiValueHeaders": {},
        "pathParameters": None,
        "multiValueQueryStringParameters": None,
        "stageVariables": None,
        "body": payload and json.dumps(payload),
        "isBase64Encoded": False,
    }


def new_key() -> tuple[str, "ApiKeyRow"]:
    """Return the token and the row of a key."""
    from chalicelib.core import clock  # noqa: PLC0415  every request with a key imports it
    from chalicelib.domains.identity.store import api_keys  # noqa: PLC0415
    from chalicelib.lib import tokens  # noqa: PLC0415

    token = tokens.generate()
    key = api_keys.row(
        token,
        key_id="bench",
        name="bench",
        created_at=clock.now(),
        workspace_id="bench",
        account_id="bench",
        role="admin",
        plan="business",
        scopes=["*:read", "*:write"],
    )
    return token, key


def _record_requests() -> list[list[Any]]:
    """Return the requests to the database of each call. The caller begins each list."""
    from chalicelib.engine.connection import connection  # noqa: PLC0415

    calls: list[list[Any]] = []

    def note(request: Any, **_: Any) -> None:  # noqa: ANN401  botocore's event
        operation = request.headers[OPERATION].decode().rpartition(".")[2]
        calls[-1].append([operation, json.loads(request.body)])

    connection().client.meta.events.register_first("before-send.dynamodb", note)
    return calls


def stub_database(key: dict[str, Any]) -> None:
    """Answer requests to the database where botocore would send them."""
    from botocore.awsrequest import AWSResponse  # noqa: PLC0415  the engine imports it too

    from chalicelib.core import deadline  # noqa: PLC0415
    from chalicelib.engine.connection import connection  # noqa: PLC0415

    deadline.REQUEST_SECONDS = 3600  # valgrind takes fifty times as long

    def answered(request: Any, **_: Any) -> AWSResponse:  # noqa: ANN401  botocore's event
        operation = request.headers[OPERATION].decode().rpartition(".")[2]
        answer = _answer(key, operation, json.loads(request.body))
        return AWSResponse(request.url, 200, {}, _Body(json.dumps(answer).encode()))

    connection().client.meta.events.register("before-send.dynamodb", answered)


class _Body(NamedTuple):
    """A response body with the interface that botocore reads."""

    content: bytes

    def stream(self) -> Iterator[bytes]:
        """Yield the whole body."""
        yield self.content


def _answer(key: dict[str, Any], operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the response of a database with one row."""
    requested_key = request.get("Key", {})
    is_row = bool(key) and all(key[name] == requested_key[name] for name in requested_key)
    stored_key = key if is_row else {}
    if operation == "UpdateItem":
        return {"Attributes": stored_key or {"taken": {"N": "1"}}}
    if operation == "GetItem":
        return {"Item": stored_key} if stored_key else {}
    return {"Items": [], "Count": 0, "ScannedCount": 0, "Responses": {}}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1, *sys.argv[3:])  # noqa: PLR2004  after the kind
