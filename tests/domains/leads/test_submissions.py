"""Submissions of forms: their effects, and the limits of visitors."""

import json
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core import plans
from chalicelib.core.errors import RateLimitedError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.leads.flows import lead_quota, submissions
from chalicelib.domains.leads.flows.submissions import public_form
from chalicelib.domains.leads.rules import form_texts
from chalicelib.engine import limits
from chalicelib.engine.listing import queries
from tests.conftest import Api, Owner, Time, all_rows, call_console, call_operator
from tests.factories.examples import submit
from tests.factories.forms import new_form


@pytest.fixture
def site(api: Api) -> str:
    site_id: str = api.post("/api/projects/create", {"title": "Bakery", "slug": "bakery"})[
        "project"
    ]["id"]
    return site_id


def lead(api: Api, lead_id: str) -> Any:
    return api.get(f"/api/forms/collection/{lead_id}")["lead"]


def leads(api: Api) -> Any:
    return api.get("/api/forms/collection-list")["collections"]


class TestSubmit:
    def test_a_submission_creates_a_lead_and_a_client(self, api: Api, form: str) -> None:
        values = {"name": " Ада ", "email": "Ada@Example.com", "phone": "8 (495) 123-45-67"}
        lead_id = submit(form, **values, message="Хлеб?", unknown="kept")
        stored_lead = lead(api, lead_id)
        assert stored_lead["data"] == {
            "name": "Ада",
            "email": stored_lead["data"]["email"],
            "phone": "8 (495) 123-45-67",
            "message": "Хлеб?",
            "unknown": "kept",
        }
        contact = (stored_lead["name"], stored_lead["email"], stored_lead["phone"])
        assert contact == ("Ада", "Ada@example.com", "+74951234567")
        assert (stored_lead["status"], stored_lead["tags"]) == ("new", [])
        assert stored_lead["truncated"] is False

        client = api.get(f"/api/clients/{stored_lead['clientId']}")
        assert client["client"]["leadsCount"] == 1
        assert [client_lead["id"] for client_lead in client["leads"]] == [lead_id]

    def test_the_thanks_are_in_the_forms_language_or_its_own_words(
        self, api: Api, form: str
    ) -> None:
        russian = new_form(api, title="Заявка")
        worded = new_form(api, successMessage="Ждём вас!")
        messages = [public_form(form_id).success_message for form_id in (form, russian, worded)]
        assert messages == [
            form_texts.form_text("en", "received"),
            form_texts.form_text("ru", "received"),
            "Ждём вас!",
        ]

    def test_values_that_do_not_fit_the_fields_are_refused(self, api: Api, form: str) -> None:
        with pytest.raises(ValidationError) as caught:
            submit(form, email="ada@example.com")
        assert [error.field for error in caught.value.errors] == ["name"]
        assert leads(api) == []

    def test_a_submission_without_email_and_phone_creates_no_client(
        self, api: Api, form: str
    ) -> None:
        assert lead(api, submit(form, name="Ada"))["clientId"] is None
        assert api.get("/api/clients/list")["total"] == 0

    def test_a_consent_is_stored_with_its_text_and_time(self, api: Api, time: Time) -> None:
        label = "Согласен на обработку данных"
        fields = [{"name": "ok", "label": label, "type": "consent", "required": True}]
        form = new_form(api, fields=fields)
        stored_data = lead(api, submit(form, ok="on"))["data"]
        assert stored_data == {"ok": {"label": label, "at": "2027-01-15T12:00:00.000Z"}}

    def test_the_visitors_origin_is_stored(self, api: Api, site: str) -> None:
        form = new_form(api, projectId=site)
        page = api.post("/api/pages/create", {"projectId": site, "title": "Order"})["page"]
        arguments = {
            "id": form,
            "values": {"name": "Ada"},
            "page": "http://127.0.0.1:8000/s/bakery/order?secret=1",
            "referrer": "https://search.example/?q=bread",
            "campaign": {"source": "News", "medium": "email"},
        }
        invoke(
            REGISTRY["submit_form"],
            VisitorPrincipal(visitor="v"),
            lambda: arguments,
            request_id="r",
        )
        (stored_lead,) = leads(api)
        assert (stored_lead["projectId"], stored_lead["pageId"]) == (site, page["id"])
        assert stored_lead["source"] == {
            "name": "news",
            "page": "http://127.0.0.1:8000/s/bakery/order",
            "referrer": "search.example",
            "campaign": {
                "source": "News",
                "medium": "email",
                "campaign": None,
                "term": None,
                "content": None,
            },
        }

    def test_repeated_submission_within_ten_minutes_is_one_lead(
        self, api: Api, form: str, time: Time
    ) -> None:
        first = submit(form, "visitor", name="Ada", message="Hi")
        assert submit(form, "visitor", message="Hi", name="Ada ") == first
        assert submit(form, "visitor", name="Ada", message="Hello") != first
        assert submit(form, "another", name="Ada", message="Hi") != first
        time.pass_by(minutes=9, seconds=59)
        assert submit(form, "visitor", name="Ada", message="Hi") == first
        time.pass_by(seconds=1)
        second = submit(form, "visitor", name="Ada", message="Hi")
        assert second != first
        assert submit(form, "visitor", name="Ada", message="Hi") == second
        assert api.get("/api/crm/stats")["created"] == 4

    def test_a_replay_with_an_idempotency_key_returns_the_same_lead(
        self, api: Api, form: str
    ) -> None:
        replies = [
            invoke(
                REGISTRY["submit_form"],
                VisitorPrincipal(visitor="v"),
                lambda: {"id": form, "values": {"name": "Ada"}},
                request_id=new_id(),
                idempotency_key="k",
            )
            for _ in range(2)
        ]
        assert replies[1].replayed
        assert json.loads(replies[0].body) == json.loads(replies[1].body)

    @pytest.mark.parametrize("small", [500, 0])
    def test_long_data_is_searchable_and_shortened_in_lists(
        self, small: int, api: Api, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(queries, "SMALL_ROWS", small)
        monkeypatch.setattr(queries, "ROWS_A_RECORD", 1)
        message = "Ёжик " * 1_900 + "needle"
        submit(form, name="Bob")
        lead_id = submit(form, name="Ada", message=message)
        assert lead(api, lead_id)["data"]["message"] == message
        listed_lead, _ = leads(api)
        assert listed_lead["truncated"]
        assert len(json.dumps(listed_lead["data"], ensure_ascii=False).encode()) <= 4096
        assert api.get("/api/forms/collection-list?search=NEEDLE")["total"] == 1
        ranged = "/api/forms/collection-list?search=needle&from=2020-01-01"
        assert api.get(ranged)["total"] == 1
        api.post("/api/forms/collection-status", {"id": lead_id, "status": "completed"})
        assert api.get("/api/forms/collection-list?search=needle")["total"] == 1
        assert lead(api, lead_id)["data"]["message"] == message

    def test_a_workspace_below_business_still_collects_leads(
        self, api: Api, owner: Owner, form: str
    ) -> None:
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="free")
        submit(form, name="Ada")
        call_operator("set_plan", workspaceId=owner.workspace.id, plan="business")
        assert len(leads(api)) == 1

    def test_no_ip_address_of_a_visitor_is_stored(self, api: Api, form: str) -> None:
        submit(form, "0a1b2c", name="Ada")
        (event,) = [
            row for key, row in all_rows().items() if "audit/" in key and "submit_form" in str(row)
        ]
        assert event["actor"]["S"] == "visitor:0a1b2c"


