"""Concurrent submissions store every lead, one client per visitor and exact counters."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.core import clock, plans
from chalicelib.core.errors import RateLimitedError
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.domains.leads.flows import submissions
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.engine import limits, metrics
from chalicelib.engine.listing import counters
from tests.conftest import Api, Owner, call_operator, run_concurrently
from tests.factories.examples import submit

pytestmark = pytest.mark.store


def today(owner: Owner) -> metrics.DayCounts:
    day: date = clock.local_day(clock.now(), owner.workspace.timezone)
    return metrics.read(owner.workspace.id, subject=crm_metrics.subject(), first=day, last=day)[day]


def test_thirty_concurrent_submissions_create_one_client(api: Api, owner: Owner, form: str) -> None:
    def act(number: int) -> str:
        phones = ("84951234567", "+7 (495) 123-45-67")
        contact = (
            {"email": "Ada@example.com", "phone": phones[number % 2]},
            {"email": "ada@example.com"},
        )[number % 3 == 0]
        return submit(form, name=f"Ada {number}", **contact)

    ids = run_concurrently(30, act)
    assert len(set(ids)) == 30
    page = api.get("/api/clients/list")
    (client,) = page["clients"]
    assert (page["total"], client["leadsCount"]) == (1, 30)
    assert client["email"].lower() == "ada@example.com"
    leads = api.get("/api/forms/collection-list?size=500")["collections"]
    assert {lead["id"] for lead in leads} == set(ids)
    assert {lead["clientId"] for lead in leads} == {client["id"]}
    workspace = owner.workspace.id
    assert counters.read_all(workspace, noun=LEADS.noun) == {
        "total": 30,
        "status:new": 30,
        f"form_id:{form}": 30,
    }
    assert counters.read(workspace, noun=CLIENTS.noun) == {"total": 1}
    assert today(owner).totals == {"created": 30, "new": 30, "clients": 1}
    assert api.get("/api/clients/list?sort=lastActivityDesc")["total"] == 1


def test_thirty_concurrent_submissions_with_the_same_values_make_one_lead(
    api: Api, owner: Owner, form: str
) -> None:
    values = {"name": "Ada", "email": "ada@example.com"}
    ids = run_concurrently(30, lambda _: submit(form, "visitor", **values))
    assert len(set(ids)) == 1
    assert api.get("/api/forms/collection-list")["total"] == 1
    assert api.get("/api/clients/list")["clients"][0]["leadsCount"] == 1
    assert today(owner).totals == {"created": 1, "new": 1, "clients": 1}


def test_concurrent_submissions_beyond_a_daily_limit_are_not_counted(
    api: Api, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "settings", lambda: SimpleNamespace(rate_limit_scale=1))
    cap = submissions.FORM_SUBMISSIONS_PER_DAY
    monkeypatch.setattr(submissions, "FORM_SUBMISSIONS_PER_DAY", replace(cap, max_requests=5))

    def act(number: int) -> str | None:
        with suppress(RateLimitedError):
            return submit(form, name=f"Ada {number}")
        return None

    stored_ids = [lead_id for lead_id in run_concurrently(12, act) if lead_id is not None]
    assert len(stored_ids) == 5
    assert api.get("/api/forms/collection-list")["total"] == 5
    monkeypatch.setattr(submissions, "FORM_SUBMISSIONS_PER_DAY", cap)
    monkeypatch.setitem(plans.LEADS_A_MONTH, "business", 6)
    later = [submit(form, name=name) for name in ("Bob", "Eve")]
    leads = [api.get(f"/api/forms/collection/{lead_id}")["lead"] for lead_id in later]
    assert [lead["overQuota"] for lead in leads] == [False, True]


def test_concurrent_leads_by_email_and_phone_share_clients(
    api: Api, owner: Owner, form: str
) -> None:
    contacts: list[dict[str, Any]] = [
        {"email": "ada@example.com"},
        {"phone": "84951234567"},
        {"email": "ada@example.com", "phone": "84951234567"},
        {"email": "bob@example.com", "phone": "84951234567"},
    ]
    run_concurrently(16, lambda n: submit(form, name=f"Ada {n}", **contacts[n % 4]))
    clients = api.get("/api/clients/list")["clients"]
    for field in ("email", "phone"):
        values = [client[field] for client in clients if client[field]]
        assert len(set(values)) == len(values)
    leads = api.get("/api/forms/collection-list?size=500")["collections"]
    leads_per_client = Counter(lead["clientId"] for lead in leads)
    assert leads_per_client == {client["id"]: client["leadsCount"] for client in clients}


def test_a_clients_own_changes_survive_concurrent_leads(api: Api, owner: Owner, form: str) -> None:
    values = {"name": "Ada", "email": "ada@example.com"}
    lead = submit(form, **values)
    client = api.get(f"/api/forms/collection/{lead}")["lead"]["clientId"]

    def act(number: int) -> None:
        if number % 4 == 0:
            api.post("/api/clients/update", {"id": client, "notes": f"{number}", "tags": ["vip"]})
        else:
            submit(form, **values)

    run_concurrently(16, act)
    updated = api.get(f"/api/clients/{client}")["client"]
    assert (updated["leadsCount"], updated["tags"]) == (13, ["vip"])
    assert updated["notes"] in {"0", "4", "8", "12"}


def test_counters_match_the_leads_after_concurrent_status_changes(
    api: Api, owner: Owner, form: str
) -> None:
    ids = [submit(form, name="Ada") for _ in range(4)]
    states = ("in_progress", "completed", "archived", "new")

    def act(number: int) -> None:
        body = {"id": ids[number % 4], "status": states[number // 4]}
        api.post("/api/forms/collection-status", body)

    run_concurrently(16, act)
    leads = api.get("/api/forms/collection-list")["collections"]
    leads_per_status = Counter(lead["status"] for lead in leads)
    stats = api.get("/api/crm/stats")
    assert +Counter(stats["byStatus"]) == leads_per_status
    for lead_id in ids:
        history = api.get(f"/api/forms/collection/{lead_id}")["history"]
        changes = [event["change"] for event in history[1:]]
        assert all(change.startswith("status: ") for change in changes)


def test_an_erasure_during_submissions_leaves_no_partial_data(
    api: Api, owner: Owner, form: str
) -> None:
    values = {"name": "Ada", "email": "ada@example.com"}
    submit(form, **values)

    def act(number: int) -> None:
        if number:
            submit(form, **values)
        else:
            call_operator("erase_client", workspaceId=owner.workspace.id, email=values["email"])

    run_concurrently(6, act)
    leads = api.get("/api/forms/collection-list?size=500")["collections"]
    clients = api.get("/api/clients/list")["clients"]
    leads_per_client = Counter(lead["clientId"] for lead in leads)
    assert len(leads) == 6
    assert leads_per_client == {
        client["id"]: client["leadsCount"] for client in clients if client["leadsCount"]
    }
