"""The steps of the booking page, up to the form for contacts. Each is a GET."""

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.core.ids import new_id
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from tests.conftest import Api, Owner, Time, all_rows, call_operator
from tests.factories.console import HOSTILE
from tests.factories.products import png
from tests.factories.salon import FRIDAYS, Salon
from tests.transports.public.booking_page.helpers import (
    FORM,
    NOON,
    RUSSIAN,
    BookingPage,
    links,
    text,
    visitor,
)


def rows_except_limits() -> dict[str, Any]:
    return {key: row for key, row in all_rows().items() if not re.search("/(LIMIT|SALT)#", key)}


def test_the_page_lists_the_offered_services_with_length_and_price(page: BookingPage) -> None:
    page.salon.api.post("/api/services/create", {"name": "Secret", "durationMin": 60})
    answer = page.get(page.home)
    assert answer.status == 200
    assert "Haircut" in text(answer)
    assert "1 h" in text(answer)
    assert "1,500" in text(answer)
    assert "Secret" not in text(answer)
    assert page.path in links(answer)


def test_the_page_shows_the_photos_logo_and_hours_and_describes_itself_to_messengers(
    page: BookingPage,
) -> None:
    api, workspace = page.salon.api, page.owner.workspace
    picture = {"name": "cut.png", "content": base64.b64encode(png()).decode()}
    file = api.post("/api/files/upload", picture)["file"]
    api.post("/api/services/update", {"id": page.salon.service, "images": [{"fileId": file["id"]}]})
    api.post("/api/resources/update", {"id": page.salon.resource, "photo": {"fileId": file["id"]}})
    workspaces.get(workspace.id).update(
        [WorkspaceRow.logo_url.set("https://salon.example/logo.png")]
    )
    page.set(isIndexed=True)
    html = text(page.get(page.home))
    assert f'<img class="photo" src="{file["url"]}"' in html
    assert '<img class="logo" src="https://salon.example/logo.png"' in html
    assert 'Mon–Sun <span class="whole">09:00–18:00</span>' in html
    assert f'<meta property="og:image" content="{file["url"]}">' in html
    assert f'<meta property="og:title" content="Book online · {workspace.name}">' in html
    assert f'<img class="cover" src="{file["url"]}"' in text(page.get())


