"""Statistics of leads, compared with a recount."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.leads.store.leads import STATUSES
from tests.conftest import Api, Owner, Time
from tests.domains.leads.helpers import LIST, STATUS
from tests.factories.examples import submit
from tests.factories.forms import new_form
from tests.support.effort import examples


class TestStats:
    def test_all_statuses_and_days_are_present_even_without_leads(
        self, api: Api, time: Time
    ) -> None:
        stats = api.get("/api/crm/stats")
        assert stats["byStatus"] == dict.fromkeys(STATUSES, 0)
        assert list(stats["byStatus"]) == list(STATUSES)
        days = [day["date"] for day in stats["series"]]
        assert (len(days), days[0], days[-1]) == (30, "2026-12-17", "2027-01-15")
        assert (stats["conversion"], stats["bySource"], stats["total"]) == (0, [], 0)

    def test_a_lead_counts_on_its_day_by_its_current_status(
        self, api: Api, form: str, time: Time
    ) -> None:
        ids = [submit(form, name="Ada", email=f"{n}@example.com") for n in range(4)]
        time.pass_by(days=40)
        for lead_id in ids[:3]:
            api.post(STATUS, {"id": lead_id, "status": "completed"})
        api.post(STATUS, {"id": ids[0], "status": "archived"})
        now = api.get("/api/crm/stats")
        assert (now["created"], now["total"], now["clients"]) == (0, 4, {"total": 4, "new": 0})
        then = api.get("/api/crm/stats?from=2027-01-15&to=2027-01-15")
        assert then["series"] == [{"date": "2027-01-15", "created": 4, "completed": 2}]
        assert then["byStatus"] == dict.fromkeys(STATUSES, 0) | {
            "new": 1,
            "completed": 2,
            "archived": 1,
        }
        assert (then["conversion"], then["clients"]["new"]) == (0.5, 4)

    def test_statistics_can_be_filtered_by_form_and_site(self, api: Api, form: str) -> None:
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        other = new_form(api, projectId=site)
        submit(form, name="Ada")
        submit(other, name="Bob")
        submit(other, name="Eve")

        def created(**query: str) -> tuple[int, int]:
            stats = api.get(f"/api/crm/stats?{urlencode(query)}")
            return stats["created"], stats["total"]

        assert created() == (3, 3)
        assert created(formId=form) == (1, 1)
        assert created(projectId=site) == (2, 2)
        assert created(formId=other, projectId=site) == (2, 2)
        assert created(formId=form, projectId=site) == (0, 0)
        assert created(formId=new_id()) == (0, 0)
        api.post("/api/projects/delete", {"id": site})
        assert created(projectId=site) == (2, 2)

    @pytest.mark.parametrize(
        ("query", "status"),
        [
            ({"from": "2026-01-01", "to": "2027-01-01"}, 200),
            ({"from": "2026-01-01", "to": "2027-01-02"}, 400),
            ({"from": "2027-01-02", "to": "2027-01-01"}, 400),
            ({"from": "2027-01-02T00:00:00Z"}, 400),
            ({"to": "1971-01-01"}, 200),
        ],
    )
    def test_up_to_366_days_are_allowed(self, query: dict[str, str], status: int, api: Api) -> None:
        assert api.call("GET", f"/api/crm/stats?{urlencode(query)}").status == status


ZONES = ("Europe/Moscow", "Europe/Berlin", "Pacific/Apia", "America/St_Johns")
CHANGES = (  # around midnights and the clock changes of Berlin and Newfoundland
    datetime(2027, 3, 27, 20, 58, tzinfo=UTC),
    datetime(2027, 10, 30, 21, 58, tzinfo=UTC),
    datetime(2027, 3, 14, 2, 28, tzinfo=UTC),
    datetime(2026, 12, 31, 20, 58, tzinfo=UTC),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["submit", "status", "wait"]),
        st.integers(0, 10**6),
        st.sampled_from(STATUSES),
        st.sampled_from(["", "ads", "mail", "a", "direct", "other"]),
    ),
    min_size=3,
    max_size=12,
)


class TestStatsOfRandomHistories:
    @examples(20)
    @given(st.sampled_from(ZONES), st.sampled_from(CHANGES), STEPS)
    def test_statistics_equal_a_recount(
        self, new_owner: Any, zone: str, start: datetime, steps: list[Any]
    ) -> None:
        owner: Owner = new_owner(timezone=zone)
        api = owner.api()
        forms = [new_form(api), new_form(api, title="Other")]
        now, lead_ids = start, []
        with clock.using(lambda: now):
            for act, number, status, source in steps:
                if act == "wait":
                    now += timedelta(seconds=number % 7200)
                elif act == "submit" or not lead_ids:
                    email = f"{number % 5}@example.com" if number % 2 else None
                    lead_ids.append(_submit(forms[number % 2], email, source))
                else:
                    api.post(STATUS, {"id": lead_ids[number % len(lead_ids)], "status": status})
            first, last = (start + timedelta(days=n) for n in (-2, 2))
            period = {"from": f"{first:%Y-%m-%d}", "to": f"{last:%Y-%m-%d}"}
            for form in (None, *forms):
                query = urlencode(period | ({"formId": form} if form else {}))
                reported = api.get(f"/api/crm/stats?{query}")
                assert reported == _recount(api, zone, first.date(), last.date(), form, reported)


def _submit(form: str, email: str | None, source: str) -> str:
    arguments = {
        "id": form,
        "values": {"name": "Ada", "email": email},
        "campaign": {"source": source},
    }
    visitor = VisitorPrincipal(visitor=new_id())
    invoke(REGISTRY["submit_form"], visitor, lambda: arguments, request_id=new_id())
    return _newest(form)


def _newest(form: str) -> str:
    from chalicelib.domains.leads.store.forms import FORMS
    from chalicelib.domains.leads.store.leads import LEADS

    return LEADS.entries(FORMS.workspace_of(form) or "", form_id=form)[-1].id


def _recount(
    api: Api, zone: str, first: date, last: date, form: str | None, reported: Any
) -> dict[str, Any]:
    """Count by reading every lead and client. New clients are counted for all forms together."""
    query = f"?size=500{f'&formId={form}' if form else ''}"
    rows = api.get(f"{LIST}{query}")["collections"]
    days = [first + timedelta(n) for n in range((last - first).days + 1)]

    def day(record: dict[str, Any]) -> date:
        return datetime.fromisoformat(record["createdAt"]).astimezone(ZoneInfo(zone)).date()

    in_period = [row for row in rows if first <= day(row) <= last]
    states = Counter(row["status"] for row in in_period)
    sources = Counter(row["source"]["name"] for row in in_period)
    created = Counter(day(row) for row in in_period)
    completed = Counter(day(row) for row in in_period if row["status"] == "completed")
    clients = api.get("/api/clients/list?size=100")["clients"]
    assert Counter({s["source"]: s["count"] for s in reported["bySource"]}) == sources
    return {
        "status": True,
        "total": len(rows),
        "byStatus": {status: states[status] for status in STATUSES},
        "created": len(in_period),
        "overQuota": 0,
        "conversion": states["completed"] / len(in_period) if in_period else 0.0,
        "series": [
            {"date": f"{date}", "created": created[date], "completed": completed[date]}
            for date in days
        ],
        "bySource": reported["bySource"],
        "clients": {
            "total": len(clients),
            "new": reported["clients"]["new"] if form else len(clients),
        },
    }
