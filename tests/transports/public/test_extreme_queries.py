"""Public pages with extreme values in each parameter of their queries."""

import re
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from chalicelib.transports import routes, web
from tests.conftest import Api, Owner, Time, call_console
from tests.factories.examples import Things
from tests.factories.payments import take_payments
from tests.factories.salon import Salon
from tests.fuzz.pages import EXTREMES, PAGES, REQUIRED, STEPS
from tests.support.registers import check_register
from tests.support.restoring import Snapshots

visitor = Api(None)
BROWSER = {"Accept": "text/html"}
WITHOUT_QUERY = {
    *(
        "/robots.txt",
        "/llms.txt",
        "/sitemap.xml",
        "/blog/{slug}",
        "/assets/{name}",
    ),
    "/api/docs/{section}",
    *("/unsubscribe/{token}", "/unsubscribe/advertising/{token}", "/b/{code}"),
    *("/booking/confirm/{token}", "/booking/waiting/{token}", "/api/public/bookings/{file}"),
    *("/pay/test/{id}", "/api/public/calendars/{file}"),
}
"""Pages and reads of visitors whose queries are not read."""


@pytest.fixture
def places(
    api: Api, owner: Owner, things: Things, time: Time, snapshots: Snapshots
) -> dict[str, str]:
    """The values of the paths of the pages, with a booking that has to be paid."""

    def make() -> dict[str, str]:
        salon = Salon.opened(api, [{"capacity": 2}, {"capacity": 2}], requirePayment=True)
        take_payments(owner.workspace.id)
        page = {"isOn": True, "offer": [salon.service]}
        call_console(owner.workspace.id, "set_booking_page", **page)
        body = salon.order("2027-03-03T12:00:00Z")
        made = visitor.post("/api/public/bookings", body)
        api.post("/api/pages/save-html", {"id": things.home, "html": "<h1>Bakery</h1>"})
        api.post("/api/projects/update", {"id": things.site, "showsProducts": True})
        site = next(
            each for each in api.get("/api/projects/list")["projects"] if each["id"] == things.site
        )
        return {
            "workspace": owner.workspace.slug,
            "service": salon.service,
            "manage": made["manageUrl"].rpartition("/")[2],
            "pay": made["paymentUrl"].rpartition("/")[2],
            "site": site["slug"],
            "page": api.get(f"/api/pages/{things.page}")["page"]["slug"],
            "products": "products",
            "feed": "feed.xml",
            "form": things.form,
            "agent": things.agent,
            "id": things.agent,  # of no payment in a test workspace
        }

    time.now = datetime(2027, 3, 1, 6, tzinfo=UTC)
    made: dict[str, str] = snapshots.once("places of public pages", make)
    return made


@pytest.mark.parametrize("path", PAGES)
def test_no_value_of_a_query_breaks_a_public_page(path: str, places: dict[str, str]) -> None:
    place = quote(path.format(**places))
    required = {name: places[name] for name in REQUIRED.get(path, ())}
    assert visitor.call("GET", f"{place}?{urlencode(required)}", headers=BROWSER).status < 400
    rests = [{}, STEPS[path]] if path in STEPS else [{}]
    for name in PAGES[path]:
        for value in (*EXTREMES, "\udcff"):  # the last one is no UTF-8
            for rest in rests:
                query = urlencode({**required, **rest, name: value}, errors="surrogateescape")
                answer = visitor.call("GET", f"{place}?{query}", headers=BROWSER)
                assert answer.status < 500, query


@pytest.mark.parametrize("name", ["from", "to"])
@pytest.mark.parametrize("value", ["9999-12-31T23:59:59-23:59", "0001-01-01", "9999-12-31"])
def test_a_year_out_of_bounds_is_400_with_what_is_expected(
    name: str, value: str, places: dict[str, str]
) -> None:
    path = f"/api/public/services/{places['service']}/slots"
    refusal = visitor.call_refused("GET", f"{path}?{urlencode({name: value})}")
    (error,) = refusal.data["errors"]
    assert (refusal.status, error["field"], error["key"]) == (400, name, "year")


def test_every_public_page_and_parameter_is_tried() -> None:
    reads = {
        operation.path
        for operation in REGISTRY.select(Audience.PUBLIC)
        if operation.method == "GET"
    }
    paths = {*routes.PAGES, *routes.FORM_PAGES, *routes.BOOKING_PAGES, *reads}

    def shape(path: str) -> str:
        return re.sub(r"{\w+}", "{}", path)

    check_register(
        {shape(path) for path in {*PAGES, *WITHOUT_QUERY}},
        declared={shape(path) for path in paths},
        place="PAGES of tests/fuzz/pages.py (WITHOUT_QUERY here, if it reads no query)",
        line="the path with the names of its query parameters",
    )
    sources = [path.read_text() for path in Path(web.__file__).parent.glob("*.py")]
    read = {
        name for source in sources for name in re.findall(r'query_value\([\w.]+, "(\w+)"\)', source)
    }
    untried = read - {name for names in PAGES.values() for name in names}
    assert untried == set(), "add these parameters to their paths in PAGES of tests/fuzz/pages.py"


@pytest.mark.parametrize("path", sorted({*routes.FORM_PAGES, *routes.BOOKING_PAGES}))
@pytest.mark.parametrize("body", [b"", b"{}", b"a=b"])
def test_a_form_without_a_content_type_is_refused(
    path: str, body: bytes, places: dict[str, str]
) -> None:
    place = path.format(**{"token": places["manage"], **places})
    status = visitor.call("POST", place, body, BROWSER).status
    # The form that pays has no fields, so it may be empty.
    assert 400 <= status < 500 or (path, status) == ("/pay/{token}", 303)
