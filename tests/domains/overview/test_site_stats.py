"""Counts of visits to sites, and the resulting statistics."""

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.domains.sites.store import site_visits
from chalicelib.engine import audit, metrics, visitors
from tests.conftest import Answer, Api, Owner, Time, all_rows, call_operator, run_concurrently
from tests.factories.examples import Things, submit
from tests.support.effort import examples

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0"


@pytest.fixture
def view_page(things: Things, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Report a view of a page, as a visitor's browser does."""

    def send(
        page: str = things.home, ip: str = "192.0.2.1", browser: str = BROWSER, **fields: Any
    ) -> Answer:
        body = json.dumps({"projectId": things.site, "pageId": page, **fields}).encode()
        headers = {"Content-Type": "text/plain;charset=UTF-8", "User-Agent": browser}
        with from_ip(ip):
            return Api(None).call("POST", "/api/public/hit", body, headers)

    return send


class from_ip:  # noqa: N801  reads as a phrase
    """Make the requests of this thread come from an IP address."""

    def __init__(self, ip: str) -> None:
        self._ip = ip

    def __enter__(self) -> None:
        IPS[threading.get_ident()] = self._ip

    def __exit__(self, *_: object) -> None:
        pass


IPS: dict[int, str] = {}


@pytest.fixture(autouse=True)
def _addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    real = visitors.visitor_hash

    def hashed(_ip: str, day: date | None = None) -> str:
        return real(IPS.get(threading.get_ident(), "192.0.2.1"), day)

    monkeypatch.setattr(visitors, "visitor_hash", hashed)


def stats(api: Api, site: str, **query: str) -> Any:
    text = "".join(f"&{name}={value}" for name, value in query.items())
    return api.get(f"/api/projects/stats?id={site}{text}")


class TestCounting:
    def test_a_view_counts_its_page_visitor_and_referrer(
        self, api: Api, things: Things, view_page: Any, time: Time
    ) -> None:
        assert view_page(referrer="https://www.search.example/find?q=bread").data["counted"] is True
        view_page(page=things.page, referrer="")
        view_page(ip="192.0.2.2", referrer="http://127.0.0.1:8000/s/bakery")
        report = stats(api, things.site)
        totals = report["totals"]
        assert (totals["views"], totals["visitors"], totals["bookings"]) == (3, 2, 0)
        assert report["topPages"] == [
            {"pageId": things.home, "slug": "home", "title": "Home", "views": 2},
            {"pageId": things.page, "slug": "about", "title": "About", "views": 1},
        ]
        assert report["referrers"] == [{"host": "search.example", "views": 1}]
        assert (report["from"], report["to"]) == ("2026-12-17", "2027-01-15")
        assert report["series"][-1] == {"date": "2027-01-15", "views": 3, "visitors": 2}
        assert [span["views"] for span in report["series"][:-1]] == [0] * 29

    def test_switching_off_keeps_the_history(
        self, api: Api, things: Things, view_page: Any
    ) -> None:
        view_page()
        api.post("/api/projects/toggle-stats", {"id": things.site, "enabled": False})
        assert view_page().data["counted"] is False
        report = stats(api, things.site)
        assert (report["statsEnabled"], report["totals"]["views"]) == (False, 1)

    @pytest.mark.parametrize(
        "browser",
        [
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/120.0 Safari/537.36",
            "curl/8.5.0",
            "",
        ],
    )
    def test_crawlers_are_not_counted(
        self, api: Api, things: Things, view_page: Any, browser: str
    ) -> None:
        answer = view_page(browser=browser)
        assert (answer.status, answer.data["counted"]) == (200, False)
        assert stats(api, things.site)["totals"]["views"] == 0

    def test_another_sites_page_is_not_found(
        self, api: Api, things: Things, view_page: Any
    ) -> None:
        site = api.post("/api/projects/create", {"title": "Other"})["project"]["id"]
        page = api.post("/api/pages/create", {"projectId": site, "title": "P"})["page"]["id"]
        for fields in ({"pageId": page}, {"pageId": "none"}, {"projectId": "none"}):
            answer = view_page(**fields)
            assert (answer.status, answer.data["code"]) == (404, "not_found")
        assert view_page(projectId=3).status == 400
        call_operator("suspend_site", id=things.site)
        assert view_page().status == 404

    def test_no_data_of_the_visitor_is_stored_or_audited(
        self, owner: Owner, things: Things, view_page: Any
    ) -> None:
        entry_count = len(audit.latest(owner.workspace.id))
        assert view_page(ip="203.0.113.77", referrer="https://a.example/confidential").status == 200
        assert len(audit.latest(owner.workspace.id)) == entry_count
        rows = repr(all_rows())
        assert "203.0.113.77" not in rows
        assert "confidential" not in rows

    def test_a_visitor_counts_once_per_day_of_the_site(
        self, new_owner: Callable[..., Owner], time: Time
    ) -> None:
        """In Los Angeles it is still the fourteenth when the fifteenth begins in UTC."""
        owner = new_owner(timezone="America/Los_Angeles")
        api = owner.api()
        site = api.post("/api/projects/create", {"title": "S"})["project"]["id"]
        page = api.post("/api/pages/create", {"projectId": site, "title": "P"})["page"]["id"]
        body = json.dumps({"projectId": site, "pageId": page}).encode()
        headers = {"Content-Type": "text/plain", "User-Agent": BROWSER}
        time.now = datetime(2027, 1, 14, 23, 0, tzinfo=UTC)
        for _ in range(3):
            assert Api(None).call("POST", "/api/public/hit", body, headers).status == 200
            time.pass_by(hours=4)
        report = stats(api, site, **{"from": "2027-01-14", "to": "2027-01-15"})
        assert [(s["views"], s["visitors"]) for s in report["series"]] == [(3, 1), (0, 0)]
        time.pass_by(hours=3)
        Api(None).call("POST", "/api/public/hit", body, headers)
        assert stats(api, site)["totals"]["visitors"] == 2

    @pytest.mark.store
    @pytest.mark.slow
    def test_two_hundred_concurrent_views_are_counted_exactly(
        self, api: Api, things: Things, view_page: Any
    ) -> None:
        def view(number: int) -> int:
            answer: Answer = view_page(
                ip=f"198.51.100.{number % 40}", referrer=f"https://r{number % 4}.example/"
            )
            return answer.status

        statuses = [s for _ in range(5) for s in run_concurrently(40, view)]
        assert Counter(statuses) == {200: 200}
        report = stats(api, things.site)
        assert report["totals"] | {"leads": 0} == {
            "views": 200,
            "visitors": 40,
            "leads": 0,
            "bookings": 0,
        }
        assert [r["views"] for r in report["referrers"]] == [50] * 4
        assert [p["views"] for p in report["topPages"]] == [200]

    def test_views_of_one_visitor_are_rate_limited(
        self,
        view_page: Any,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
        time: Time,
    ) -> None:
        monkeypatch.setenv("RATE_LIMIT_SCALE", "0.05")
        reload_settings()
        assert [view_page().status for _ in range(4)] == [200, 200, 200, 429]
        assert view_page(ip="192.0.2.9").status == 200


class Visit(NamedTuple):
    """A generated visit: the day, the visitor, the page and the referrer."""

    day: int
    page: int
    visitor: int
    referrer: str | None


FIRST = date(2027, 1, 20)
VISITS = st.lists(
    st.builds(
        Visit,
        st.integers(0, 40),
        st.integers(0, 3),
        st.integers(0, 4),
        st.sampled_from([None, "a.example", "b.example", "c.example"]),
    ),
    max_size=25,
)


def begins(day: date, granularity: str, first: date) -> date:
    """Return the first day of a period, counted day by day."""
    while day > first and not (
        granularity == "day"
        or (granularity == "week" and day.isoweekday() == 1)
        or (granularity == "month" and day.day == 1)
    ):
        day -= timedelta(days=1)
    return day


@examples(20)
@given(
    visits=VISITS,
    leads=st.lists(st.integers(0, 40), max_size=3),
    start=st.integers(-3, 20),
    length=st.integers(1, 50),
    granularity=st.sampled_from(["day", "week", "month"]),
)
def test_statistics_equal_a_naive_recount(
    visits: list[Visit],
    leads: list[int],
    start: int,
    length: int,
    granularity: str,
    make_site: Callable[[], tuple[Api, str, str, list[str], str]],
) -> None:
    api, workspace, site, pages, form = make_site()
    for visit in visits:
        site_visits.count(
            workspace,
            site_id=site,
            day=FIRST + timedelta(days=visit.day),
            page_id=pages[visit.page],
            referrer=visit.referrer,
            visitor=f"v{visit.visitor}",
        )
    for day in leads:
        noon = datetime(2027, 1, 20, 9, tzinfo=UTC) + timedelta(days=day)
        with clock.using(lambda noon=noon: noon):
            submit(form, name="Ada", email=f"{new_id()}@example.com")
    first = FIRST + timedelta(days=start)
    last = first + timedelta(days=length - 1)
    query = {"from": f"{first}", "to": f"{last}", "granularity": granularity}
    report = stats(api, site, **query)

    inside = [v for v in visits if first <= FIRST + timedelta(days=v.day) <= last]
    assert report["totals"] == {
        "views": len(inside),
        "visitors": len({(v.day, v.visitor) for v in inside}),
        "leads": len([d for d in leads if first <= FIRST + timedelta(days=d) <= last]),
        "bookings": 0,
    }
    spans: defaultdict[date, list[Visit]] = defaultdict(list)
    for number in range(length):
        day = first + timedelta(days=number)
        spans[begins(day, granularity, first)] += [
            v for v in inside if FIRST + timedelta(days=v.day) == day
        ]
    assert report["series"] == [
        {
            "date": f"{begin}",
            "views": len(of),
            "visitors": len({(v.day, v.visitor) for v in of}),
        }
        for begin, of in sorted(spans.items())
    ]
    by_page = Counter(pages[v.page] for v in inside)
    assert {p["pageId"]: p["views"] for p in report["topPages"]} == by_page
    by_host = Counter(v.referrer for v in inside if v.referrer)
    assert {r["host"]: r["views"] for r in report["referrers"]} == by_host
    ranked = [p["views"] for p in report["topPages"]]
    assert ranked == sorted(ranked, reverse=True)


@pytest.fixture
def make_site(api: Api, owner: Owner) -> Callable[[], tuple[Api, str, str, list[str], str]]:
    """Return a function that creates a site with four pages and a form, for each example."""

    def make() -> tuple[Api, str, str, list[str], str]:
        metrics.clear_value_cache()
        site = api.post("/api/projects/create", {"title": "S"})["project"]["id"]
        pages = [
            api.post("/api/pages/create", {"projectId": site, "title": f"P{n}"})["page"]["id"]
            for n in range(4)
        ]
        fields = [{"name": "name", "label": "N"}, {"name": "email", "label": "E", "type": "email"}]
        form = api.post("/api/forms/create", {"title": "F", "fields": fields, "projectId": site})
        return api, owner.workspace.id, site, pages, form["form"]["id"]

    return make


class TestReport:
    def test_bookings_of_the_sites_services_are_joined(
        self, api: Api, things: Things, time: Time
    ) -> None:
        body = {"name": "Class", "durationMin": 60, "siteId": things.site}
        service = api.post("/api/services/create", body)["service"]["id"]
        api.post("/api/resources/create", {"name": "Ada", "serviceIds": [service]})
        for hour in (10, 12):
            order = {
                "serviceId": service,
                "startAt": f"2027-01-20T{hour}:00:00Z",
                "client": {"name": "Bob", "email": "bob@example.com"},
                "ignoreSchedule": True,
            }
            api.post("/api/bookings/create", order)
        report = stats(api, things.site)
        assert report["totals"]["bookings"] == 2

    def test_a_deleted_page_keeps_its_views(self, api: Api, things: Things, view_page: Any) -> None:
        view_page(page=things.page)
        api.post("/api/pages/delete", {"id": things.page, "confirm": True})
        (page,) = stats(api, things.site)["topPages"]
        assert page == {"pageId": things.page, "slug": None, "title": None, "views": 1}

    def test_at_most_twenty_pages_are_named(
        self, api: Api, owner: Owner, things: Things, time: Time
    ) -> None:
        for number in range(25):
            site_visits.count(
                owner.workspace.id,
                site_id=things.site,
                day=date(2027, 1, 15),
                page_id=f"p{number:02}",
                referrer=f"h{number:02}.example",
                visitor="v",
            )
        report = stats(api, things.site)
        assert len(report["topPages"]) == len(report["referrers"]) == 20
        assert report["totals"]["views"] == 25

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"from": "2027-01-02", "to": "2027-01-01"}, "from"),
            ({"from": "2026-01-01", "to": "2027-01-02"}, "from"),
            ({"granularity": "year"}, "granularity"),
        ],
    )
    def test_an_invalid_period_is_refused(
        self, api: Api, things: Things, query: dict[str, str], field: str
    ) -> None:
        text = "".join(f"&{name}={value}" for name, value in query.items())
        answer = api.call_refused("GET", f"/api/projects/stats?id={things.site}{text}")
        assert [error["field"] for error in answer.data["errors"]] == [field]
