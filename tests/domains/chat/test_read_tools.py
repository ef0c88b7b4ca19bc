"""Tests of the tools with which a bot reads what every visitor can read."""

import json
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domains.chat.flows import chat_facts, named_records
from chalicelib.domains.chat.flows.tool_calls import ToolContext
from tests.conftest import Api, call_operator
from tests.domains.chat.helpers import call

pytestmark = pytest.mark.usefixtures("database")


def data(context: ToolContext, name: str, **arguments: Any) -> Any:
    result = call(context, name, arguments)
    assert not result.is_error, result.content
    return json.loads(result.content)


def error(context: ToolContext, name: str, **arguments: Any) -> str:
    result = call(context, name, arguments)
    assert result.is_error
    return result.content


@pytest.fixture
def haircut(api: Api) -> str:
    """A haircut of 60 minutes by Anna or Boris, who work on Fridays from 10 to 13."""
    staff = []
    for name in ("Anna", "Boris"):
        id_ = api.post("/api/resources/create", {"name": name, "type": "master"})["resource"]["id"]
        rules = [{"weekday": "fri", "start": "10:00", "end": "13:00"}]
        api.post("/api/resources/set-availability", {"resourceId": id_, "rules": rules})
        staff.append(id_)
    service = {"name": "Haircut", "price": 150_050, "durationMin": 60, "resourceIds": staff}
    made_id: str = api.post("/api/services/create", service)["service"]["id"]
    return made_id


class TestCatalogue:
    def test_active_products_are_found_by_their_words(self, context: ToolContext, api: Api) -> None:
        api.post("/api/products/create", {"name": "Rye bread", "price": 12_050, "stock": 2})
        api.post("/api/products/create", {"name": "Rye rolls", "price": 1, "status": "inactive"})
        api.post("/api/products/create", {"name": "Cake", "price": 1})
        assert data(context, "find_products", query="rye breads") == {
            "found": [
                {"source": "product", "name": "Rye bread", "price_rub": 120.5, "in_stock": True}
            ]
        }
        assert data(context, "find_products", query="pizza")["others"] == ["Rye bread", "Cake"]

    def test_services_are_found_with_their_duration(
        self, context: ToolContext, haircut: str
    ) -> None:
        (service,) = data(context, "find_services", query="haircut")["found"]
        assert (service["price_rub"], service["minutes"]) == (1500.5, 60)

    def test_opening_hours_are_listed_by_staff_member(
        self, context: ToolContext, haircut: str
    ) -> None:
        hours = data(context, "opening_hours")["hours"]
        assert [(staff_hours["of"], staff_hours["Fri"]) for staff_hours in hours] == [
            ("Anna", "10:00-13:00"),
            ("Boris", "10:00-13:00"),
        ]


