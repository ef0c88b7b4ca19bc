"""Counts of what keys, apps, people and visitors have done in a workspace."""

from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core.errors import ValidationError
from chalicelib.core.limits import HEAVY
from chalicelib.domains.identity.operations import usage
from chalicelib.engine import limits
from tests.conftest import Api, Owner, Time, call_console
from tests.factories.oauth import connect

PATH = "/api/usage"
FIELDS = [{"name": "name"}]


@pytest.fixture
def quiet(api: Api, owner: Owner, time: Time) -> None:
    """Move the clock to a period in which nothing has happened."""
    time.now = time.now.replace(hour=12, minute=0)
    time.pass_by(days=40)


def report(owner: Owner, **query: Any) -> Any:
    return call_console(owner.workspace.id, "get_usage", **query)


def by_kind(owner: Owner, **query: Any) -> dict[str, tuple[int, int]]:
    return {
        caller["kind"]: (caller["writes"], caller["heavyCalls"])
        for caller in report(owner, **query)["callers"]
    }


@pytest.mark.store  # moto reads a range that ends before it begins, DynamoDB refuses it
def test_a_period_before_the_kept_changes_has_none(owner: Owner) -> None:
    found = report(owner, to="2000-01-07")
    assert (found["from"], len(found["days"])) == ("2000-01-01", 7)
    assert (found["writes"], found["callers"]) == (0, [])
    assert found["countedSince"] > found["to"]


@pytest.mark.usefixtures("quiet")
class TestCounts:
    def test_a_period_without_calls_has_zeros_for_each_day(self, owner: Owner) -> None:
        found = report(owner)
        assert (found["writes"], found["heavyCalls"], found["callers"]) == (0, 0, [])
        assert [day["writes"] for day in found["days"]] == 7 * [0]

    def test_writes_are_counted_by_caller_day_and_operation(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        for title in ("A", "B"):
            api.post("/api/forms/create", {"title": title, "fields": FIELDS})
        api.get("/api/forms/list")
        time.pass_by(days=1)
        api.post("/api/categories/create", {"name": "Bread"})
        call_console(owner.workspace.id, "set_workspace", phone="+74951234567")
        found = report(owner)
        assert by_kind(owner) == {"key": (3, 0), "account": (1, 0)}
        assert found["writes"] == 4
        assert [day["writes"] for day in found["days"]] == [0, 0, 0, 0, 0, 2, 2]
        assert {each["operation"]: each["writes"] for each in found["operations"]} == {
            "create_form": 2,
            "create_category": 1,
            "set_workspace": 1,
        }
        (key,) = [caller for caller in found["callers"] if caller["kind"] == "key"]
        assert (key["id"], key["name"]) == (api.get("/api/key-errors")["key"]["id"], "test")

    def test_heavy_calls_are_counted_as_their_limit_counts_them(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        for _ in range(2):
            api.post("/api/products/ai-fill", {"name": "Loaf"})
        time.pass_by(minutes=1)
        api.post("/api/products/ai-fill", {"name": "Loaf"})
        time.pass_by(days=1)
        found = report(owner)
        assert by_kind(owner) == {"key": (0, 3)}
        assert [day["heavyCalls"] for day in found["days"]] == [0, 0, 0, 0, 0, 3, 0]
        assert found["heavyCalls"] == 3

    def test_the_counter_of_heavy_calls_stays_for_ninety_days(self, api: Api, time: Time) -> None:
        api.post("/api/products/ai-fill", {"name": "Loaf"})
        rows = [row for row in limits.RateLimitRow.scan() if "LIMIT#heavy#" in row.pk]
        assert [row.expires - time.now for row in rows] == [HEAVY.window + timedelta(days=90)]

    def test_an_app_is_a_caller_of_its_own(self, owner: Owner) -> None:
        app = Api(connect(owner.workspace).access)
        assert not app.tool("svc_create_form", title="Call me", fields=FIELDS)[0]
        found = {each["kind"]: each for each in report(owner)["callers"]}
        assert (found["app"]["name"], found["app"]["writes"]) == ("Claude", 1)

    def test_days_are_those_of_the_workspace(self, api: Api, owner: Owner, time: Time) -> None:
        time.now = time.now.replace(hour=20, minute=59)  # 23:59 in Moscow
        api.post("/api/forms/create", {"title": "A", "fields": FIELDS})
        time.pass_by(minutes=1)
        api.post("/api/forms/create", {"title": "B", "fields": FIELDS})
        assert [day["writes"] for day in report(owner)["days"]][-2:] == [1, 1]


@pytest.mark.usefixtures("quiet")
class TestLimits:
    def test_a_report_says_since_when_it_counts_if_there_is_too_much(
        self, api: Api, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(usage, "MAX_COUNTED", 3)
        for n in range(5):
            api.post("/api/forms/create", {"title": f"Form {n}", "fields": FIELDS})
            time.pass_by(minutes=1)
        found = report(owner)
        assert found["writes"] == 3
        since = time.now - timedelta(minutes=3)
        assert found["countedSince"] == since.strftime("%Y-%m-%dT%H:%M:00.000Z")

    def test_a_whole_period_is_counted_since_its_first_day(self, owner: Owner) -> None:
        found = report(owner, **{"from": "2027-01-10"}, to="2027-01-12")
        assert found["countedSince"] == "2027-01-09T21:00:00.000Z"

    def test_an_old_period_is_counted_since_ninety_days_ago(self, owner: Owner, time: Time) -> None:
        day = (time.now - timedelta(days=100)).date()
        found = report(owner, **{"from": str(day)}, to=str(day + timedelta(days=1)))
        assert found["writes"] == 0
        assert found["countedSince"] == (time.now - timedelta(days=90)).strftime(
            "%Y-%m-%dT%H:%M:%S.000Z"
        )

    @pytest.mark.parametrize(
        "query",
        [{"from": "2027-01-01", "to": "2027-02-01"}, {"from": "2027-02-01", "to": "2027-01-01"}],
    )
    def test_a_period_has_one_to_thirty_one_days(self, owner: Owner, query: Any) -> None:
        with pytest.raises(ValidationError):
            report(owner, **query)


def test_a_key_needs_the_scope_of_settings(owner: Owner) -> None:
    assert owner.api("crm:read").call_refused("GET", PATH).status == 403
    assert owner.api("settings:read").get(PATH)["timezone"] == "Europe/Moscow"
