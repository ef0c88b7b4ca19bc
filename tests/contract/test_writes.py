"""Repeated calls, trial runs and audit records of every operation that writes."""

import json
from typing import Any

import pytest

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.engine import audit
from tests.conftest import all_rows
from tests.contract.conftest import World
from tests.contract.test_access import drop_key_usage
from tests.factories.examples import example, send

WRITES = [o for o in REGISTRY.select(Audience.KEY) if not o.read_only]
WITHOUT_CHANGES = {
    *("ai_fill_product", "ai_fill_service", "export_workspace", "reorder_products"),
    *("read_busy_calendar", "withdraw_advertising_consent"),
}
"""Drafts change no record. The example of an order is the order that the products have. An export
of the world is running, which the call returns. The calendar of the world waits to be read, and its
client has agreed to nothing."""
CONFIRMED = {"confirm": True, "force": True}


def parametrize_operations(operations: list[Operation]) -> Any:
    return pytest.mark.parametrize("operation", operations, ids=lambda o: o.name)


def confirmed(operation: Operation) -> dict[str, Any]:
    """Return the fields that let a call do what it describes."""
    return {
        name: value for name, value in CONFIRMED.items() if name in operation.input.model_fields
    }


@parametrize_operations([o for o in WRITES if o.accepts_idempotency_key and not o.secret])
def test_a_call_repeated_with_its_idempotency_key_changes_nothing(
    operation: Operation, world: World
) -> None:
    arguments = json.dumps(example(operation, world.things)).encode()
    path = operation.path
    for name in operation.path_parameters:
        path = path.replace(f"{{{name}}}", example(operation, world.things)[name])
    key = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    first = world.api.call(operation.method, path, arguments, key)
    assert first.status == 200, first.body
    rows_before = drop_key_usage(all_rows())
    repeated = world.api.call(operation.method, path, arguments, key)
    assert (repeated.status, repeated.body) == (200, first.body)
    assert repeated.headers["Idempotency-Replayed"] == "true"
    assert drop_key_usage(all_rows()) == rows_before


@parametrize_operations([o for o in WRITES if "dry_run" in o.input.model_fields])
def test_a_dry_run_changes_nothing(operation: Operation, world: World) -> None:
    rows_before = drop_key_usage(all_rows())
    arguments = example(operation, world.things) | confirmed(operation) | {"dryRun": True}
    answer = send(world.api, operation, arguments)
    assert answer.status == 200, answer.body
    assert answer.data.get("deleted", False) is False
    assert drop_key_usage(all_rows()) == rows_before


@parametrize_operations([o for o in WRITES if o.name.startswith("delete_")])
def test_a_second_deletion_is_not_found(operation: Operation, world: World) -> None:
    arguments = example(operation, world.things) | confirmed(operation)
    assert send(world.api, operation, arguments).status == 200
    rows_before = drop_key_usage(all_rows())
    for more in ({}, {"dryRun": True} if "dry_run" in operation.input.model_fields else {}):
        second_response = send(world.api, operation, arguments | more)
        assert (second_response.status, second_response.data["code"]) == (404, "not_found")
    assert drop_key_usage(all_rows()) == rows_before


@parametrize_operations([o for o in WRITES if o.name not in WITHOUT_CHANGES])
def test_a_write_leaves_one_audit_record_with_the_names_of_its_fields(
    operation: Operation, world: World
) -> None:
    known = {row.sk for row in audit.latest(world.workspace_id)}
    arguments = example(operation, world.things)
    assert send(world.api, operation, arguments).status == 200
    new_records = [
        row for row in audit.latest(world.workspace_id) if row.sk not in known and row.key_id
    ]
    assert {row.operation for row in new_records} == {operation.name}
    # Each transaction of an erasure has a record of its own.
    assert len(new_records) == 1 or operation.name == "erase_client"
    assert set(new_records[0].fields) == arguments.keys() - {"id"}
    texts = [value for value in arguments.values() if isinstance(value, str) and " " in value]
    assert not [text for text in texts if text in repr(new_records[0].attribute_values)]
