"""A unique name belongs to one record, in every spelling of the name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from chalicelib.core.errors import ConflictError
from chalicelib.engine.claims import ClaimRow, claim, name_hash
from chalicelib.engine.connection import connection
from chalicelib.engine.unit import UnitOfWork, run_unit

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


def take(kind: str, name: str, target: str = "id", workspace_id: str | None = None) -> None:
    def stage(unit: UnitOfWork) -> None:
        row = claim(kind, name=name, target=target, workspace_id=workspace_id)
        unit.create(row, on_conflict=ConflictError("It is taken."))

    run_unit("w", None, stage)


@contextmanager
def requests(operation: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the requests of an operation, as they are sent."""
    seen: list[dict[str, Any]] = []

    def note(params: dict[str, Any], **_: Any) -> None:
        seen.append(params)

    events = connection().client.meta.events
    events.register(f"provide-client-params.dynamodb.{operation}", note)
    try:
        yield seen
    finally:
        events.unregister(f"provide-client-params.dynamodb.{operation}", note)


def test_a_claimed_name_leads_to_its_record_and_cannot_be_claimed_again() -> None:
    take("SLUG", "bakery", "site", "w")
    claim = ClaimRow.find_claim("SLUG", name="bakery")
    assert claim is not None
    assert (claim.target, claim.workspace_id) == ("site", "w")
    with pytest.raises(ConflictError):
        take("SLUG", "bakery", "other")
    take("EMAIL", "bakery")
    take("SLUG", "cafe")


def test_the_workspace_of_a_name_is_found_if_it_has_one() -> None:
    take("SLUG", "bakery", workspace_id="w")
    take("SLUG", "platform")
    names = ("bakery", "platform", "nobody")
    assert [ClaimRow.workspace_of("SLUG", name=name) for name in names] == ["w", None, None]
    assert ClaimRow.workspace_of("EMAIL", name="bakery") is None


def test_names_that_are_taken_are_found_by_one_consistent_read() -> None:
    take("SLUG", "bakery")
    take("EMAIL", "cafe")
    with requests("BatchGetItem") as sent_requests:
        assert ClaimRow.find_claimed("SLUG", ["bakery", "cafe", "bar"]) == {"bakery"}
    (request,) = sent_requests
    assert all(
        table_request["ConsistentRead"] for table_request in request["RequestItems"].values()
    )


def test_texts_that_compare_equal_are_one_name_within_one_group() -> None:
    assert name_hash("BAKERY") == name_hash("bakery")
    assert name_hash("bakery", group="a") != name_hash("bakery", group="b")
