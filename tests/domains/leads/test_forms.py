"""Operations on forms, and the effects of a submission."""

import json
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core import plans
from chalicelib.core.errors import NotFoundError, RateLimitedError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.leads.flows import lead_quota, submissions
from chalicelib.domains.leads.flows.submissions import public_form
from chalicelib.domains.leads.rules import form_texts
from chalicelib.engine import limits
from chalicelib.engine.listing import queries
from tests.conftest import Api, Owner, Time, all_rows, call_console, call_operator
from tests.factories.examples import FORM, submit

ORDER_FORM = {"title": "Заказ", "fields": [{"name": "phone", "label": "Телефон", "type": "phone"}]}


@pytest.fixture
def site(api: Api) -> str:
    site_id: str = api.post("/api/projects/create", {"title": "Bakery", "slug": "bakery"})[
        "project"
    ]["id"]
    return site_id


@pytest.fixture
def form(api: Api) -> str:
    return new_form(api)


def new_form(api: Api, **fields: Any) -> str:
    form_id: str = api.post("/api/forms/create", FORM | fields)["form"]["id"]
    return form_id


def product(api: Api, **fields: Any) -> str:
    body = {"name": "Rye", "price": 9900} | fields
    product_id: str = api.post("/api/products/create", body)["product"]["id"]
    return product_id


def lead(api: Api, lead_id: str) -> Any:
    return api.get(f"/api/forms/collection/{lead_id}")["lead"]


def leads(api: Api) -> Any:
    return api.get("/api/forms/collection-list")["collections"]


class TestCreateForm:
    def test_create_returns_the_submit_url_and_the_code_to_embed(self, api: Api, site: str) -> None:
        form = api.post("/api/forms/create", FORM | {"projectId": site})["form"]
        assert form["submitUrl"].endswith(f"/api/public/forms/{form['id']}/submit")
        assert form["submitUrl"] in form["embedHtml"]
        assert (form["projectId"], form["isActive"], form["submissions"]) == (site, True, 0)
        assert [field["name"] for field in form["fields"]] == ["name", "email", "phone", "message"]
        assert form["fields"][0] == {
            "name": "name",
            "label": "Name",
            "type": "text",
            "required": True,
            "options": None,
        }

    def test_form_larger_than_a_database_row_is_413(self, api: Api) -> None:
        options = [f"{n} {'ж' * 190}" for n in range(100)]
        fields = [{"name": f"f{n}", "type": "select", "options": options} for n in range(30)]
        count_before = len(api.get("/api/forms/list")["forms"])
        answer = api.call_refused("POST", "/api/forms/create", {"title": "T", "fields": fields})
        assert (answer.status, answer.data["code"]) == (413, "payload_too_large")
        (error,) = answer.data["errors"]
        assert error["field"] == "fields"
        assert "at most 400,000 bytes" in error["message"]
        failed, result = api.tool("svc_create_form", title="T", fields=fields)
        assert failed
        assert "payload_too_large" in str(result)
        assert len(api.get("/api/forms/list")["forms"]) == count_before

    def test_a_form_just_below_the_size_of_a_row_is_stored(self, api: Api) -> None:
        options = [f"{n:02} {'x' * 125}" for n in range(100)]
        fields = [{"name": f"f{n}", "type": "select", "options": options} for n in range(30)]
        assert new_form(api, fields=fields)

    def test_a_label_is_the_name_unless_given(self, api: Api) -> None:
        form = api.post("/api/forms/create", {"title": "T", "fields": [{"name": "city"}]})["form"]
        assert (form["fields"][0]["label"], form["fields"][0]["type"]) == ("city", "text")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"fields": []}, "fields: expected at least 1"),
            ({"fields": [{"name": f"f{n}"} for n in range(31)]}, "at most 30"),
            (
                {"fields": [{"name": "a"}, {"name": "a"}]},
                "expected different field names, received several fields named a",
            ),
            ({"fields": [{"name": "items"}]}, "reserved"),
            ({"fields": [{"name": "_page"}]}, "fields.0.name"),
            ({"fields": [{"name": "1st"}]}, "fields.0.name"),
            ({"fields": [{"name": "a", "type": "file"}]}, "fields.0.type"),
            (
                {"fields": [{"name": "a", "type": "select"}]},
                "expected options for a field of type select, received none",
            ),
            (
                {"fields": [{"name": "a", "options": ["x"]}]},
                "expected no options, which only a select can have, received some",
            ),
            ({"redirectUrl": "http://example.com/"}, "https"),
            ({"redirectUrl": "javascript:alert(1)"}, "https"),
            ({"redirectUrl": "https:///x"}, "https"),
            ({"title": " "}, "title"),
        ],
    )
    def test_an_invalid_form_is_refused(
        self, change: dict[str, Any], message: str, api: Api
    ) -> None:
        answer = api.call_refused("POST", "/api/forms/create", FORM | change)
        assert answer.status == 400
        assert message in answer.data["message"]


