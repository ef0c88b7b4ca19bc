"""Pages of any origin read the business, its services and its products without a key."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.domains.booking_page.operations import public_reading
from chalicelib.domains.booking_page.rules import advertising_texts
from chalicelib.lib.localized import LANGUAGES
from tests.conftest import Answer, Api, Owner, Time, call_console, call_operator
from tests.factories.payments import set_merchant
from tests.factories.salon import Salon
from tests.transports.public.conftest import is_readable_from_any_origin

visitor = Api(None)
NOUNS = ("business", "services", "products")
SECRETS = ("SECRET-SKU", "SECRET-ID", "SECRET-VALUE", "4006381333931", "Hidden", "Draft")
OWN = {"externalId": "SECRET-ID", "metadata": {"key": "SECRET-VALUE"}}
"""What a program keeps with a record."""


@pytest.fixture
def slug(owner: Owner) -> str:
    return str(owner.workspace.slug)


@pytest.fixture
def salon(api: Api) -> Salon:
    return Salon.opened(api, description="<p>With <b>wash</b></p>")


def call(noun: str, slug: str, headers: dict[str, str] | None = None, **query: Any) -> Answer:
    query_text = urlencode({"workspace": slug, **query})
    return visitor.call("GET", f"/api/public/{noun}?{query_text}", headers=headers)


def read(noun: str, slug: str, **query: Any) -> Any:
    answer = call(noun, slug, **query)
    assert answer.status == 200, answer.body
    return answer.data


def switch_page(owner: Owner, *, is_on: bool = True, **fields: Any) -> None:
    call_console(owner.workspace.id, "set_booking_page", isOn=is_on, **fields)


def open_site(api: Api) -> str:
    """Create a site with a home page, and return the site's id."""
    site = api.post("/api/projects/create", {"title": "Salon"})["project"]["id"]
    page = api.post("/api/pages/create", {"projectId": site, "title": "Home"})["page"]["id"]
    api.post("/api/pages/save-html", {"id": page, "html": "<h1>Salon</h1>"})
    return str(site)


def test_business_is_what_the_booking_page_shows(owner: Owner, salon: Salon, slug: str) -> None:
    details = {"address": "Arbat 1", "phone": "+7 495 123-45-67", "accent": "teal"}
    call_console(owner.workspace.id, "set_workspace", **details)
    switch_page(owner, offer=[salon.service], phone="+7 495 000-00-00")
    hours = [
        {"weekdays": ["mon", "tue", "wed"], "intervals": [{"start": "10:00", "end": "13:00"}]},
        {"weekday": "sat", "start": "22:00", "end": "02:00"},
    ]
    salon.set_hours(salon.api, salon.resource, hours)
    business = read("business", slug)["business"]
    assert business == {
        "name": owner.workspace.name,
        "phone": "+7 495 000-00-00",
        "address": "Arbat 1",
        "accent": "teal",
        "logoUrl": None,
        "timezone": "Europe/Moscow",
        "currency": "RUB",
        "languages": ["ru", "en"],
        "hours": [
            {"weekdays": ["mon", "tue", "wed"], "start": "10:00", "end": "13:00"},
            {"weekdays": ["sat"], "start": "22:00", "end": "02:00"},
        ],
        "bookingUrl": f"http://127.0.0.1:8000/book/{slug}",
        "advertisingTexts": [
            {"language": language, "text": text, "version": version}
            for language, text, version in (
                advertising_texts.text(language, owner.workspace.name) for language in LANGUAGES
            )
        ],
    }


def test_services_are_those_that_the_page_offers(
    owner: Owner, api: Api, salon: Salon, slug: str
) -> None:
    body = {"name": "Hidden", "durationMin": 30, "price": 100}
    api.post("/api/services/create", body)
    inactive = api.post("/api/services/create", body | {"status": "inactive"})["service"]["id"]
    deleted = api.post("/api/services/create", body)["service"]["id"]
    switch_page(owner, offer=[salon.service, inactive, deleted])
    api.post("/api/services/delete", {"id": deleted})
    page = read("services", slug)
    assert page["services"] == [
        {
            "id": salon.service,
            "name": "Haircut",
            "description": "With wash",
            "durationMin": 60,
            "price": 150_000,
            "priceFrom": None,
            "durationFromMin": None,
            "images": [],
            "bookingUrl": f"http://127.0.0.1:8000/book/{slug}/{salon.service}",
            "amountDue": 0,
            "refundUntilMin": None,
            "holdMinutes": None,
            "byPhone": False,
            "asksForAdvertising": False,
            "fixedStarts": False,
        }
    ]
    assert (page["currency"], page["timezone"], page["total"]) == ("RUB", "Europe/Moscow", 1)
    assert page["pagination"] == {"total": 1, "page": 1, "size": 20, "limit": 20}


