"""A unit of work is atomic, repeated after a conflict, and a 503 if DynamoDB fails."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.core import retry
from chalicelib.core.errors import PayloadTooLargeError
from chalicelib.core.jobs import JobKind
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine import audit, jobs, transactions
from chalicelib.engine.claims import claim
from chalicelib.engine.connection import connection
from chalicelib.engine.listing import counters
from chalicelib.engine.unit import UnitOfWork, cascade, run_unit
from tests.conftest import Api, Owner, Time, all_rows, drop_expired
from tests.factories.examples import Things
from tests.factories.salon import Salon
from tests.fakes.dynamodb_faults import conflict, failing, throttled, timed_out, unreachable
from tests.support.keyed import keyed

pytestmark = pytest.mark.store


def test_a_transaction_conflict_is_retried_with_growing_pauses(
    owner: Owner, api: Api, pauses: list[float]
) -> None:
    with failing("TransactWriteItems", 3, conflict) as calls:
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]
    assert len(calls) == 4
    assert len(pauses) == 3
    assert all(0 <= p <= retry.FIRST_PAUSE * 2**n for n, p in enumerate(pauses))
    assert api.get("/api/projects/list")["projects"] == [site]
    assert counters.read(owner.workspace.id, noun="SITE")["total"] == 1


def test_endless_conflicts_end_as_a_503_with_nothing_changed(api: Api, pauses: list[float]) -> None:
    api.get("/api/projects/list")
    rows_before = all_rows()
    with failing("TransactWriteItems", 1000, conflict):
        answer = api.call_refused("POST", "/api/projects/create", {"title": "Bakery"})
    assert (answer.status, answer.data["code"]) == (503, "unavailable")
    assert answer.headers["Retry-After"]
    assert len(pauses) == retry.MAX_ATTEMPTS - 1
    assert all_rows() == rows_before


def test_where_conflicts_are_expected_retries_continue_for_seconds(
    api: Api, pauses: list[float], time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    salon = Salon.opened(api)
    lost = 2 * retry.MAX_ATTEMPTS
    with failing("TransactWriteItems", lost, conflict):
        assert salon.book("2027-01-18T10:00")
    assert len(pauses) == lost
    monkeypatch.setattr(retry, "HIGH_CONTENTION_SECONDS", 0.5)
    rows_before = all_rows()
    with failing("TransactWriteItems", 10**6, conflict):
        answer = salon.try_to_book("2027-01-18T11:00")
    assert (answer.status, answer.data["code"]) == (503, "unavailable")
    assert all_rows() == rows_before


def test_a_change_that_makes_a_record_too_large_is_refused_and_changes_nothing(
    owner: Owner, api: Api
) -> None:
    api.post("/api/projects/create", {"title": "Bakery"})
    rows_before = all_rows()

    def stage(unit: UnitOfWork) -> None:
        (site,) = SITES.latest(owner.workspace.id, 1)
        site.description = "ж" * 200_000
        unit.save(site)

    with pytest.raises(PayloadTooLargeError, check=keyed("field")) as refusal:
        run_unit(owner.workspace.id, None, stage)
    assert [error.field for error in refusal.value.errors] == ["description"]
    assert all_rows() == rows_before


@pytest.mark.parametrize("fault", [throttled, unreachable, timed_out])
@pytest.mark.parametrize(
    ("operation", "method", "path", "body"),
    [
        ("GetItem", "GET", "/api/projects/list", None),
        ("Query", "GET", "/api/projects/list", None),
        ("BatchGetItem", "GET", "/api/projects/list", None),
        ("BatchGetItem", "GET", "/api/workspaces/list", None),
        ("TransactWriteItems", "POST", "/api/projects/create", {"title": "x", "slug": "x"}),
    ],
)
def test_a_failing_database_is_a_clear_503_and_changes_nothing(
    fault: Callable[[], Exception],
    operation: str,
    method: str,
    path: str,
    body: dict[str, str] | None,
    api: Api,
    things: Things,
) -> None:
    rows_before = all_rows()
    with failing(operation, 1000, fault):
        answer = api.call_refused(method, path, body)
    assert (answer.status, answer.data["code"]) == (503, "unavailable")
    assert "nowhere" not in answer.body.decode()
    assert all_rows() == drop_expired(rows_before)


def test_unprocessed_keys_of_a_batch_are_requested_again(api: Api) -> None:
    for number in range(4):
        api.post("/api/projects/create", {"title": f"Site {number}"})
    key_counts: list[int] = []

    def leave_some(parsed: dict[str, Any], **_: Any) -> None:
        for table, rows in parsed["Responses"].items():
            key_counts.append(len(rows))
            if len(rows) > 1:
                dropped = rows[1:]
                del rows[1:]
                keys = [{"pk": row["pk"], "sk": row["sk"]} for row in dropped]
                parsed["UnprocessedKeys"] = {table: {"Keys": keys}}

    events = connection().client.meta.events
    events.register("after-call.dynamodb.BatchGetItem", leave_some)
    try:
        titles = [p["title"] for p in api.get("/api/projects/list")["projects"]]
    finally:
        events.unregister("after-call.dynamodb.BatchGetItem", leave_some)
    assert titles == ["Site 3", "Site 2", "Site 1", "Site 0"]
    assert key_counts == [4, 3, 2, 1]


def test_keys_that_stay_unprocessed_end_as_a_503_after_pauses(
    api: Api, pauses: list[float]
) -> None:
    def leave_all(params: dict[str, Any], **_: Any) -> Any:
        unprocessed = json.loads(params["body"])["RequestItems"]
        return SimpleNamespace(status_code=200), {"Responses": {}, "UnprocessedKeys": unprocessed}

    events = connection().client.meta.events
    events.register_first("before-call.dynamodb.BatchGetItem", leave_all)
    try:
        answer = api.call_refused("GET", "/api/workspaces/list")
    finally:
        events.unregister("before-call.dynamodb.BatchGetItem", leave_all)
    assert (answer.status, answer.data["code"]) == (503, "unavailable")
    assert len(pauses) == retry.MAX_ATTEMPTS - 1


def test_only_one_function_reads_batches() -> None:
    sources = {path: path.read_text() for path in Path("chalicelib").rglob("*.py")}
    paths = [str(path) for path, text in sources.items() if ".batch_get(" in text]
    assert paths == [], "use reading.fetch_of: PynamoDB's batch_get may go on without end"


def test_a_unit_of_more_than_a_hundred_items_is_a_programming_error(owner: Owner) -> None:
    unit = UnitOfWork(owner.workspace.id, "test")
    for number in range(34):
        unit.create(SITES.new(owner.workspace.id, title="x", slug=f"x{number}", status="active"))
    with pytest.raises(RuntimeError, match="items; DynamoDB takes 100"):
        unit.commit()
    assert SITES.entries(owner.workspace.id) == []


@pytest.mark.usefixtures("database")
def test_a_unit_may_have_99_items_besides_its_audit_record() -> None:
    unit = UnitOfWork("w")
    for number in range(99):
        unit.create(claim("TEST", name=str(number), target="x"))
    unit.commit(AuditEvent.by_job("test"))
    assert len([place for place in all_rows() if "CLAIM#TEST" in place]) == 99


def test_a_unit_of_more_than_four_megabytes_is_a_programming_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = claim("TEST", name="a", target="x" * 1000)
    monkeypatch.setattr(transactions, "MAX_BYTES", 1000)
    with pytest.raises(RuntimeError, match="bytes; DynamoDB takes 1,000"):
        run_unit("w", None, lambda unit: unit.create(row))


def test_a_change_that_several_parts_need_is_staged_once_in_each_attempt() -> None:
    staged: list[str] = []
    unit = UnitOfWork("w", "r")
    for _ in range(2):
        unit.begin()
        for name in ("price", "price", "title"):
            unit.stage_once(name, lambda _, name=name: staged.append(name))  # type: ignore[misc]
    assert staged == ["price", "title"] * 2


def test_a_step_of_a_job_is_repeated_until_it_finds_nothing_more(owner: Owner) -> None:
    left = [1, 2, 3]

    def step(_: UnitOfWork) -> bool:
        return bool(left and left.pop())

    cascade(jobs.row(JobKind("kind"), owner.workspace.id, {}), step)
    assert left == []


def test_a_failure_after_the_commit_does_not_undo_it(owner: Owner) -> None:
    def fail() -> None:
        raise OSError("disk full")

    unit = UnitOfWork(owner.workspace.id, "test")
    site = SITES.new(owner.workspace.id, title="x", slug="x", status="active")
    unit.create(site)
    unit.after_commit(fail)
    unit.commit()
    assert SITES.find(owner.workspace.id, record_id=site.id) is not None


def test_each_change_leaves_one_audit_record_without_values(owner: Owner, api: Api) -> None:
    site = api.post("/api/projects/create", {"title": "Secret plan"})["project"]["id"]
    api.post("/api/projects/update", {"id": site, "description": "Hidden words"})
    api.get("/api/projects/list")
    api.call_refused("POST", "/api/projects/update", {"id": site})
    api.post("/api/projects/delete", {"id": site, "dryRun": True})
    records = [r for r in audit.latest(owner.workspace.id) if r.actor != "operator"]
    assert [(r.operation, r.resources[0], r.fields) for r in records] == [
        ("update_site", f"site:{site}", ["description"]),
        ("create_site", f"site:{site}", ["title"]),
    ]
    assert {r.actor for r in records} == {owner.workspace.owner_id}
    rows = repr([r.attribute_values for r in records])
    assert "Secret plan" not in rows
    assert "Hidden words" not in rows