class TestListForms:
    def test_forms_are_listed_newest_first_with_counts_and_filtered_by_site(
        self, api: Api, site: str
    ) -> None:
        first, second = new_form(api, projectId=site), new_form(api)
        submit(first, name="Ada", email="ada@example.com")
        submit(first, name="Bob", email="bob@example.com")
        page = api.get("/api/forms/list")
        assert [f["id"] for f in page["forms"]] == [second, first]
        assert [f["submissions"] for f in page["forms"]] == [0, 2]
        assert page["total"] == 2
        assert [f["id"] for f in api.get(f"/api/forms/list?projectId={site}")["forms"]] == [first]
        assert api.get(f"/api/forms/list?projectId={new_id()}")["total"] == 0

    def test_a_form_of_a_suspended_site_is_not_active(self, api: Api, site: str) -> None:
        form = new_form(api, projectId=site)
        call_operator("suspend_site", id=site)
        assert api.get("/api/forms/list")["forms"][0]["isActive"] is False
        with pytest.raises(NotFoundError):
            submit(form, name="Ada")
        call_operator("resume_site", id=site)
        submit(form, name="Ada")


class TestDeleteForm:
    def test_deleted_form_keeps_its_leads_and_refuses_submissions(
        self, api: Api, form: str
    ) -> None:
        lead_id = submit(form, name="Ada", email="ada@example.com")
        dry = api.post("/api/forms/delete", {"id": form, "dryRun": True})
        assert (dry["deleted"], dry["leadsKept"]) == (False, 1)
        response = api.post("/api/forms/delete", {"id": form})
        assert (response["deleted"], response["leadsKept"]) == (True, 1)
        assert lead(api, lead_id)["formId"] == form
        assert api.get(f"/api/forms/collection-list?formId={form}")["total"] == 1
        assert api.get(f"/api/crm/stats?formId={form}")["created"] == 1
        with pytest.raises(NotFoundError):
            submit(form, name="Ada")
        with pytest.raises(NotFoundError):
            public_form(form)
        assert api.get("/api/forms/list")["total"] == 0

    def test_site_deletion_deletes_forms_and_keeps_leads(self, api: Api, site: str) -> None:
        forms = [new_form(api, projectId=site) for _ in range(27)]
        other = new_form(api)
        lead_id = submit(forms[0], name="Ada")
        dry = api.post("/api/projects/delete", {"id": site, "dryRun": True})
        assert dry["cascade"]["forms"] == 27
        assert api.get("/api/forms/list")["total"] == 28
        assert api.post("/api/projects/delete", {"id": site})["cascade"]["forms"] == 27
        assert [f["id"] for f in api.get("/api/forms/list")["forms"]] == [other]
        assert lead(api, lead_id)["projectId"] == site
        with pytest.raises(NotFoundError):
            submit(forms[26], name="Ada")


class TestSubmit:
    def test_a_submission_creates_a_lead_and_a_client(self, api: Api, form: str) -> None:
        values = {"name": " Ада ", "email": "Ada@Example.com", "phone": "8 (495) 123-45-67"}
        lead_id = submit(form, **values, message="Хлеб?", unknown="dropped")
        stored_lead = lead(api, lead_id)
        assert stored_lead["data"] == {
            "name": "Ада",
            "email": stored_lead["data"]["email"],
            "phone": "8 (495) 123-45-67",
            "message": "Хлеб?",
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


class TestOrderSubmission:
    def test_names_and_prices_come_from_the_catalogue(self, api: Api) -> None:
        form, rye = new_form(api, **ORDER_FORM), product(api)
        line = {"productId": rye, "quantity": 3, "name": "Gold", "price": 1}
        lead_id = submit(form, phone="8 916 123-45-67", items=[line])
        api.post("/api/products/update", {"id": rye, "price": 1, "name": "New"})
        (item,) = lead(api, lead_id)["data"]["items"]
        assert item == {"productId": rye, "name": "Rye", "quantity": 3, "price": 9900}

    def test_order_lines_are_accepted_as_json_text_from_a_form_without_script(
        self, api: Api
    ) -> None:
        form, rye = new_form(api, **ORDER_FORM), product(api)
        lines = json.dumps([{"productId": rye, "quantity": "2"}, {"productId": rye}])
        items = lead(api, submit(form, items=lines))["data"]["items"]
        assert [item["quantity"] for item in items] == [2, 1]

    @pytest.mark.parametrize(
        ("items", "field"),
        [
            ("rye", "items"),
            ({"productId": "x"}, "items"),
            (["x"], "items"),
            ([{"productId": "x"}], "items.0.productId"),
            ([{"quantity": 1}], "items.0.productId"),
            ([{"productId": 5}], "items.0.productId"),
            ([{"productId": ["x"]}], "items.0.productId"),
            ([{"productId": "{rye}", "quantity": 0}], "items.0.quantity"),
            ([{"productId": "{rye}", "quantity": -1}], "items.0.quantity"),
            ([{"productId": "{rye}", "quantity": 1.5}], "items.0.quantity"),
            ([{"productId": "{rye}", "quantity": True}], "items.0.quantity"),
            ([{"productId": "{rye}"}, {"productId": "{off}"}], "items.1.productId"),
            ([{"productId": "{rye}"}] * 51, "items"),
        ],
    )
    def test_an_invalid_order_is_refused(self, items: Any, field: str, api: Api) -> None:
        rye, off = product(api), product(api, status="inactive")
        sent_items = json.loads(json.dumps(items).replace("{rye}", rye).replace("{off}", off))
        with pytest.raises(ValidationError) as caught:
            submit(new_form(api, **ORDER_FORM), items=sent_items)
        (error,) = caught.value.errors
        assert error.field == field
        assert leads(api) == []

    def test_products_of_another_workspace_cannot_be_ordered(
        self, api: Api, new_owner: Any
    ) -> None:
        theirs = product(new_owner().api())
        with pytest.raises(ValidationError):
            submit(new_form(api, **ORDER_FORM), items=[{"productId": theirs}])
