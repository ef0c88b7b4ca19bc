"""The number of requests to DynamoDB, and read units where DynamoDB reports them."""

import json
from typing import Any

import pytest

from chalicelib import VERSION
from chalicelib.domains.sites.store import pages as store_pages
from chalicelib.engine.connection import connection
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner
from tests.factories.examples import Things, submit

pytestmark = pytest.mark.store


# A process reads the events of a workspace at most every ten seconds, which is one of the
# requests of changes that are events. ``contract/test_request_counts.py`` counts the requests of
# each operation's example.
@pytest.mark.parametrize(
    ("limit", "method", "path", "body"),
    [
        (3, "GET", "/api/projects/list?search=bak&sortBy=title", None),
        (4, "GET", "/api/products/list?sort=price", None),
        (5, "GET", "/api/files/list?folderId={folder}", None),
        (2, "POST", "/api/projects/create", {"title": "New", "slug": "new"}),
        (3, "POST", "/api/pages/update", {"id": "{page}", "isHome": True}),
        (4, "POST", "/api/products/bulk", {"ids": ["{product}"], "action": "deactivate"}),
        (4, "GET", "/api/forms/collection-list?status=new", None),
        (4, "GET", "/api/forms/collection-find?email=ada@example.com", None),
        (4, "POST", "/api/forms/collection-update", {"id": "{lead}", "notes": "Call"}),
        (6, "GET", "/api/bookings/list?from=2026-01-01&resourceId={resource}", None),
        (6, "POST", "/api/bookings/set-status", {"id": "{booking}", "status": "cancelled"}),
    ],
)
def test_round_trips_stay_within_their_budget(
    limit: int,
    method: str,
    path: str,
    body: dict[str, Any] | None,
    api: Api,
    things: Things,
) -> None:
    request_body = json.dumps(body)
    for name, thing in vars(things).items():
        path, request_body = (text.replace(f"{{{name}}}", thing) for text in (path, request_body))
    with metering() as usage:
        answer = api.call(method, path, json.loads(request_body))
    assert answer.status == 200
    assert usage.round_trips <= limit, usage.calls


def test_edits_of_a_page_cost_as_much_as_saving_its_whole_html(api: Api, things: Things) -> None:
    page = {"id": things.page}
    api.post("/api/pages/save-html", {**page, "html": "<p>one</p>"})
    edits = [{"find": "one", "replace": "two"}]
    with metering() as usage:
        api.post("/api/pages/save-html", {**page, "edits": edits, "returnHtml": False})
    assert usage.round_trips == 4, usage.calls


def test_a_page_and_its_site_are_read_in_one_request_after_the_first_time(
    api: Api, things: Things
) -> None:
    costs = []
    store_pages.clear_site_cache()
    for _ in range(2):
        with metering() as usage:
            api.get(f"/api/pages/{things.page}")
        costs.append(usage.round_trips)
    assert costs == [3, 2]


def test_a_submission_stays_within_its_budget(api: Api, things: Things) -> None:
    submit(things.form, name="Bob")  # After the first of the day, the source of visitors is known.
    with metering() as usage:
        submit(things.form, name="Ada", email="ada@example.com", phone="84951234567")
    assert usage.round_trips <= 6, usage.calls
    with metering() as usage:
        submit(things.form, name="Ada Lovelace", email="ada@example.com")
    assert usage.round_trips <= 6, usage.calls


def test_an_idempotency_key_costs_the_first_call_nothing(api: Api, things: Things) -> None:
    # After the first write, the process knows which events are wanted.
    api.post("/api/pages/create", {"projectId": things.site, "title": "First"})
    with metering() as usage:
        api.post("/api/pages/create", {"projectId": things.site, "title": "New"}, key="k")
    assert usage.round_trips == 3