class TestMoreThanAToolLists:
    def test_the_tool_says_how_many_offers_it_lacks(
        self, context: ToolContext, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(chat_facts, "MAX_OFFERS", 2)
        for name in ("Rye bread", "Wheat bread", "Cake", "Pie"):
            api.post("/api/products/create", {"name": name, "price": 1})
        assert data(context, "find_products", query="pizza")["notListed"] == 2
        (found,) = data(context, "find_products", query="pie")["found"]
        assert found["name"] == "Pie"

    def test_a_large_catalogue_is_searched_beyond_what_is_ranked(
        self, context: ToolContext, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(chat_facts, "MAX_SEARCHED", 2)
        for name in ("Rye bread", "Wheat bread", "Cake", "Pie"):
            api.post("/api/products/create", {"name": name, "price": 1})
        (found,) = data(context, "find_products", query="a pie")["found"]
        assert found["name"] == "Pie"

    def test_hours_of_other_staff_are_counted(
        self, context: ToolContext, haircut: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "notListed" not in data(context, "opening_hours")
        monkeypatch.setattr(chat_facts, "MAX_HOURS", 1)
        hours = data(context, "opening_hours")
        assert (len(hours["hours"]), hours["notListed"]) == (1, 1)

    def test_each_of_many_services_is_found_by_its_name(
        self, context: ToolContext, api: Api, haircut: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(named_records, "MAX_SERVICES", 2)
        monkeypatch.setattr(named_records, "MAX_NAMES", 1)
        for number in range(3):
            body = {"name": f"Massage {number}", "durationMin": 60}
            api.post("/api/services/create", body)
        api.post("/api/services/update", {"id": haircut, "sortOrder": 10**9})
        assert data(context, "find_free_times", service="haircut")["service"] == "Haircut"
        assert "Massage 0 and 3 more." in error(context, "find_free_times", service="pizza")


class TestFreeTimes:
    def test_times_have_ids_local_starts_and_free_staff(
        self, context: ToolContext, haircut: str
    ) -> None:
        response = data(
            context,
            "find_free_times",
            service="haircut",
            firstDay="2026-11-27",
            lastDay="2026-11-27",
        )
        assert (response["price_rub"], response["minutes"]) == (1500.5, 60)
        first = response["times"][0]
        assert first | {"staff": sorted(first["staff"])} == {
            "slotId": "1",
            "start": "2026-11-27T10:00",
            "weekday": "fri",
            "staff": ["Anna", "Boris"],
        }
        starts = [slot["start"][11:] for slot in response["times"]]
        assert starts == ["10:00", "11:00", "12:00"]

    def test_a_time_has_the_price_and_the_length_of_the_one_who_is_offered(
        self, context: ToolContext, haircut: str, api: Api
    ) -> None:
        boris = api.get(f"/api/services/{haircut}")["service"]["resourceIds"][1]
        own = {"resourceId": boris, "price": 200_000, "durationMin": 90}
        body = {"id": haircut, "resourceOverrides": [own]}
        api.post("/api/services/update", body)
        (service,) = data(context, "find_services", query="haircut")["found"]
        assert (service["price_rub"], service["minutes"]) == (1500.5, 60)
        assert service["lowest_of_staff"] == ["price", "minutes"]
        found = data(context, "find_free_times", service="Haircut", staff="Boris")
        assert "minutes" not in found
        assert [(slot["price_rub"], slot["minutes"]) for slot in found["times"]] == [
            (2000, 90),
            (2000, 90),
        ]
        for slot in data(context, "find_free_times", service="Haircut")["times"]:
            (name,) = slot["staff"]
            assert slot["price_rub"] == (2000 if name == "Boris" else 1500.5)

    def test_the_same_time_keeps_its_id(self, context: ToolContext, haircut: str) -> None:
        first = data(context, "find_free_times", service="Haircut")
        offered = first["times"][0]["staff"][0]
        second = data(context, "find_free_times", service="Haircut", staff=offered.lower())
        assert [slot["slotId"] for slot in first["times"]] == ["1", "2", "3"]
        assert [slot["slotId"] for slot in second["times"]] == ["1", "2", "3"]
        assert [slot.start for slot in context.offered_slots] == sorted(
            slot.start for slot in context.offered_slots
        )

    @pytest.mark.parametrize("busy", ["Anna", "Boris"])
    def test_the_least_busy_of_the_day_is_offered(
        self, context: ToolContext, haircut: str, api: Api, busy: str
    ) -> None:
        staff = api.get("/api/resources/list")["resources"]
        (busy_id,) = (person["id"] for person in staff if person["name"] == busy)
        order = {
            "serviceId": haircut,
            "resourceId": busy_id,
            "startAt": "2026-11-27T10:00",
            "client": {"name": "Ada", "email": "ada@example.com"},
        }
        api.post("/api/bookings/create", order)
        times = data(context, "find_free_times", service="Haircut")["times"]
        (other,) = {"Anna", "Boris"} - {busy}
        assert [slot["staff"][0] for slot in times] == [other] * 3
        assert context.offered_slots[-1].staff == other

    def test_without_free_times_the_next_free_time_is_named(
        self, context: ToolContext, haircut: str
    ) -> None:
        response = data(
            context,
            "find_free_times",
            service="Haircut",
            firstDay="2026-11-24",
            lastDay="2026-11-25",
        )
        assert response["times"] == []
        assert response["next"]["start"] == "2026-11-27T10:00"

    def test_an_unknown_name_returns_the_existing_names(
        self, context: ToolContext, haircut: str
    ) -> None:
        assert "Haircut" in error(context, "find_free_times", service="Massage")
        assert "Anna, Boris" in error(context, "find_free_times", service="Haircut", staff="Clara")

    @pytest.mark.parametrize(
        ("first", "last"), [("2026-11-27", "2026-11-26"), ("2026-11-27", "2027-11-26")]
    )
    def test_an_impossible_range_is_an_error(
        self, context: ToolContext, haircut: str, first: str, last: str
    ) -> None:
        message = error(context, "find_free_times", service="Haircut", firstDay=first, lastDay=last)
        assert "lastDay" in message

    def test_a_service_of_a_suspended_site_has_no_times(
        self, context: ToolContext, api: Api, haircut: str
    ) -> None:
        site = api.post("/api/projects/create", {"title": "Shop"})["project"]["id"]
        api.post("/api/services/update", {"id": haircut, "siteId": site})
        call_operator("suspend_site", id=site)
        assert "cannot be booked" in error(context, "find_free_times", service="Haircut")

    def test_another_workspace_is_never_read(
        self, context: ToolContext, haircut: str, new_owner: Any
    ) -> None:
        stranger = replace(context, workspace=new_owner().workspace)
        assert "there are no services" in error(stranger, "find_free_times", service="Haircut")
        assert data(stranger, "opening_hours") == {"hours": []}