class TestLimits:
    @pytest.fixture(autouse=True)
    def _production_limits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Unscaled:
            rate_limit_scale = 1.0

        monkeypatch.setattr(limits, "settings", Unscaled)

    def test_a_visitor_submits_a_form_thirty_times_a_minute(
        self, api: Api, form: str, time: Time
    ) -> None:
        other = new_form(api)
        for number in range(30):
            submit(form, "visitor", name=f"Ada {number}")
        with pytest.raises(RateLimitedError):
            submit(form, "visitor", name="Ada")
        submit(form, "another", name="Ada")
        submit(other, "visitor", name="Ada")
        time.pass_by(minutes=1)
        submit(form, "visitor", name="Ada")

    def test_a_form_has_a_daily_cap_that_repeats_do_not_use(
        self, api: Api, form: str, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cap = submissions.FORM_SUBMISSIONS_PER_DAY.__class__(
            "form-day", "a day", 2, submissions.FORM_SUBMISSIONS_PER_DAY.window
        )
        monkeypatch.setattr(submissions, "FORM_SUBMISSIONS_PER_DAY", cap)
        for _ in range(3):
            submit(form, "visitor", name="Ada")
        submit(form, name="Bob")
        with pytest.raises(RateLimitedError):
            submit(form, name="Eve")
        assert len(leads(api)) == 2
        time.pass_by(hours=12)
        submit(form, name="Eve")

    def test_a_visitor_has_a_daily_cap_across_all_forms_of_a_workspace(
        self, api: Api, form: str, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cap = lead_quota.VISITOR_LEADS_PER_DAY
        monkeypatch.setattr(lead_quota, "VISITOR_LEADS_PER_DAY", replace(cap, max_requests=2))
        submit(form, "visitor", name="Ada")
        submit(new_form(api), "visitor", name="Ada")
        with pytest.raises(RateLimitedError):
            submit(form, "visitor", name="Eve")
        submit(form, "another", name="Eve")
        time.pass_by(hours=12)
        submit(form, "visitor", name="Eve")

    def test_an_ipv6_network_has_half_of_the_submissions_of_a_form(
        self, api: Api, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Attack in which each of the 65,536 subscribers of a network is a visitor."""
        cap = submissions.FORM_SUBMISSIONS_PER_DAY
        monkeypatch.setattr(submissions, "FORM_SUBMISSIONS_PER_DAY", replace(cap, max_requests=6))
        monkeypatch.setattr(
            lead_quota,
            "VISITOR_LEADS_PER_DAY",
            replace(lead_quota.VISITOR_LEADS_PER_DAY, max_requests=1),
        )
        for number in range(3):
            submit(form, f"{number}", network="a", name="Spam")
        with pytest.raises(RateLimitedError):
            submit(form, "4", network="a", name="Spam")
        submit(form, "5", network="b", name="Ada")
        submit(form, "6", name="Bob")

    def test_ipv6_network_uses_at_most_half_of_the_plans_leads(
        self, api: Api, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.LEADS_A_MONTH, "business", 6)
        monkeypatch.setattr(lead_quota, "LEAST_SHARE", 1)
        flood = [submit(form, f"{number}", network="a", name="Spam") for number in range(5)]
        assert [lead(api, lead_id)["overQuota"] for lead_id in flood] == [False] * 3 + [True] * 2
        assert lead(api, submit(form, "another", name="Ada"))["overQuota"] is False

    @pytest.mark.parametrize("refusing", ["VISITOR", "FORM"])
    def test_refused_submission_counts_for_no_other_limit(
        self, refusing: str, api: Api, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        places = {
            "VISITOR": (lead_quota, "VISITOR_LEADS_PER_DAY"),
            "FORM": (submissions, "FORM_SUBMISSIONS_PER_DAY"),
        }
        caps = {cap_name: getattr(*place) for cap_name, place in places.items()}
        monkeypatch.setattr(*places[refusing], replace(caps[refusing], max_requests=1))
        submit(form, "visitor", name="Ada")
        with pytest.raises(RateLimitedError):
            submit(form, "visitor", name="Eve")
        for cap_name, place in places.items():
            monkeypatch.setattr(*place, replace(caps[cap_name], max_requests=2))
        monkeypatch.setitem(plans.LEADS_A_MONTH, "business", 2)
        lead_id = submit(form, "visitor", name="Eve")
        assert lead(api, lead_id)["overQuota"] is False
        with pytest.raises(RateLimitedError):
            submit(form, "visitor", name="Zoe")

    def test_repeated_or_refused_submission_uses_no_included_lead(
        self, api: Api, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.LEADS_A_MONTH, "business", 2)
        first = submit(form, "visitor", name="Ada")
        assert submit(form, "visitor", name="Ada") == first
        with pytest.raises(ValidationError):
            submit(form, email="Ada")
        ids = [submit(form, name=name) for name in ("Bob", "Eve")]
        assert [lead(api, lead_id)["overQuota"] for lead_id in ids] == [False, True]

    def test_visitor_uses_only_a_share_of_the_plans_leads(
        self, api: Api, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.LEADS_A_MONTH, "business", 4)
        monkeypatch.setattr(lead_quota, "LEAST_SHARE", 3)
        flood = [submit(form, "visitor", name=f"Spam {number}") for number in range(6)]
        assert [lead(api, lead_id)["overQuota"] for lead_id in flood] == [False] * 3 + [True] * 3
        assert lead(api, submit(form, "another", name="Ada"))["overQuota"] is False

    def test_leads_beyond_the_plan_are_stored_marked_and_counted(
        self, api: Api, form: str, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.LEADS_A_MONTH, "business", 2)
        for name in ("Ada", "Bob"):
            submit(form, name=name)
        ids = [submit(new_form(api), name="Eve", email="eve@example.com"), submit(form, name="Zoe")]
        over_quota = {listed_lead["id"]: listed_lead["overQuota"] for listed_lead in leads(api)}
        assert over_quota.pop(ids[0]) is over_quota.pop(ids[1]) is True
        assert list(over_quota.values()) == [False, False]
        stored_lead = lead(api, ids[0])
        assert (stored_lead["overQuota"], stored_lead["email"]) == (True, "eve@example.com")
        stats = api.get("/api/crm/stats")
        assert (stats["created"], stats["overQuota"]) == (4, 2)
        assert api.get(f"/api/crm/stats?formId={form}")["overQuota"] == 1
        overview = call_console(owner.workspace.id, "get_overview")
        assert (overview["leadsIncluded"], overview["leadsOverQuota"]) == (2, 2)