def test_readers_report_the_page_to_the_operator(
    page: BookingPage, reload_settings: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (page.home, page.path):
        assert "Report this page" not in text(page.get(path))
    monkeypatch.setenv("SUPPORT_URL", "https://help.example/report")
    reload_settings()
    report = '<a href="https://help.example/report" rel="nofollow">Report this page</a>'
    for path in (page.home, page.path):
        assert report in text(page.get(path))


def test_weeks_that_have_passed_are_left_out(page: BookingPage, time: Time) -> None:
    time.now = datetime(2027, 3, 17, 6, tzinfo=UTC)
    html = text(page.get())
    assert not re.search(r">(1|14)<span class=.unseen", html)
    assert re.search(r">15<span class=.unseen", html)


def test_a_service_shows_the_days_of_the_month_and_the_times_of_the_first_free_day(
    page: BookingPage,
) -> None:
    answer = page.get()
    page_text = text(answer)
    assert "March 2027" in page_text
    assert "Monday, 1 March" in page_text
    assert "Europe/Moscow, UTC+3" in page_text
    assert links(answer, day="2027-03-05")
    assert "10:00" in page_text
    assert 'aria-current="date"' in page_text
    assert not links(answer, month="2027-02")
    assert links(answer, month="2027-04")


def test_a_day_without_free_times_is_shown_as_such_and_offers_the_next_free_one(
    api: Api, owner: Owner
) -> None:
    rules = [{"weekdays": ["mon", "fri"], "start": "09:00", "end": "12:00"}]
    page = BookingPage.opened(owner, Salon.opened(api, rules=rules))
    answer = page.get(day="2027-03-03")
    assert "No free times on this day." in text(answer)
    assert "Next free day: Friday, 5 March" in text(answer)
    assert not links(answer, day="2027-03-04")
    (first, *_) = links(answer, day="2027-03-05")
    assert "Friday, 5 March" in text(visitor.call("GET", first.removesuffix("#day")))


def test_a_month_without_free_times_offers_the_next_free_day(api: Api, owner: Owner) -> None:
    salon = Salon.opened(api, rules=[{"date": "2027-04-20", "start": "09:00", "end": "12:00"}])
    page = BookingPage.opened(owner, salon)
    assert "Tuesday, 20 April" in text(page.get())
    assert "Next free day: Tuesday, 20 April" in text(page.get(month="2027-03"))


def test_a_service_without_any_free_time_says_so(api: Api, owner: Owner) -> None:
    page = BookingPage.opened(owner, Salon.opened(api, resources=[]))
    answer = page.get()
    assert answer.status == 200
    assert "No free times in this month." in text(answer)


@pytest.mark.parametrize(
    "query",
    [
        {"month": "0000-01"},
        {"month": "9999-12"},
        {"month": "x"},
        {"day": "2027-02-30"},
        {"day": "1999-01-01"},
        {"day": "2999-12-31"},
        {"day": HOSTILE},
        {"staff": HOSTILE},
        {"at": "x"},
        {"at": "2027-02-30T10:00:00Z"},
        {"at": "0001-01-01T00:00:00+14:00"},
        {"at": "2027-02-01T10:00:00Z"},
        {"at": "2027-03-03T10:00:00"},
    ],
)
def test_a_step_with_odd_choices_shows_the_calendar(
    query: dict[str, str], page: BookingPage
) -> None:
    answer = page.get(**query)
    assert answer.status == 200
    assert "March 2027" in text(answer) or "April 2027" in text(answer)
    assert b"<img" not in answer.body


def test_a_service_of_several_people_first_asks_with_whom(api: Api, owner: Owner) -> None:
    salon = Salon.opened(api, resources=[{"name": "Anna"}, {"name": "Boris"}])
    page = BookingPage.opened(owner, salon)
    answer = page.get()
    assert "With whom?" in text(answer)
    assert links(answer, staff="any")
    (anna,) = links(answer, staff=salon.resources[0])
    times = visitor.call("GET", anna)
    assert "Anna" in text(times)
    assert "Boris" not in text(times)
    (slot, *_) = links(times, at="2027-03")
    assert f"staff={salon.resources[0]}" in slot
    form = visitor.call("GET", slot)
    assert "Anna" in text(form)
    assert 'name="name"' in text(form)


def test_times_of_staff_in_another_zone_are_shown_in_their_zone(api: Api, owner: Owner) -> None:
    salon = Salon.opened(api, resources=[{"timezone": "Asia/Vladivostok"}])
    page = BookingPage.opened(owner, salon)
    assert "Asia/Vladivostok, UTC+10" in text(page.get())
    form = page.get(at="2027-03-03T02:00:00Z")
    assert 'Wednesday, 3 March 2027, <span class="whole">12:00\u201313:00</span>' in text(form)


def test_a_time_that_clocks_repeat_is_shown_with_both_offsets(
    api: Api, owner: Owner, time: Time
) -> None:
    time.now = time.now.replace(year=2027, month=11, day=1)
    zone = {"timezone": "America/New_York"}
    salon = Salon.opened(
        api, resources=[zone], rules=[{"date": "2027-11-07", "start": "00:00", "end": "03:00"}]
    )
    page = BookingPage.opened(owner, salon)
    page_text = text(page.get(day="2027-11-07"))
    assert "01:00 UTC\u22124" in page_text
    assert "01:00 UTC\u22125" in page_text


def test_the_page_is_in_the_visitors_language(page: BookingPage) -> None:
    page_text = text(page.get(headers=RUSSIAN))
    assert "март 2027" in page_text
    assert 'lang="ru"' in page_text
    assert "понедельник, 1 марта" in page_text


class TestAccess:
    def test_a_page_that_is_off_is_not_found_like_an_unknown_one(self, page: BookingPage) -> None:
        page.set(isOn=False)

        def answer_of(path: str) -> Any:
            answer = visitor.call("GET", path)
            return answer.status, re.sub(rb"[0-9a-f-]{36}", b"", answer.body)

        unknown = answer_of("/book/nobody")
        assert unknown[0] == 404
        assert answer_of(page.home) == answer_of(page.path) == unknown
        assert page.send().status == 404

    def test_a_workspace_that_never_set_up_its_page_has_none(
        self, owner: Owner, salon: Salon
    ) -> None:
        assert BookingPage(owner, salon).get().status == 404

    def test_services_that_are_not_offered_are_not_found(
        self, page: BookingPage, new_owner: Any
    ) -> None:
        mine = page.salon.api.post("/api/services/create", {"name": "Other", "durationMin": 60})
        other = Salon.opened(new_owner().api())
        for service in (mine["service"]["id"], other.service, new_id(), "x", "%00", "я" * 300):
            path = f"{page.home}/{service}"
            assert visitor.call("GET", path).status == 404
            response = visitor.call("POST", path, b"name=A", FORM)
            assert response.status == 404

    @pytest.mark.parametrize("change", ["inactive", "deleted", "withdrawn"])
    def test_a_service_that_takes_no_bookings_any_more_is_not_found(
        self, change: str, page: BookingPage
    ) -> None:
        api, service = page.salon.api, page.salon.service
        if change == "inactive":
            api.post("/api/services/update", {"id": service, "status": "inactive"})
        elif change == "deleted":
            api.post("/api/services/delete", {"id": service})
        else:
            page.set(withdraw=[service])
        assert page.get().status == 404
        assert "Online booking is not available" in text(page.get(page.home))

    def test_services_of_a_suspended_site_are_not_offered(self, api: Api, owner: Owner) -> None:
        site = api.post("/api/projects/create", {"title": "Site"})["project"]["id"]
        page = BookingPage.opened(owner, Salon.opened(api, siteId=site))
        assert page.get().status == 200
        call_operator("suspend_site", id=site)
        assert page.get().status == 404
        assert page.send().status == 404

    @pytest.mark.parametrize("slug", ["x" * 3000, "%00", "%20", "..", "%2F", "А"])
    def test_odd_slugs_are_not_found(self, slug: str, page: BookingPage) -> None:
        assert visitor.call("GET", f"/book/{slug}").status == 404


class TestHeaders:
    def test_no_step_reads_or_sets_a_cookie(self, page: BookingPage) -> None:
        answers = [
            page.get(page.home),
            page.get(),
            page.get(at=NOON),
            page.get(page.home + "x"),
            page.send(name=""),
            page.send(),
            page.send(),
        ]
        assert {answer.status for answer in answers} == {200, 400, 404, 409}
        for answer in answers:
            assert "Set-Cookie" not in answer.headers
            assert "Cookie" not in answer.headers.get("Vary", "")

    def test_any_site_may_frame_the_page_but_only_its_own_parts_load(
        self, page: BookingPage
    ) -> None:
        for answer in (page.get(page.home), page.get(), page.get(page.home + "x"), page.send()):
            policy = answer.headers["Content-Security-Policy"]
            assert "frame-ancestors" not in policy
            assert "default-src 'none'" in policy
            assert "form-action 'self'" in policy
            assert "unsafe" not in policy
            assert "X-Frame-Options" not in answer.headers

    def test_search_engines_list_the_page_only_if_its_second_switch_is_on(
        self, page: BookingPage
    ) -> None:
        for path in (page.home, page.path):
            assert page.get(path).headers["X-Robots-Tag"] == "noindex"
            assert 'content="noindex"' in text(page.get(path))
        page.set(isIndexed=True)
        for path in (page.home, page.path):
            assert "X-Robots-Tag" not in page.get(path).headers
            assert "noindex" not in text(page.get(path))
            html = text(page.get(path))
            assert re.search(rf'rel="canonical" href="[^"]+{path}"', html)
            assert re.search('<meta name="description" content="[^"]*Haircut[^"]*">', html)
        for step in (page.get(day="2027-03-05"), page.get(at=NOON), page.get(page.home + "x")):
            assert step.headers["X-Robots-Tag"] == "noindex"

    def test_steps_change_nothing(self, page: BookingPage) -> None:
        rows_before = rows_except_limits()
        for query in ({}, {"day": "2027-03-05"}, {"at": NOON}, {"at": NOON, "name": "Ada"}):
            for method in ("GET", "HEAD"):
                url = f"{page.path}?" + "&".join(f"{k}={v}" for k, v in query.items())
                assert visitor.call(method, url).status == 200
        assert rows_except_limits() == rows_before

    def test_other_methods_are_refused(self, page: BookingPage) -> None:
        assert visitor.call_refused("POST", page.home).headers["Allow"] == "GET, HEAD"
        assert visitor.call_refused("DELETE", page.path).headers["Allow"] == "GET, HEAD, POST"
        assert visitor.call("OPTIONS", page.path).status == 204


def test_hostile_names_are_shown_as_text(api: Api, owner: Owner) -> None:
    name = HOSTILE + "W" * 100
    salon = Salon.opened(
        api,
        resources=[{"name": HOSTILE}, {"name": HOSTILE}],
        name=name,
        description=HOSTILE,
    )
    page = BookingPage.opened(owner, salon, phone=HOSTILE[:50])
    call_operator("set_workspace", workspaceId=owner.workspace.id, name=HOSTILE)
    answers = [
        page.get(page.home),
        page.get(),
        page.get(staff="any"),
        page.get(staff="any", at=NOON),
        page.send(name=HOSTILE, phone=HOSTILE, email="", notes=HOSTILE),
        page.send(name=HOSTILE, notes=HOSTILE, staff="any"),
    ]
    for answer in answers:
        assert b"<img" not in answer.body
        assert b"<script>" not in answer.body
        assert b"537289" not in answer.body  # the product of what HOSTILE multiplies
    assert [answer.status for answer in answers] == [200, 200, 200, 200, 400, 200]


def test_a_service_that_requires_payment_shows_the_phone_instead_of_times(
    api: Api, owner: Owner
) -> None:
    page = BookingPage.opened(owner, Salon.opened(api, requirePayment=True), phone="+7 495 1")
    for answer in (page.get(), page.get(at=NOON), page.get(day="2027-03-05")):
        assert "please call" in text(answer)
        assert 'href="tel:+74951"' in text(answer)
        assert not links(answer, at="2027")
        assert "<form" not in text(answer)
    assert page.send().status == 409
    assert page.bookings == []
    page.set(phone=None)
    assert "contact us directly" in text(page.get())


def test_every_step_weighs_at_most_sixty_kilobytes_with_its_style_and_script(
    api: Api, owner: Owner
) -> None:
    day = [
        {
            "weekdays": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
            "start": "00:00",
            "end": "24:00",
        }
    ]
    salon = Salon.opened(
        api,
        resources=[{"name": f"Anna {'W' * 180}"}] * 3,
        rules=day,
        slotStepMin=15,
        description="Описание " * 500,
    )
    page = BookingPage.opened(owner, salon)
    for answer in (
        page.get(page.home),
        page.get(),
        page.get(staff="any"),
        page.get(staff="any", at=NOON),
    ):
        parts = re.findall(r'(?:href|src)="(/assets/[^"]+)"', text(answer))
        assert len(parts) == 3
        assert len(answer.body) + sum(len(visitor.call("GET", p).body) for p in parts) <= 60_000


def test_a_chosen_day_says_how_many_times_it_has_and_leads_past_the_days_without(
    page: BookingPage,
) -> None:
    page.salon.set_hours(page.salon.api, page.salon.resource, FRIDAYS)
    html = text(page.get(day="2027-03-05"))
    assert re.search(r'role="status" id="count">\d+ free times?<', html)
    assert "Next free day: Friday, 12 March" in html
    assert "Next free day: Friday, 2 April" in text(page.get(day="2027-03-26"))


def weeks_of(page_text: str) -> list[list[int]]:
    """Return the numbers of the days of the weeks that a calendar shows."""
    rows = re.findall(r"<tr( class=[^>]*)?>(.*?)</tr>", page_text, re.DOTALL)[1:]
    return [[int(day) for day in re.findall(r">(\d+)<", row)] for _, row in rows]


def test_weeks_without_free_times_take_no_room(api: Api, owner: Owner) -> None:
    rules = [
        {"date": day, "start": "09:00", "end": "12:00"} for day in ("2027-03-03", "2027-03-25")
    ]
    page = BookingPage.opened(owner, Salon.opened(api, rules=rules))
    html = text(page.get())
    assert weeks_of(html) == [[1, 2, 3, 4, 5, 6, 7], [22, 23, 24, 25, 26, 27, 28]]
    assert '<tr class="gap">' in html, "the weeks between them are left out visibly"
    assert "<table>" not in text(page.get(month="2027-04")), "a month of nothing has no calendar"


def test_the_last_week_of_a_month_goes_on_with_free_days_of_the_next(
    page: BookingPage, time: Time
) -> None:
    time.now = datetime(2027, 5, 31, 6, tzinfo=UTC)
    answer = page.get()
    assert weeks_of(text(answer)) == [[31, 1, 2, 3, 4, 5, 6]]
    (friday,) = links(answer, day="2027-06-04")
    assert "June 2027" in text(visitor.call("GET", friday.removesuffix("#day")))
    ahead = re.search(r'<a class="onward ahead" href="([^"]+)"[^>]*>June 2027', text(answer))
    assert ahead, "the next month is one tap away"
    assert "month=2027-06" in ahead[1]
    whole = text(page.get(month="2027-06"))
    assert "onward ahead" not in whole
    assert len(weeks_of(whole)) == 5


def test_narrow_screens_show_the_week_of_the_chosen_day_and_another_one(page: BookingPage) -> None:
    def near(**query: str) -> list[int]:
        rows = re.findall(r"<tr( class=[^>]*)?>(.*?)</tr>", text(page.get(**query)), re.DOTALL)[1:]
        return [n for n, (classes, _) in enumerate(rows) if "far" not in classes]

    assert near() == [0, 1]
    assert near(day="2027-03-17") == [2, 3]
    assert near(day="2027-03-31") == [3, 4]
