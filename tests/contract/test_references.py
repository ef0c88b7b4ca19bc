"""An id of another workspace in any field is treated like an unknown id."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from tests.conftest import all_rows
from tests.contract.conftest import World
from tests.contract.test_access import drop_key_usage, send
from tests.factories.examples import example

KINDS = {
    "projectId": "site",
    "siteId": "site",
    "pageId": "page",
    "formId": "form",
    "leadId": "lead",
    "clientId": "client",
    "agentId": "agent",
    "fileId": "file",
    "orderFormId": "form",
    "folderId": "folder",
    "categoryId": "category",
    "serviceId": "service",
    "serviceIds": "service",
    "bookingId": "booking",
    "resourceId": "resource",
    "resourceIds": "resource",
}
"""The type of the record that a field names."""
INSTEAD_OF = {
    "pageId": "projectId",
    "fileId": "text",
    "clientId": "client",
    "categoryId": "value",
}
"""The field that a reference replaces."""
WITH = {"bulk_products": {"action": "setCategory"}}
"""Arguments without which an operation ignores the reference."""


def references() -> Iterator[Any]:
    """Yield each field of an operation that names another record, and the record's type."""
    for operation in REGISTRY.select(Audience.KEY):
        for field in operation.input_schema["properties"]:
            kind = KINDS.get(field)
            if field in {"parentId", "moveTo"}:
                kind = "folder" if "folder" in operation.name else "category"
            if kind and f"{{{field}}}" not in operation.path:
                yield pytest.param(operation, field, kind, id=f"{operation.name}-{field}")


@pytest.mark.parametrize(("operation", "field", "kind"), [*references()])
def test_a_reference_to_another_workspace_is_answered_like_an_unknown_one(
    operation: Operation, field: str, kind: str, world: World, restore: Callable[..., World]
) -> None:
    theirs = restore("theirs").things
    arguments = example(operation, world.things)
    arguments.pop(INSTEAD_OF.get(field, ""), None)
    arguments |= WITH.get(operation.name, {})
    rows_before = drop_key_usage(all_rows())

    def answer(record_id: str) -> tuple[int, str]:
        value = [record_id] if field.endswith("Ids") else record_id
        response = send(world.api, operation, arguments | {field: value})
        body = response.body.decode().replace(record_id, "ID")
        return response.status, body.replace(response.data.get("requestId", "-"), "")

    foreign = answer(getattr(theirs, kind))
    assert foreign[0] in ({200, 404} if operation.read_only else {404})
    assert foreign == answer(new_id())
    assert not [record_id for record_id in vars(theirs).values() if record_id in foreign[1]]
    assert drop_key_usage(all_rows()) == rows_before
