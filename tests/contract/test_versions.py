"""A write for another version of a record is refused."""

from typing import Any

import pytest

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from tests.conftest import all_rows
from tests.contract.conftest import World
from tests.contract.test_access import drop_key_usage
from tests.factories.examples import example, send

VERSIONED = [
    o
    for o in REGISTRY.select(Audience.KEY)
    if "if_version" in o.input.model_fields and o.name != "import_page_html"
]
"""Operations that take a version. The example of an import creates a page, which has none yet."""


def test_records_that_people_edit_have_versions() -> None:
    names = {operation.name for operation in VERSIONED}
    assert names >= {"save_page_html", "update_lead", "update_client", "reschedule_booking"}


@pytest.mark.parametrize("operation", VERSIONED, ids=lambda operation: operation.name)
def test_a_write_for_another_version_changes_nothing(operation: Operation, world: World) -> None:
    arguments = example(operation, world.things)
    rows_before = drop_key_usage(all_rows())
    refusal = send(world.api, operation, {**arguments, "ifVersion": 999})
    assert (refusal.status, refusal.data["code"]) == (409, "version_conflict")
    assert drop_key_usage(all_rows()) == rows_before
    current = refusal.data["version"]
    assert send(world.api, operation, {**arguments, "ifVersion": current}).status == 200


@pytest.mark.parametrize(
    ("path", "noun", "update"),
    [
        ("/api/forms/collection/{lead}", "lead", "/api/forms/collection-update"),
        ("/api/clients/{client}", "client", "/api/clients/update"),
    ],
)
def test_a_record_shows_the_version_that_an_update_expects(
    path: str, noun: str, update: str, world: World
) -> None:
    ids: dict[str, Any] = vars(world.things)
    record = world.api.get(path.format(**ids))[noun]
    updated = world.api.post(
        update, {"id": record["id"], "notes": "Call back", "ifVersion": record["version"]}
    )[noun]
    assert updated["version"] == record["version"] + 1
