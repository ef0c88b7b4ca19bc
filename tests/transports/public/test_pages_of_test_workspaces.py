"""Public pages of a test workspace say that it is a test, and search engines do not list them."""

from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from tests.conftest import Answer, Api, Owner, Time, call_console
from tests.factories.salon import Salon
from tests.transports.public.booking_page.helpers import BookingPage

BAND = "Nothing here is real"
NOINDEX = '<meta name="robots" content="noindex">'
START = "2027-03-03T12:00:00Z"
visitor = Api(None)


@pytest.fixture
def page(tester: Owner, time: Time) -> BookingPage:
    time.now = datetime(2027, 3, 1, 6, tzinfo=UTC)
    return BookingPage.opened(tester, Salon.opened(tester.api()), isIndexed=True)


def opened(url: str) -> Answer:
    answer = visitor.call("GET", urlsplit(url).path, headers={"Accept-Language": "en"})
    assert (answer.status, answer.headers["X-Robots-Tag"]) == (200, "noindex")
    assert NOINDEX in answer.body.decode()
    return answer


def test_a_booking_page_that_may_be_listed_is_not(page: BookingPage) -> None:
    for path in (page.home, page.path):
        assert BAND in opened(path).body.decode()


def test_the_page_of_a_clients_booking_has_the_band(page: BookingPage) -> None:
    order = page.salon.order(START)
    manage_url = page.owner.api().post("/api/bookings/create", order)["manageUrl"]
    assert BAND in opened(manage_url).body.decode()


def test_the_page_of_a_form_has_the_band(tester: Owner) -> None:
    phone = {"name": "phone", "label": "Phone", "type": "phone", "required": True}
    form = {"title": "Call me", "fields": [phone]}
    url = call_console(tester.workspace.id, "create_form", **form)["form"]["pageUrl"]
    assert "reaches nobody" in opened(url).body.decode()


def test_a_page_of_a_site_has_the_band_and_its_own_html(tester: Owner) -> None:
    api = tester.api()
    site = api.post("/api/projects/create", {"title": "Bakery", "slug": "oven"})["project"]
    home = api.post("/api/pages/create", {"projectId": site["id"], "title": "Home"})["page"]
    html = "<!doctype html><html><head></head><body><h1>Bread</h1></body></html>"
    api.post("/api/pages/save-html", {"id": home["id"], "html": html})
    shown = opened("/s/oven/").body.decode()
    assert "<h1>Bread</h1>" in shown
    assert ">Test</div>" in shown
