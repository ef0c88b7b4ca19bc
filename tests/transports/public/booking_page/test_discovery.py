"""How assistants and search engines find a business and its tools."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from chalicelib.domains.sites.store import sites
from chalicelib.transports.web import discovery
from tests.conftest import Api, call_console
from tests.factories import pages
from tests.factories.console import HOSTILE
from tests.support import schema_org
from tests.transports.public.booking_page.assistants import Assistant
from tests.transports.public.booking_page.helpers import BookingPage, text, visitor
from tests.transports.public.booking_page.test_assistants_catalog import NEWEST, OLDER, check


def json_ld(page: BookingPage, path: str) -> Any:
    """Return the data of a page for search engines."""
    source = page.get(path).body.decode()
    (data,) = re.findall(r'<script type="application/ld\+json">(.*?)</script>', source)
    return json.loads(data)


@pytest.mark.parametrize("of_service", [False, True], ids=["page", "service"])
def test_a_page_describes_the_business_and_where_to_book(
    page: BookingPage, of_service: bool
) -> None:
    data = json_ld(page, page.path if of_service else page.home)
    assert schema_org.problems(data) == []
    assert (data["@type"], data["name"]) == ("LocalBusiness", page.owner.workspace.name)
    (offer,) = data["makesOffer"]
    assert (offer["price"], offer["priceCurrency"]) == ("1500.00", "RUB")
    assert offer["itemOffered"] == {"@type": "Service", "name": "Haircut"}
    assert offer["potentialAction"]["target"]["urlTemplate"].endswith(page.path)
    if not of_service:
        (hours,) = data["openingHoursSpecification"]
        assert (hours["opens"], hours["closes"], len(hours["dayOfWeek"])) == ("09:00", "18:00", 7)


def test_the_data_of_many_services_have_their_number(
    page: BookingPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "hasOfferCatalog" not in json_ld(page, page.home)
    monkeypatch.setattr(discovery, "MAX_OFFERS", 0)
    data = json_ld(page, page.home)
    assert "makesOffer" not in data
    assert data["hasOfferCatalog"]["numberOfItems"] == 1
    assert data["hasOfferCatalog"]["url"].endswith(page.home)


def test_a_name_cannot_end_the_data(page: BookingPage) -> None:
    rename = {"id": page.salon.service, "name": f"</script><b>{HOSTILE}"[:200]}
    page.salon.api.post("/api/services/update", rename)
    (offer,) = json_ld(page, page.home)["makesOffer"]
    assert offer["itemOffered"]["name"].startswith("</script>")


def test_llms_txt_lists_services_and_the_tools_once_they_are_on(page: BookingPage) -> None:
    path = f"{page.home}/llms.txt"
    answer = visitor.call("GET", path)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Robots-Tag"] == "noindex"
    assert f"# {page.owner.workspace.name}" in text(answer)
    assert re.search(rf"- \[Haircut\]\(http.*{page.path}\): 60 min, 1500.00 RUB", text(answer))
    assert "/mcp" not in text(answer)
    Assistant.admitted(page)
    page.set(isIndexed=True)
    answer = visitor.call("GET", path)
    assert f"{page.home}/mcp)" in text(answer)
    assert "X-Robots-Tag" not in answer.headers
    page.set(isOn=False)
    assert visitor.call("GET", path).status == 404


def test_llms_txt_says_what_a_business_is_and_sells_and_for_how_much(page: BookingPage) -> None:
    api: Api = page.salon.api
    api.post("/api/products/create", {"name": "Shampoo", "price": 90_000})
    site = pages.new_site(api, "Salon")
    about = {"id": site, "description": "Cuts and colours.\n# Ignore this.", "showsProducts": True}
    products_url = api.post("/api/projects/update", about)["project"]["productsUrl"]
    assert products_url is None
    pages.save(api, pages.create(api, site, "About us"), "<h1>About us</h1>")
    project = api.get(f"/api/projects/{site}")["project"]
    call_console(page.owner.workspace.id, "set_workspace", address="Arbat 1, Moscow")
    sites.forget_products_urls()
    on_site = text(visitor.call("GET", f"/s/{project['slug']}/llms.txt"))
    assert "\n> Cuts and colours. # Ignore this. Arbat 1, Moscow\n" in on_site
    service = rf"- \[Haircut\]\(http.*{page.path}\): 60 min, 1500.00 RUB"
    product_link = f"- [Products]({project['productsUrl']}): a page of each, with its price in RUB"
    for document in (on_site, text(visitor.call("GET", f"{page.home}/llms.txt"))):
        assert re.search(service, document)
        assert product_link in document
        assert f"- [Feed]({project['productsUrl']}/feed.xml)" in document
    page.set(isOn=False)
    hidden = text(visitor.call("GET", f"/s/{project['slug']}/llms.txt"))
    assert "Arbat" not in hidden
    assert "- Haircut: 60 min, 1500.00 RUB" in hidden
    assert product_link in hidden


def test_a_site_lists_its_pages_and_serves_the_tools(page: BookingPage) -> None:
    api: Api = page.salon.api
    site = pages.new_site(api, "Salon")
    pages.save(api, pages.create(api, site, "About us"), "<h1>About us</h1>")
    (project,) = api.get("/api/projects/list")["projects"]
    path = f"/s/{project['slug']}"
    assert "[About us](" in text(visitor.call("GET", f"{path}/llms.txt"))
    on_site = Assistant(page, f"{path}/mcp")
    assert on_site.send("ping").status == 404
    Assistant.admitted(page)
    assert on_site.call("get_business")["name"] == page.owner.workspace.name
    assert f"{page.home}/mcp)" in text(visitor.call("GET", f"{path}/llms.txt"))
    assert Assistant(page, "/s/no-such-site/mcp").send("ping").status == 404


def test_a_site_has_the_ucp_profile_of_its_business_while_the_tools_are_on(
    page: BookingPage,
) -> None:
    api: Api = page.salon.api
    site = pages.new_site(api, "Salon")
    pages.save(api, pages.create(api, site, "About us"), "<h1>About us</h1>")
    (project,) = api.get("/api/projects/list")["projects"]
    # On the host of the site, the edge puts the path into one segment.
    path = f"/s/{project['slug']}/.well-known%2Fucp"
    assert visitor.call("GET", path).status == 404
    Assistant.admitted(page)
    answer = visitor.call("GET", path)
    assert answer.headers["Content-Type"] == "application/json"
    assert "max-age" in answer.headers["Cache-Control"]
    newest = check(json.loads(answer.body), "profile.json#/$defs/business_schema")["ucp"]
    assert newest["version"] == NEWEST
    (older_version, older_url) = newest["supported_versions"].popitem()
    assert older_url.endswith(f"/.well-known/ucp/{OLDER}")
    answer = visitor.call("GET", f"{path}%2F{older_version}")
    older = check(json.loads(answer.body), "discovery/profile.json#/$defs/business_profile", OLDER)
    assert (older["ucp"]["version"], "supported_versions" in older["ucp"]) == (OLDER, False)
    for profile in (newest, older["ucp"]):
        (service,) = profile["services"]["dev.ucp.shopping"]
        endpoint = urlsplit(service["endpoint"])
        assert endpoint.path.endswith(f"/s/{project['slug']}/mcp")
        assistant = Assistant(page, f"{endpoint.path}?{endpoint.query}")
        used = assistant.call("search_catalog", catalog={"query": "bread"})["ucp"]
        assert used["version"] == profile["version"] == service["version"]
        assert used["capabilities"].keys() <= profile["capabilities"].keys()
    for unknown in ("%2F2026-01-11", f"%2F{NEWEST}", "-2"):
        assert visitor.call("GET", f"{path}{unknown}").status == 404
    call_console(page.owner.workspace.id, "admit_assistants", isOn=False)
    assert visitor.call("GET", path).status == 404


def test_a_site_may_have_a_page_with_the_name_of_the_tools(page: BookingPage) -> None:
    api: Api = page.salon.api
    site = pages.new_site(api, "Salon")
    pages.save(api, pages.create(api, site, "MCP", slug="mcp"), "<h1>Our page</h1>")
    (project,) = api.get("/api/projects/list")["projects"]
    assert "Our page" in text(visitor.call("GET", f"/s/{project['slug']}/mcp"))


def test_only_a_page_with_tools_offers_them_to_the_browser(page: BookingPage) -> None:
    assert "webmcp" not in text(page.get(page.home))
    Assistant.admitted(page)
    for path in (page.home, page.path):
        assert f'data-tools="{page.home}/mcp"' in text(page.get(path))
    call_console(page.owner.workspace.id, "admit_assistants", isOn=False)
    assert "webmcp" not in text(page.get(page.home))
