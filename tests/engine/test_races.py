"""Of concurrent clients, one succeeds and the others receive an error."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.core.errors import ConflictError
from chalicelib.domains.files.store import files
from chalicelib.domains.identity.operations import keys
from chalicelib.domains.identity.store import api_keys, workspaces
from chalicelib.domains.sites.operations import pages as records
from chalicelib.engine.listing import counters
from tests.conftest import Answer, Api, Owner, call_operator, run_concurrently
from tests.factories.examples import Things

pytestmark = pytest.mark.store


def outcomes(answers: list[Answer]) -> Counter[tuple[int, str | None]]:
    return Counter((a.status, a.data.get("code")) for a in answers)


def test_of_fifty_concurrent_creations_with_one_slug_one_wins(owner: Owner, api: Api) -> None:
    body = {"title": "Bakery", "slug": "bakery"}
    answers = run_concurrently(50, lambda _: api.call("POST", "/api/projects/create", body))
    assert outcomes(answers) == {(200, None): 1, (409, "slug_taken"): 49}
    assert api.get("/api/projects/list")["pagination"]["total"] == 1
    assert counters.read(owner.workspace.id, noun="SITE")["total"] == 1


def test_generated_slugs_of_one_title_do_not_clash(owner: Owner, api: Api) -> None:
    answers = run_concurrently(
        10, lambda _: api.call("POST", "/api/projects/create", {"title": "Пекарня"})
    )
    assert outcomes(answers) == {(200, None): 10}
    assert len({a.data["project"]["slug"] for a in answers}) == 10
    assert counters.read(owner.workspace.id, noun="SITE") == {"total": 10, "status:active": 10}


def test_twenty_concurrent_calls_with_one_idempotency_key_create_one_record_and_get_equal_answers(
    api: Api,
) -> None:
    answers = run_concurrently(
        20,
        lambda _: api.call(
            "POST", "/api/projects/create", {"title": "Bakery"}, {"Idempotency-Key": "k"}
        ),
    )
    assert {a.status for a in answers} == {200}
    assert len({a.body for a in answers}) == 1
    assert sum("Idempotency-Replayed" not in a.headers for a in answers) == 1
    assert api.get("/api/projects/list")["pagination"]["total"] == 1


def test_of_many_concurrent_saves_of_one_version_one_wins(api: Api, things: Things) -> None:
    page = things.page
    answers = run_concurrently(
        20,
        lambda n: api.call(
            "POST", "/api/pages/save-html", {"id": page, "html": f"<p>{n}</p>", "ifVersion": 3}
        ),
    )
    assert outcomes(answers) == {(200, None): 1, (409, "version_conflict"): 19}
    winner = next(n for n, a in enumerate(answers) if a.status == 200)
    page_after = api.get(f"/api/pages/{page}")
    assert page_after["page"]["html"] == f"<p>{winner}</p>"
    assert page_after["page"]["version"] == 4


@pytest.mark.parametrize("there", [0, 2])
def test_keys_created_concurrently_do_not_exceed_the_limit(
    there: int, new_owner: Callable[..., Owner], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = new_owner()
    monkeypatch.setattr(keys, "MAX_LIVE_KEYS", 3)
    for _ in range(there):
        owner.token()

    def make(_: int) -> str:
        try:
            owner.token()
        except ConflictError:
            return "refused"
        return "made"

    assert Counter(run_concurrently(8, make)) == {"made": 3 - there, "refused": 5 + there}
    assert len(api_keys.live(owner.workspace.id)) == 3


@pytest.mark.parametrize("there", [0, 2])
def test_pages_created_concurrently_do_not_exceed_the_limit_of_a_site(
    there: int, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_PAGES", 4)
    site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
    body = {"projectId": site, "title": "Page"}
    for _ in range(there):
        api.post("/api/pages/create", body)
    answers = run_concurrently(8, lambda _: api.call("POST", "/api/pages/create", body))
    assert outcomes(answers) == {(200, None): 4 - there, (409, "conflict"): 4 + there}
    refusal = next(answer for answer in answers if answer.status == 409)
    assert "4 pages" in refusal.data["message"]
    pages = api.get(f"/api/pages/list?projectId={site}")["pages"]
    assert len(pages) == 4
    deleted = run_concurrently(
        3,
        lambda n: api.call(
            "POST", "/api/pages/delete", {"id": pages[1 + n]["id"], "confirm": True}
        ),
    )
    assert outcomes(deleted) == {(200, None): 3}
    answers = run_concurrently(8, lambda _: api.call("POST", "/api/pages/create", body))
    assert outcomes(answers) == {(200, None): 3, (409, "conflict"): 5}


def test_a_home_page_is_not_deleted_while_another_page_is_created(api: Api) -> None:
    for _ in range(5):
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        body = {"projectId": site, "title": "Page"}
        home = api.post("/api/pages/create", body)["page"]["id"]

        def act(number: int, body: Any = body, home: str = home) -> Answer:
            if number == 0:
                return api.call("POST", "/api/pages/delete", {"id": home, "confirm": True})
            return api.call("POST", "/api/pages/create", body)

        answers = run_concurrently(3, act)
        assert {a.status for a in answers[1:]} == {200}
        pages = api.get(f"/api/pages/list?projectId={site}")["pages"]
        assert [page["isHome"] for page in pages] == [True] + [False] * (len(pages) - 1)


def test_html_saved_concurrently_does_not_exceed_the_quota(
    owner: Owner, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
    body = {"projectId": site, "title": "Page"}
    pages = [api.post("/api/pages/create", body)["page"]["id"] for _ in range(8)]
    monkeypatch.setitem(plans.STORAGE_BYTES, "business", 350)

    def save(number: int) -> Answer:
        fields = {"id": pages[number], "html": "x" * 100}
        return api.call("POST", "/api/pages/save-html", fields)

    answers = run_concurrently(8, save)
    assert outcomes(answers) == {(200, None): 3, (409, "quota_exceeded"): 5}
    assert files.used_bytes(owner.workspace.id) == 300
    assert outcomes(
        run_concurrently(8, lambda _: api.call("POST", "/api/projects/delete", {"id": site}))
    ) == {(200, None): 1, (404, "not_found"): 7}
    assert files.used_bytes(owner.workspace.id) == 0


def test_concurrent_saves_without_a_version_all_succeed_one_after_another(
    api: Api, things: Things
) -> None:
    page = things.page
    answers = run_concurrently(
        8,
        lambda n: api.call("POST", "/api/pages/save-html", {"id": page, "html": f"<p>{n}</p>"}),
    )
    assert outcomes(answers) == {(200, None): 8}
    assert sorted(a.data["page"]["version"] for a in answers) == list(range(4, 12))


def test_of_pages_created_concurrently_exactly_one_is_the_home(api: Api) -> None:
    site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
    body = {"projectId": site, "title": "Page"}
    answers = run_concurrently(10, lambda _: api.call("POST", "/api/pages/create", body))
    assert outcomes(answers) == {(200, None): 10}
    pages = api.get(f"/api/pages/list?projectId={site}")["pages"]
    assert [page["isHome"] for page in pages] == [True] + [False] * 9


def test_pages_created_while_their_site_is_deleted_are_deleted_too(
    owner: Owner, api: Api, things: Things
) -> None:
    def act(number: int) -> Answer:
        if number == 0:
            return api.call("POST", "/api/projects/delete", {"id": things.site})
        return api.call("POST", "/api/pages/create", {"projectId": things.site, "title": "Late"})

    answers = run_concurrently(12, act)
    assert answers[0].status == 200
    assert {a.status for a in answers} <= {200, 404}
    for answer in answers[1:]:
        if answer.status == 200:
            assert api.call("GET", f"/api/pages/{answer.data['page']['id']}").status == 404
    assert counters.read(owner.workspace.id, noun="PAGE") == {}


def test_counters_match_the_records_after_concurrent_writes(owner: Owner, api: Api) -> None:
    def act(number: int) -> None:
        site = api.post("/api/projects/create", {"title": f"Site {number}"})["project"]["id"]
        if number % 2:
            api.post("/api/projects/update", {"id": site, "status": "inactive"})
        if number % 4 == 3:
            api.post("/api/projects/delete", {"id": site})

    run_concurrently(16, act)
    sites_left = api.get("/api/projects/list?size=100")["projects"]
    states = Counter(f"status:{site['status']}" for site in sites_left)
    assert counters.read(owner.workspace.id, noun="SITE") == states | {"total": len(sites_left)}
    assert states == {"status:active": 8, "status:inactive": 4}


def test_a_workspace_and_its_keys_agree_on_the_plan_after_concurrent_changes(
    owner: Owner,
) -> None:
    plans = ("free", "start", "business", "enterprise")

    def change(number: int) -> None:
        if number % 4 == 3:
            owner.token()
        else:
            call_operator("set_plan", workspaceId=owner.workspace.id, plan=plans[number % 4])

    run_concurrently(12, change)
    plan = workspaces.get(owner.workspace.id).plan
    assert {key.plan for key in api_keys.live(owner.workspace.id)} == {plan}
