"""Visitors join a waiting list on the booking page, and see an offer by the link of an e-mail."""

import re
from urllib.parse import urlencode

import pytest

from chalicelib.domains.leads.flows import form_html
from tests.conftest import Answer, Api, Owner, Time
from tests.domains.waiting.helpers import Line, run
from tests.factories.salon import Salon
from tests.transports.public.booking_page.helpers import FORM, BookingPage, links, text, visitor

pytestmark = pytest.mark.usefixtures("database")
DAY = "2027-03-03"
ENGLISH = {"Accept-Language": "en"}
ZOE = {"name": "Zoe", "email": "zoe@example.com", "phone": ""}


@pytest.fixture
def line(api: Api, time: Time) -> Line:
    return Line.of_full_day(api, DAY)


@pytest.fixture
def page(owner: Owner, line: Line) -> BookingPage:
    return BookingPage.opened(owner, line.salon)


def join(page: BookingPage, day: str = DAY, **fields: str) -> Answer:
    form = {"wait": "1", "staff": "", "once": "", "day": day, **ZOE, **fields}
    return visitor.call("POST", page.path, urlencode(form).encode(), FORM | ENGLISH)


def own_path(answer: Answer) -> str:
    path = re.search(r"/booking/waiting/[\w.=-]+", answer.body.decode())
    assert path, answer.body.decode()
    return path[0]


def test_the_day_without_times_leads_to_the_waiting_list(page: BookingPage) -> None:
    times = page.get(headers=ENGLISH, day=DAY)
    (link,) = links(times, step="wait")
    form = text(page.get(link, headers=ENGLISH))
    assert f'type="date" value="{DAY}"' in form
    assert "A time is not held for anybody." in form


def test_a_visitor_joins_sees_the_offer_and_books_or_leaves(
    page: BookingPage, line: Line, time: Time
) -> None:
    joined = join(page)
    assert "You are on the waiting list" in text(joined)
    path = own_path(joined)
    assert "You are on the waiting list" in text(visitor.call("GET", path, headers=ENGLISH))
    run(time)
    line.cancel()
    run(time)
    offered = visitor.call("GET", path, headers=ENGLISH)
    assert "It is not held for you: anybody may book it." in text(offered)
    (link,) = links(offered, day=DAY)
    assert "10:00" in text(page.get(link))
    line.book("Somebody")
    taken = text(visitor.call("GET", path, headers=ENGLISH))
    assert "No time is free any more" in taken
    assert "You keep your place in the line" in taken
    left = visitor.call("POST", path, b"", FORM | ENGLISH)
    assert "You have left the waiting list" in text(left)
    assert line.names == []
    assert "You are not on the waiting list" in text(visitor.call("GET", path, headers=ENGLISH))


def test_a_day_with_free_times_is_refused_with_a_link_to_them(
    page: BookingPage, line: Line
) -> None:
    line.cancel()
    refused = join(page)
    assert refused.status == 409
    assert "This day has free times." in text(refused)
    assert links(refused, day=DAY)
    assert 'value="Zoe"' in text(refused)


def test_wrong_values_are_named_and_kept(page: BookingPage) -> None:
    refused = join(page, day="", email="zoe")
    assert refused.status == 400
    shown = text(refused)
    assert "Choose a day." in shown
    assert "Enter an e-mail address" in shown


def test_a_robot_joins_nothing(page: BookingPage, line: Line) -> None:
    assert join(page, **{form_html.HONEYPOT: "x"}).status == 200
    assert line.names == []


def test_a_forged_link_is_not_found(page: BookingPage) -> None:
    path = own_path(join(page))
    assert visitor.call("GET", f"{path[:-3]}aaa").status == 404


def test_a_visit_of_several_services_has_no_line(owner: Owner, api: Api, time: Time) -> None:
    salon = Salon.opened(api)
    colour = {"name": "Colour", "durationMin": 30, "price": 1, "resourceIds": salon.resources}
    other = api.post("/api/services/create", colour)
    page = BookingPage(owner, salon)
    page.set(isOn=True, offer=[salon.service, other["service"]["id"]])
    assert links(page.get(), step="wait")
    assert not links(page.get(then=other["service"]["id"]), step="wait")