def test_services_name_what_is_paid_in_advance(
    owner: Owner, api: Api, salon: Salon, slug: str
) -> None:
    switch_page(owner, offer=[salon.service])
    api.post("/api/services/update", {"id": salon.service, "requirePayment": True})
    assert read("services", slug)["services"][0]["byPhone"] is True
    set_merchant(owner.workspace.id)
    (service,) = read("services", slug)["services"]
    assert (service["amountDue"], service["holdMinutes"]) == (150_000, 30)


def test_products_show_no_stock_and_nothing_internal(owner: Owner, api: Api, slug: str) -> None:
    switch_page(owner)
    category = api.post("/api/categories/create", {"name": "Care"})["category"]["id"]
    body = {"name": "Shampoo", "price": 90_000, "categoryId": category, "stock": 7}
    shampoo = api.post(
        "/api/products/create",
        {**body, **OWN, "sku": "SECRET-SKU", "barcode": "4006381333931", "description": "a" * 700},
    )["product"]["id"]
    sold_out = api.post("/api/products/create", {"name": "Comb", "price": 100, "stock": 0})
    api.post("/api/products/create", {"name": "Hidden", "price": 1, "status": "inactive"})
    deleted = api.post("/api/products/create", {"name": "Draft", "price": 1})["product"]["id"]
    api.post("/api/products/delete", {"id": deleted})
    answer = call("products", slug)
    first, second = answer.data["products"]
    assert first == {
        "id": shampoo,
        "name": "Shampoo",
        "description": "a" * 599 + "…",
        "price": 90_000,
        "categoryId": category,
        "category": "Care",
        "images": [],
        "inStock": True,
        "url": None,
    }
    assert (second["id"], second["inStock"]) == (sold_out["product"]["id"], False)
    assert (answer.data["total"], answer.data["currency"]) == (2, "RUB")
    for secret in SECRETS:
        assert secret not in answer.body.decode()


def test_lists_have_pages(owner: Owner, api: Api, salon: Salon, slug: str) -> None:
    ids = [salon.service]
    for number in range(4):
        body = {"name": f"S{number}", "durationMin": 30, "price": 100}
        ids.append(api.post("/api/services/create", body)["service"]["id"])
        api.post("/api/products/create", {"name": f"P{number}", "price": 100})
    switch_page(owner, offer=ids)
    for noun, expected in (("services", 5), ("products", 4)):
        pages = [read(noun, slug, page=page, size=2) for page in (1, 2, 3, 9)]
        shown = [record["id"] for page in pages for record in page[noun]]
        assert len(shown) == len(set(shown)) == expected
        assert {page["pagination"]["total"] for page in pages} == {expected}
        assert pages[3][noun] == []
        for query in ({"size": 101}, {"size": 0}, {"page": 0}):
            assert call(noun, slug, **query).status == 400


