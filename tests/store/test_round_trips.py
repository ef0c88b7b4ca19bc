"""What a request costs: requests to DynamoDB, and read units where the database tells them true."""

import json
from typing import Any

import pytest

from infra.dynamodb_usage import metering
from tests.conftest import Api, Owner
from tests.factories.examples import Things

pytestmark = pytest.mark.store


@pytest.fixture
def things(api: Api) -> Things:
    """One of everything; the key has been used, so its last use is not written again."""
    return Things.made_with(api)


@pytest.mark.parametrize(
    ("limit", "method", "path", "body"),
    [
        (2, "GET", "/api/pages/{page}", None),
        (3, "GET", "/api/projects/list", None),
        (3, "GET", "/api/projects/list?search=bak&sortBy=title", None),
        (3, "GET", "/api/pages/list?projectId={site}", None),
        (3, "GET", "/api/workspaces/list", None),
        (2, "GET", "/api/products/{product}", None),
        (4, "GET", "/api/products/list?sort=price", None),
        (3, "GET", "/api/categories/list?kind=product", None),
        (5, "GET", "/api/files/list", None),
        (5, "GET", "/api/files/list?folderId={folder}", None),
        (3, "GET", "/api/file-folders", None),
        (2, "POST", "/api/projects/create", {"title": "New", "slug": "new"}),
        (3, "POST", "/api/projects/create", {"title": "New"}),
        (3, "POST", "/api/pages/create", {"projectId": "{site}", "title": "New"}),
        (3, "POST", "/api/projects/update", {"id": "{site}", "title": "Renamed"}),
        (4, "POST", "/api/pages/save-html", {"id": "{page}", "html": "<p>"}),
        (3, "POST", "/api/products/create", {"name": "x", "price": 1, "categoryId": "{category}"}),
        (3, "POST", "/api/products/update", {"id": "{product}", "stockDelta": -1}),
        (3, "POST", "/api/products/delete", {"id": "{product}"}),
        (4, "POST", "/api/products/reorder", {"ids": ["{product}"]}),
        (4, "POST", "/api/products/bulk", {"ids": ["{product}"], "action": "deactivate"}),
        (4, "POST", "/api/categories/create", {"name": "Cakes", "parentId": "{category}"}),
        (4, "POST", "/api/categories/update", {"id": "{category}", "name": "Loaves"}),
    ],
)
def test_round_trips_stay_within_their_budget(
    limit: int, method: str, path: str, body: dict[str, Any] | None, api: Api, things: Things
) -> None:
    sent = json.dumps(body)
    for name, thing in vars(things).items():
        path, sent = (text.replace(f"{{{name}}}", thing) for text in (path, sent))
    with metering() as usage:
        answer = api.call(method, path, json.loads(sent))
    assert answer.status == 200
    assert usage.round_trips <= limit, usage.calls


def test_an_idempotency_key_costs_the_first_call_nothing(api: Api, things: Things) -> None:
    with metering() as usage:
        api.post("/api/pages/create", {"projectId": things.site, "title": "New"}, key="k")
    assert usage.round_trips == 3


def test_a_mistyped_key_costs_no_read(owner: Owner) -> None:
    token = owner.token()
    with metering() as usage:
        Api(token[:-1] + ("0" if token[-1] != "0" else "1")).refused("GET", "/api/projects/list")
    assert usage.calls == []


def test_last_use_is_written_once_in_ten_minutes(owner: Owner, time: object) -> None:
    api = owner.api()
    costs = []
    for minutes in (0, 1, 8, 1):
        time.pass_by(minutes=minutes)
        with metering() as usage:
            api.get("/api/projects/list")
        costs.append("UpdateItem" in usage.calls)
    assert costs == [True, False, False, True]


def test_five_hundred_sites_cost_few_units_to_list(
    owner: Owner, api: Api, on_dynamodb_local: bool
) -> None:
    from chalicelib.store.sites import SITES
    from chalicelib.store.unit import UnitOfWork

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
    if on_dynamodb_local:
        assert usage.units <= 60, usage