def test_a_mistyped_key_costs_no_read(owner: Owner) -> None:
    token = owner.token()
    with metering() as usage:
        Api(token[:-1] + ("0" if token[-1] != "0" else "1")).call_refused(
            "GET", "/api/projects/list"
        )
    assert usage.calls == []


def test_requests_send_only_the_services_own_name(api: Api) -> None:
    user_agents: list[str] = []

    def note(request: Any, **_: object) -> None:
        user_agents.append(request.headers["User-Agent"].decode())

    events = connection().client.meta.events
    events.register("before-send.dynamodb", note)
    try:
        api.get("/api/projects/list")
    finally:
        events.unregister("before-send.dynamodb", note)
    assert set(user_agents) == {f"Workspace-Automation-API/{VERSION}"}


def test_the_last_use_of_a_key_is_written_once_in_ten_minutes(owner: Owner, time: object) -> None:
    api = owner.api()
    costs = []
    for minutes in (0, 1, 8, 1):
        time.pass_by(minutes=minutes)
        with metering() as usage:
            api.get("/api/projects/list")
        costs.append("UpdateItem" in usage.calls)
    assert costs == [True, False, False, True]


@pytest.mark.slow
def test_listing_five_hundred_sites_costs_few_units(
    owner: Owner, api: Api, is_dynamodb_local: bool
) -> None:
    from chalicelib.domains.sites.store.sites import SITES
    from chalicelib.engine.unit import UnitOfWork

    for start in range(0, 500, 25):
        unit = UnitOfWork(owner.workspace.id, "seed")
        for number in range(start, start + 25):
            site = SITES.new(
                owner.workspace.id,
                title=f"Site number {number:04}",
                description="d" * 900,
                slug=f"site-number-{number:04}",
                status="active",
            )
            unit.create(site)
        unit.commit()
    api.get("/api/projects/list")
    with metering() as usage:
        data = api.get("/api/projects/list?page=25&size=20&sortBy=title&sortDir=asc")
    assert data["pagination"]["total"] == 500
    assert [p["title"] for p in data["projects"]] == [
        f"Site number {n:04}" for n in range(480, 500)
    ]
    assert usage.round_trips == 3
    if is_dynamodb_local:
        assert usage.units <= 60, usage


@pytest.fixture
def long_pages(api: Api) -> tuple[str, list[str]]:
    """Return the ids of a site and its 26 pages, with 60 KB of Cyrillic design system each."""
    site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
    pages = []
    for number in range(26):
        body = {"projectId": site, "title": f"Page {number}"}
        pages.append(api.post("/api/pages/create", body)["page"]["id"])
        api.post("/api/pages/update", {"id": pages[-1], "designSystem": {"a": "ж" * 30_000}})
    return site, pages


@pytest.mark.slow
def test_long_design_systems_cost_nothing_if_they_are_not_shown(
    api: Api, long_pages: tuple[str, list[str]], is_dynamodb_local: bool
) -> None:
    site, (page, *_) = long_pages
    request_sizes: list[int] = []

    def weigh(params: dict[str, Any], **_: Any) -> None:
        request_sizes.append(len(params["body"]))

    events = connection().client.meta.events
    events.register("before-call.dynamodb.TransactWriteItems", weigh)
    try:
        with metering() as usage:
            listing = api.get(f"/api/pages/list?projectId={site}")
        assert (len(listing["pages"]), usage.round_trips) == (26, 3)
        if is_dynamodb_local:
            assert usage.units <= 35, usage
        with metering() as usage:
            assert len(api.get(f"/api/pages/{page}")["page"]["designSystem"]["a"]) == 30_000
        assert usage.round_trips == 2
        api.post("/api/pages/save-html", {"id": page, "html": "<p>"})
        api.post("/api/pages/update", {"id": page, "title": "New", "isHome": True})
        api.post("/api/projects/delete", {"id": site})
    finally:
        events.unregister("before-call.dynamodb.TransactWriteItems", weigh)
    assert request_sizes
    assert max(request_sizes) < 200_000, request_sizes
