"""Functions that create, read and change sites over REST."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from botocore.exceptions import EndpointConnectionError

from chalicelib.engine.connection import connection
from tests.conftest import Api

LIST, CREATE, UPDATE, DELETE = (
    f"/api/projects/{call}" for call in ("list", "create", "update", "delete")
)


def create(api: Api, title: str = "Bakery", **fields: Any) -> Any:
    return api.post(CREATE, {"title": title, **fields})["project"]


def update(api: Api, site: Any, **fields: Any) -> Any:
    return api.post(UPDATE, {"id": site["id"], **fields})["project"]


def delete(api: Api, site: Any, **fields: Any) -> Any:
    return api.post(DELETE, {"id": site["id"], **fields})


def list_sites(api: Api, **query: Any) -> list[Any]:
    data = api.get(f"{LIST}?{urlencode(query)}")
    projects: list[Any] = data["projects"]
    return projects


def total(api: Api, **query: Any) -> int:
    number: int = api.get(f"{LIST}?{urlencode(query)}")["pagination"]["total"]
    return number


def refused_field(api: Api, path: str, body: Any) -> Any:
    """Send a value that must be refused for one field, and return that field's error."""
    answer = api.call_refused("POST", path, body)
    assert (answer.status, answer.data["code"]) == (400, "validation_error")
    assert len(answer.data["errors"]) == 1
    assert answer.data["errors"][0]["field"] in answer.data["message"]
    return answer.data["errors"][0]


@contextmanager
def transactions_failing_after(allowed: int) -> Iterator[None]:
    """Let some transactions succeed and all later ones fail, as if the process ended there."""
    seen = 0

    def interfere(**_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen > allowed:
            raise EndpointConnectionError(endpoint_url="http://nowhere")

    events = connection().client.meta.events
    events.register_first("before-call.dynamodb.TransactWriteItems", interfere)
    try:
        yield
    finally:
        events.unregister("before-call.dynamodb.TransactWriteItems", interfere)