@pytest.mark.parametrize("noun", NOUNS)
class TestAccess:
    def test_workspace_that_shows_nothing_is_unknown(
        self, noun: str, owner: Owner, api: Api, salon: Salon, slug: str
    ) -> None:
        def failure(slug: str) -> tuple[int, Any, Any]:
            answer = call(noun, slug)
            return answer.status, answer.data["code"], answer.data["message"]

        unknown = failure("nobody")
        assert unknown[:2] == (404, "not_found")
        assert failure(slug) == unknown
        switch_page(owner, offer=[salon.service])
        assert read(noun, slug)
        switch_page(owner, is_on=False)
        assert failure(slug) == unknown
        api.post("/api/projects/create", {"title": "A site without a page"})
        assert failure(slug) == unknown
        for name in (slug.upper(), f"{slug} ", salon.service, owner.workspace.id):
            assert failure(name) == unknown

    def test_site_that_is_on_is_enough(self, noun: str, api: Api, salon: Salon, slug: str) -> None:
        site = open_site(api)
        assert read(noun, slug)
        api.post("/api/projects/update", {"id": site, "status": "inactive"})
        assert call(noun, slug).status == 404
        api.post("/api/projects/update", {"id": site, "status": "active"})
        call_operator("suspend_site", id=site)
        assert call(noun, slug).status == 404
        call_operator("resume_site", id=site)
        assert call(noun, slug).status == 200
        api.post("/api/projects/delete", {"id": site, "confirm": True})
        assert call(noun, slug).status == 404

    def test_response_is_cached_for_a_minute_and_for_any_origin(
        self, noun: str, owner: Owner, slug: str, api: Api
    ) -> None:
        switch_page(owner)
        answer = call(noun, slug, {"Origin": "https://example.com"})
        assert answer.headers["Cache-Control"] == "public, max-age=60"
        assert is_readable_from_any_origin(answer)
        assert not [name for name in answer.headers if name.startswith("RateLimit")]
        unchanged = call(noun, slug, {"If-None-Match": answer.headers["ETag"]})
        assert (unchanged.status, unchanged.body) == (304, b"")
        assert is_readable_from_any_origin(unchanged)
        call_console(owner.workspace.id, "set_workspace", name="Renamed")
        api.post("/api/products/create", {"name": "New", "price": 1})
        switch_page(owner, offer=[Salon.opened(api).service])
        changed = call(noun, slug, {"If-None-Match": answer.headers["ETag"]})
        assert (changed.status, changed.headers["ETag"] != answer.headers["ETag"]) == (200, True)
        refusal = call(noun, "nobody")
        assert refusal.headers["Cache-Control"] == "no-store"
        assert "ETag" not in refusal.headers
        assert is_readable_from_any_origin(refusal)

    def test_key_is_not_needed_and_changes_nothing(
        self, noun: str, owner: Owner, api: Api, slug: str
    ) -> None:
        switch_page(owner)
        path = f"/api/public/{noun}?workspace={slug}"
        assert api.call("GET", path).body == visitor.call("GET", path).body
        assert visitor.call("OPTIONS", path).status == 204
        assert visitor.call("HEAD", path).status == 200
        assert visitor.call("POST", path, {}).status == 405

    def test_reads_of_a_visitor_are_counted(
        self,
        noun: str,
        owner: Owner,
        slug: str,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
        time: Time,
    ) -> None:
        switch_page(owner)
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()
        number = public_reading.READS.max_requests + 1
        statuses = [call(noun, slug).status for _ in range(number)]
        assert (statuses[0], statuses[-1]) == (200, 429)
        time.pass_by(minutes=1)
        assert read(noun, slug)


def test_site_alone_shows_no_contacts_and_no_booking_page(
    owner: Owner, api: Api, salon: Salon, slug: str
) -> None:
    details = {"address": "Arbat 1", "phone": "+7 495 123-45-67", "accent": "teal"}
    call_console(owner.workspace.id, "set_workspace", **details)
    open_site(api)
    business = read("business", slug)["business"]
    hidden = ("phone", "address", "accent", "bookingUrl")
    assert [business[name] for name in hidden] == [None] * 4
    assert len(business["hours"]) == 1
    (service,) = read("services", slug)["services"]
    assert (service["id"], service["bookingUrl"]) == (salon.service, None)


@pytest.mark.parametrize("is_on", [True, False])
def test_services_of_a_suspended_site_are_not_listed(
    is_on: bool, owner: Owner, api: Api, salon: Salon, slug: str
) -> None:
    site, _ = open_site(api), open_site(api)
    others = []
    for number in range(3):
        body = {"name": f"S{number}", "durationMin": 30, "price": 100}
        others.append(api.post("/api/services/create", body)["service"]["id"])
    switch_page(owner, is_on=is_on, offer=[salon.service, *others])
    api.post("/api/services/update", {"id": salon.service, "siteId": site})
    assert read("services", slug)["total"] == 4
    call_operator("suspend_site", id=site)
    pages = [read("services", slug, page=number, size=2) for number in (1, 2)]
    assert [service["id"] for page in pages for service in page["services"]] == others
    assert [page["total"] for page in pages] == [3, 3]
