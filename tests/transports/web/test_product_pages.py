"""Pages, the feed and the links of a site's products, as visitors and programs find them."""

import json
import re
from collections.abc import Callable
from html import unescape
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.text import one_line
from chalicelib.domains.catalog.store import products as stored_products
from chalicelib.domains.catalog.store.products import ProductRow
from chalicelib.domains.sites.store import sites
from chalicelib.transports.web import product_feed, product_pages, render
from infra.bench.dynamodb.usage import metering
from tests.conftest import Answer, Api, Owner, Time, call_operator
from tests.factories import pages
from tests.factories.console import HOSTILE
from tests.factories.examples import Things
from tests.factories.files import photo, upload
from tests.support import schema_org
from tests.transports.web.test_blog_pages import BASE, get

G = "{http://base.google.com/ns/1.0}"
SHOP = "/s/bakery/products"
BARCODE = "4006381333931"
FILE_URL = "http://127.0.0.1:8000/files/"


@pytest.fixture
def shop(api: Api, things: Things) -> Things:
    """A site that shows the products of its workspace: one, with a barcode and a stock of 5."""
    api.post("/api/pages/save-html", {"id": things.home, "html": "<h1>Bread</h1>"})
    api.post("/api/projects/update", {"id": things.site, "showsProducts": True})
    return things


def product(api: Api, name: str = "Rye bread", price: int = 24000, **fields: Any) -> str:
    body = {"name": name, "price": price, **fields}
    return str(api.post("/api/products/create", body)["product"]["id"])


def text(path: str, status: int = 200, **headers: str) -> str:
    answer = get(path, **headers)
    assert answer.status == status, answer.body
    return answer.body.decode()


def json_ld(html: str) -> Any:
    (data,) = re.findall(r'<script type="application/ld\+json">(.*?)</script>', html)
    return json.loads(data)


def parse_feed(query: str = "") -> ET.Element:
    return ET.fromstring(get(f"{SHOP}/feed.xml{query}").body)  # noqa: S314  our own


def feed(query: str = "") -> list[ET.Element]:
    return list(parse_feed(query).iter("item"))


def fields_of(item: ET.Element) -> dict[str, str]:
    return {element.tag.removeprefix(G): element.text or "" for element in item}


def by_name(items: list[ET.Element]) -> dict[str, dict[str, str]]:
    return {fields_of(item)["title"]: fields_of(item) for item in items}


class TestPages:
    def test_the_list_links_to_a_page_of_each_active_product(self, api: Api, shop: Things) -> None:
        hidden = product(api, "Draft", status="inactive")
        rye = product(api, stock=0)
        html = text(SHOP)
        assert f'<link rel="canonical" href="{BASE}{SHOP}">' in html
        assert re.findall(rf'<a href="{BASE}{SHOP}/(\w+)">(.*?)</a>', html) == [
            (shop.product, "Loaf"),
            (rye, "Rye bread"),
        ]
        assert "RUB\u00a0240" in html or "240 ₽" in html
        assert html.count("Out of stock") == 1
        assert hidden not in html
        assert text(f"{SHOP}/{hidden}", 404)

    def test_a_page_shows_the_product_as_its_record_is(self, api: Api, shop: Things) -> None:
        images = [{"fileId": upload(api, f"{n}.jpg", photo())["id"]} for n in range(2)]
        rye = product(
            api, sku="RYE-1", description="Caraway & salt.\nBaked at <b>night</b>.", images=images
        )
        answer = get(f"{SHOP}/{rye}")
        html, url = answer.body.decode(), f"{BASE}{SHOP}/{rye}"
        assert "<h1>Rye bread</h1>" in html
        assert "Caraway &amp; salt." in html
        assert "<b>night" not in html
        for name, content in (
            ("og:url", url),
            ("og:type", "product"),
            ("og:title", "Rye bread"),
            ("product:price:amount", "240.00"),
            ("product:price:currency", "RUB"),
        ):
            assert f'<meta property="{name}" content="{content}">' in html
        assert f'<link rel="canonical" href="{url}">' in html
        assert html.count(f'<meta property="og:image" content="{FILE_URL}') == 2
        assert html.count("<style>") == 1
        assert "svc-bar" in html
        assert "svc-foot" in html
        assert answer.headers["Content-Security-Policy"].startswith("sandbox")
        assert get(f"{SHOP}/{rye}", if_none_match=answer.headers["ETag"]).status == 304
        assert get(f"{SHOP}/{rye}", "HEAD").status == 200

    def test_the_address_of_a_product_outlives_a_new_name_and_ends_with_it(
        self, api: Api, shop: Things
    ) -> None:
        api.post("/api/products/update", {"id": shop.product, "name": "Wheat loaf"})
        assert "<h1>Wheat loaf</h1>" in text(f"{SHOP}/{shop.product}")
        api.post("/api/products/delete", {"id": shop.product})
        assert text(f"{SHOP}/{shop.product}", 404)
        assert "There are no products yet." in text(SHOP)

    def test_addresses_of_products_do_not_end_with_a_slash(self, shop: Things) -> None:
        for path in (SHOP, f"{SHOP}/{shop.product}"):
            answer = get(f"{path}/?a=1")
            assert (answer.status, answer.headers["Location"]) == (301, f"{path}?a=1")

    def test_a_long_list_has_pages(
        self, api: Api, shop: Things, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(product_pages, "PAGE_SIZE", 2)
        names = ["Loaf", *(name for name in ("B", "C", "D") if product(api, name))]
        first, second = text(SHOP), text(f"{SHOP}?page=2")
        found = [re.findall(rf'{SHOP}/\w+">(.*?)</a>', html) for html in (first, second)]
        assert found == [names[:2], names[2:]]
        assert f'rel="next" href="{BASE}{SHOP}?page=2"' in first
        assert 'rel="next"' not in second
        assert f'<link rel="canonical" href="{BASE}{SHOP}?page=2">' in second
        for number in ("3", "0", "x", "-1", "99999", "9" * 50):
            assert text(f"{SHOP}?page={number}", 404)

    def test_an_unknown_address_shows_the_sites_own_notice(self, api: Api, shop: Things) -> None:
        page = {"projectId": shop.site, "title": "Lost?", "slug": "404"}
        page_id = api.post("/api/pages/create", page)["page"]["id"]
        api.post("/api/pages/save-html", {"id": page_id, "html": "<h1>Lost?</h1>"})
        for place in ("none", "a" * 1500, "%00", "feed.xml.gz", "%2e%2e", shop.service):
            assert "<h1>Lost?</h1>" in text(f"{SHOP}/{place}", 404)


class TestWhoPublishes:
    def test_a_site_shows_no_products_until_its_owner_says_so(
        self, api: Api, things: Things, time: Time
    ) -> None:
        api.post("/api/pages/save-html", {"id": things.home, "html": "<h1>Bread</h1>"})
        site = api.get(f"/api/projects/{things.site}")["project"]
        assert (site["showsProducts"], site["productsUrl"]) == (False, None)

        def visible() -> list[bool]:
            time.pass_by(minutes=1)
            slug = api.get("/api/workspaces/list")["workspaces"][0]["slug"]
            public = Api(None).get(f"/api/public/products?workspace={slug}")["products"]
            return [
                get(SHOP).status == 200,
                get(f"{SHOP}/{things.product}").status == 200,
                get(f"{SHOP}/feed.xml").status == 200,
                SHOP in text("/s/bakery/sitemap.xml"),
                SHOP in text("/s/bakery/llms.txt"),
                bool(public[0]["url"]),
            ]

        assert not any(visible())
        site = api.post("/api/projects/update", {"id": things.site, "showsProducts": True})
        assert site["project"]["productsUrl"] == f"{BASE}{SHOP}"
        assert all(visible())
        api.post("/api/projects/update", {"id": things.site, "showsProducts": False})
        assert not any(visible())

    def test_a_hidden_site_shows_no_products(self, api: Api, shop: Things) -> None:
        paths = [SHOP, f"{SHOP}/{shop.product}", f"{SHOP}/feed.xml"]
        api.post("/api/projects/update", {"id": shop.site, "status": "inactive"})
        assert [get(path).status for path in paths] == [404] * 3
        api.post("/api/projects/update", {"id": shop.site, "status": "active"})
        assert [get(path).status for path in paths] == [200] * 3
        call_operator("suspend_site", id=shop.site)
        assert [get(path).status for path in paths] == [404] * 3

    def test_a_site_without_a_home_page_shows_no_products(self, api: Api, things: Things) -> None:
        new = api.post("/api/projects/create", {"title": "Second", "showsProducts": True})
        assert new["project"]["productsUrl"] is None
        assert get(f"/s/{new['project']['slug']}/products").status == 404

    def test_a_site_shows_the_products_of_its_own_workspace_only(
        self, shop: Things, new_owner: Callable[..., Owner]
    ) -> None:
        other = new_owner().api()
        foreign = product(other, "Foreign")
        site = other.post("/api/projects/create", {"title": "Other", "showsProducts": True})
        pages.save(other, pages.create(other, site["project"]["id"]), "<h1>Other</h1>")
        assert "Foreign" in text(f"/s/other/products/{foreign}")
        assert text(f"{SHOP}/{foreign}", 404)
        assert text(f"/s/other/products/{shop.product}", 404)
        for path in (SHOP, f"{SHOP}/feed.xml", "/s/bakery/sitemap.xml"):
            assert foreign not in text(path)

    def test_a_page_of_the_owner_takes_the_address_of_the_list(
        self, api: Api, shop: Things
    ) -> None:
        page = {"projectId": shop.site, "title": "Our breads", "slug": "products"}
        page_id = api.post("/api/pages/create", page)["page"]["id"]
        api.post("/api/pages/save-html", {"id": page_id, "html": "<h1>Our own list</h1>"})
        assert "Our own list" in text(SHOP)
        assert "<h1>Loaf</h1>" in text(f"{SHOP}/{shop.product}")
        assert text("/s/bakery/sitemap.xml").count(f"{SHOP}</loc>") == 1
        noindex = "<meta name=robots content=noindex><h1>Our own list</h1>"
        api.post("/api/pages/save-html", {"id": page_id, "html": noindex})
        assert f"{SHOP}</loc>" not in text("/s/bakery/sitemap.xml")
        api.post("/api/pages/update", {"id": page_id, "slug": "breads"})
        assert get(SHOP).headers["Location"] == "/s/bakery/breads"

    def test_search_engines_do_not_list_a_site_that_nobody_has_reviewed(
        self, tester: Owner
    ) -> None:
        api = tester.api()
        site = pages.new_site(api, "Tests")
        api.post("/api/projects/update", {"id": site, "showsProducts": True})
        pages.save(api, pages.create(api, site), "<h1>Tests</h1>")
        slug = api.get(f"/api/projects/{site}")["project"]["slug"]
        answer = get(f"/s/{slug}/products/{product(api)}")
        assert answer.status == 200
        assert answer.headers["X-Robots-Tag"] == "noindex"
        assert b'<div role="note"' in answer.body


class TestHostileTexts:
    NAMES = (
        HOSTILE,
        "</script><script>alert(3)</script>",
        "{{733*733}} {% raw %} ${733*733}",
        "]]> <!-- --> <!--sections [] --> <!--section:form-->",
        "a & b < c > d 'e' \"f\"",
    )

    @pytest.mark.parametrize("name", NAMES)
    def test_names_and_descriptions_stay_text(self, name: str, api: Api, shop: Things) -> None:
        category = api.post("/api/categories/create", {"name": name[:80], "kind": "product"})
        body: dict[str, Any] = {"sku": name[:60], "description": f"Of {name}".replace("<", "‹")}
        hostile = product(api, name, **body, categoryId=category["category"]["id"])
        html = text(f"{SHOP}/{hostile}")
        stored = api.get(f"/api/products/{hostile}")["product"]
        for source in (html, text(SHOP)):
            assert "<script>" not in source
            assert "<img src=x" not in source
            assert stored["name"] in unescape(source)
            assert "537289" not in source  # the product of what the names multiply
        data = json_ld(html)
        assert (data["name"], data["sku"]) == (stored["name"], stored["sku"])
        assert schema_org.problems(data) == []
        item = by_name(feed())[one_line(stored["name"], 150)]
        assert item["product_type"] == one_line(name[:80], 150)
        assert "\n" not in one_line(name, 150)

    def test_a_description_of_html_is_shown_as_its_text(self, api: Api, shop: Things) -> None:
        rye = product(api, description=f"<p>Rye</p><script>alert(1)</script>{HOSTILE}")
        html = text(f"{SHOP}/{rye}")
        assert "alert(1)</script>" not in html
        assert "<script>alert" not in html
        assert "<script" not in by_name(feed())["Rye bread"]["description"]


SIGNS = "<>&'\"/!-[]{}%\\;:#= \n\t\x00\x07\x1b\ufffe\u202escriptCDATAЯ🍞"
ODD = st.text(st.sampled_from(SIGNS), max_size=60)


@given(name=ODD.filter(lambda name: bool(one_line(name, 150))), description=ODD, category=ODD)
def test_no_text_breaks_the_feed_or_the_data_of_a_page(
    name: str, description: str, category: str
) -> None:
    row = ProductRow("W#1#PRODUCT", "1", name=name * 5, description=description * 200, price=100)
    element = product_feed.item(row, [category], "RUB", url="https://shop.example/1")
    document = f'<rss xmlns:g="{G[1:-1]}">{element}</rss>'
    body = render.xml(document, kind="application/rss+xml", caching="no-store").body
    (parsed,) = ET.fromstring(body)  # noqa: S314  generated here
    found = fields_of(parsed)
    assert {"id", "title", "description", "link", "price"} <= found.keys()
    assert 0 < len(found["title"]) <= 150
    assert len(found["description"]) <= 5000
    workspace = SimpleNamespace(name=name, currency="RUB")
    data: Any = product_pages.json_ld(row, workspace, url="https://shop.example/1", category=())  # type: ignore[arg-type]
    assert "<" not in data
    assert json.loads(data)["name"] == row.name


class TestDataForSearchEngines:
    def test_a_product_has_the_terms_of_the_vocabulary(self, api: Api, shop: Things) -> None:
        image = {"fileId": upload(api, "a.jpg", photo())["id"]}
        breads = api.post("/api/categories/create", {"name": "Breads", "kind": "product"})
        parent = breads["category"]["id"]
        dark = api.post(
            "/api/categories/create", {"name": "Dark", "kind": "product", "parentId": parent}
        )
        api.post(
            "/api/products/update",
            {
                "id": shop.product,
                "images": [image],
                "sku": "L-1",
                "description": "Good.",
                "categoryId": dark["category"]["id"],
            },
        )
        data = json_ld(text(f"{SHOP}/{shop.product}"))
        assert schema_org.problems(data) == []
        assert data["gtin"] == BARCODE
        assert data["sku"] == "L-1"
        assert data["category"] == "Breads > Dark"
        assert data["image"][0].startswith(FILE_URL)
        assert data["offers"] == {
            "@type": "Offer",
            "price": "99.00",
            "priceCurrency": "RUB",
            "availability": "https://schema.org/InStock",
            "url": f"{BASE}{SHOP}/{shop.product}",
            "seller": {"@type": "Organization", "name": "Workspace"},
        }
        api.post("/api/products/update", {"id": shop.product, "stock": 0})
        sold_out = json_ld(text(f"{SHOP}/{shop.product}"))
        assert sold_out["offers"]["availability"] == "https://schema.org/OutOfStock"

    @pytest.mark.parametrize(
        ("wrong", "problem"),
        [
            ({"prize": "1"}, "/prize: unknown property"),
            ({"priceCurrency": "RUB"}, "/priceCurrency: not a property of Product"),
            ({"offers": {"@type": "Organization", "name": "x"}}, "/offers: Organization is none"),
            ({"offers": {"@type": "Offer", "availability": "yes"}}, "/offers/availability: 'yes'"),
            ({"url": 5}, "/url: 5"),
        ],
    )
    def test_the_check_finds_terms_that_the_vocabulary_does_not_have(
        self, wrong: dict[str, Any], problem: str
    ) -> None:
        (found,) = schema_org.problems({"@type": "Product", "name": "Rye", **wrong})
        assert found.startswith(problem)

    def test_a_number_that_a_shop_gave_itself_is_no_gtin(self, api: Api, shop: Things) -> None:
        own = product(api, "Weighed", barcode="2000000000015")
        assert "gtin" not in json_ld(text(f"{SHOP}/{own}"))
        item = by_name(feed())["Weighed"]
        assert "gtin" not in item
        assert item["identifier_exists"] == "no"

    def test_the_sitemap_has_the_list_and_each_active_product(self, api: Api, shop: Things) -> None:
        product(api, "Draft", status="inactive")
        rye = product(api)
        locations = re.findall("<loc>(.*?)</loc>", text("/s/bakery/sitemap.xml"))
        expected = [SHOP, f"{SHOP}/{shop.product}", f"{SHOP}/{rye}"]
        assert locations[-3:] == [BASE + path for path in expected]
        for location in locations:
            assert get(location.removeprefix(BASE)).status == 200

    def test_a_composed_page_has_the_products_in_its_menu(self, api: Api, shop: Things) -> None:
        sections = [{"type": "heading", "text": "Hours"}]
        page = pages.create(api, shop.site, "Opening hours")
        pages.update(api, page, sections=sections)
        link = f'<a href="{BASE}{SHOP}">Products</a>'
        assert link in text(f"/s/bakery/{page['slug']}")
        api.post("/api/projects/update", {"id": shop.site, "showsProducts": False})
        assert link not in text(f"/s/bakery/{page['slug']}")


class TestFeed:
    def test_an_item_has_the_attributes_of_the_specification(self, api: Api, shop: Things) -> None:
        images = [{"fileId": upload(api, f"{n}.jpg", photo())["id"]} for n in range(3)]
        breads = api.post("/api/categories/create", {"name": "Breads", "kind": "product"})
        rye = product(
            api,
            price=150000,
            description="Baked <b>at night</b>.",
            images=images,
            stock=0,
            categoryId=breads["category"]["id"],
        )
        answer = get(f"{SHOP}/feed.xml")
        assert answer.headers["Content-Type"] == "application/rss+xml; charset=utf-8"
        assert "max-age" in answer.headers["Cache-Control"]
        assert get(f"{SHOP}/feed.xml", if_none_match=answer.headers["ETag"]).status == 304
        root = parse_feed()
        assert (root.tag, root.attrib) == ("rss", {"version": "2.0"})
        assert root.findtext("channel/link") == f"{BASE}{SHOP}"
        (item,) = (each for each in root.iter("item") if each.findtext("title") == "Rye bread")
        stored = [image["url"] for image in api.get(f"/api/products/{rye}")["product"]["images"]]
        assert [each.text for each in item.findall(f"{G}additional_image_link")] == stored[1:]
        assert fields_of(item) == {
            "id": rye,
            "title": "Rye bread",
            "description": "Baked at night.",
            "link": f"{BASE}{SHOP}/{rye}",
            "image_link": stored[0],
            "additional_image_link": stored[2],
            "availability": "out_of_stock",
            "price": "1500.00 RUB",
            "condition": "new",
            "identifier_exists": "no",
            "product_type": "Breads",
        }
        loaf = by_name(list(root.iter("item")))["Loaf"]
        assert (loaf["gtin"], loaf["availability"]) == (BARCODE, "in_stock")
        assert loaf["description"] == "Loaf"
        assert "identifier_exists" not in loaf
        assert get(loaf["link"].removeprefix(BASE)).status == 200

    def test_only_products_that_are_for_sale_are_in_the_feed(self, api: Api, shop: Things) -> None:
        product(api, "Draft", status="inactive")
        product(api, "Gift", price=0)
        assert list(by_name(feed())) == ["Loaf"]

    def test_texts_are_as_long_as_the_specification_allows(self, api: Api, shop: Things) -> None:
        product(api, "Я" * 255, description="\x07Ж\x00\ufffe" * 5000)
        (item,) = (item for item in map(fields_of, feed()) if item["title"].startswith("Я"))
        assert len(item["title"]) == 150
        assert len(item["description"]) <= 5000
        assert set(item["description"]) <= {"Ж", "…"}

    def test_a_feed_of_many_products_has_pages(
        self, api: Api, shop: Things, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(product_feed, "PAGE_SIZE", 2)
        for name in ("B", "C"):
            product(api, name)
        assert list(by_name(feed())) == ["Loaf", "B"]
        atom = "{http://www.w3.org/2005/Atom}link"
        links = parse_feed().iter(atom)
        assert [(link.get("rel"), link.get("href")) for link in links] == [
            ("self", f"{BASE}{SHOP}/feed.xml"),
            ("next", f"{BASE}{SHOP}/feed.xml?page=2"),
        ]
        assert list(by_name(feed("?page=2"))) == ["C"]
        assert get(f"{SHOP}/feed.xml?page=3").status == 404

    def test_a_long_feed_has_the_beginnings_of_descriptions(
        self, api: Api, shop: Things, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        product(api, description="Long. " * 500)
        assert len(by_name(feed())["Rye bread"]["description"]) > 2000
        monkeypatch.setattr(product_feed, "MAX_BYTES", 3000)
        assert len(by_name(feed())["Rye bread"]["description"]) == 400

    def test_a_site_shows_a_bounded_number_of_products(
        self, api: Api, shop: Things, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        product(api, "B")
        product(api, "C")
        monkeypatch.setattr(product_pages, "MAX_SHOWN", 2)
        monkeypatch.setattr(product_feed, "PAGE_SIZE", 2)
        assert list(by_name(feed())) == ["Loaf", "B"]
        assert get(f"{SHOP}/feed.xml?page=2").status == 404


@pytest.mark.parametrize(
    ("currency", "price"), [("JPY", "1250 JPY"), ("GBP", "12.50 GBP"), ("KWD", "1.250 KWD")]
)
def test_prices_have_the_digits_and_the_code_of_their_currency(
    currency: str, price: str, new_owner: Callable[..., Owner]
) -> None:
    api = new_owner(name="Corner").api()
    api.post("/api/workspace/update", {"currency": currency})
    rye = product(api, price=1250)
    api.post("/api/services/create", {"name": "Tasting", "price": 1250, "durationMin": 30})
    site = api.post("/api/projects/create", {"title": "Corner", "showsProducts": True})["project"]
    pages.save(api, pages.create(api, site["id"]), "<h1>Corner</h1>")
    base = f"/s/{site['slug']}"
    offer = json_ld(text(f"{base}/products/{rye}"))["offers"]
    assert f"{offer['price']} {offer['priceCurrency']}" == price
    assert f"<g:price>{price}</g:price>" in text(f"{base}/products/feed.xml")
    llms = text(f"{base}/llms.txt")
    assert f"- Tasting: 30 min, {price}" in llms
    assert f"]({BASE}{base}/products): a page of each, with its price in {currency}" in llms


class TestCosts:
    def test_a_page_needs_few_requests_however_many_products_there_are(
        self, api: Api, shop: Things
    ) -> None:
        def requests(path: str) -> int:
            get(path)
            with metering() as usage:
                assert get(path).status == 200
            return usage.round_trips

        paths = (SHOP, f"{SHOP}/{shop.product}", f"{SHOP}/feed.xml", "/s/bakery/sitemap.xml")
        before = [requests(path) for path in paths]
        for name in map(str, range(60)):
            product(api, name)
        after = [requests(path) for path in paths]
        assert after == before
        assert max(after[:2]) <= 12, after
        assert max(after[2:]) <= 7, after

    def test_a_feed_reads_a_hundred_products_in_a_request(
        self, api: Api, shop: Things, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in map(str, range(11)):
            product(api, name)
        with metering() as usage:
            assert len(feed()) == 12
        monkeypatch.setattr(product_feed, "READ_SIZE", 4)
        with metering() as smaller:
            assert len(feed()) == 12
        assert smaller.calls.count("BatchGetItem") == usage.calls.count("BatchGetItem") + 2


class TestLinks:
    def test_the_public_list_has_the_address_of_each_product(self, api: Api, shop: Things) -> None:
        slug = api.get("/api/workspaces/list")["workspaces"][0]["slug"]
        sites.forget_products_urls()
        (found,) = Api(None).get(f"/api/public/products?workspace={slug}")["products"]
        assert found["url"] == f"{BASE}{SHOP}/{shop.product}"

    def test_the_oldest_site_that_shows_products_has_their_addresses(
        self, api: Api, shop: Things
    ) -> None:
        site = api.post("/api/projects/create", {"title": "Second", "showsProducts": True})
        pages.save(api, pages.create(api, site["project"]["id"]), "<h1>Second</h1>")
        workspace = api.get("/api/workspaces/list")["workspaces"][0]["id"]
        assert sites.find_products_url(workspace) == f"{BASE}{SHOP}"
        sites.forget_products_urls()
        api.post("/api/projects/update", {"id": shop.site, "showsProducts": False})
        assert sites.find_products_url(workspace) == f"{BASE}/s/second/products"


class TestOwnHost:
    @pytest.fixture(autouse=True)
    def _deployed(
        self, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> None:
        monkeypatch.setenv("SITES_DOMAIN", "sites.example")
        reload_settings()

    def test_products_are_at_the_host_of_the_site(self, shop: Things) -> None:
        # The edge puts the path of a page into one segment.
        host = "bakery.sites.example"

        def on_host(path: str) -> Answer:
            return get(f"/s/{host}/{path}", host=host)

        answer = on_host(f"products%2F{shop.product}")
        assert answer.status == 200
        assert "Content-Security-Policy" not in answer.headers
        url = f"https://{host}/products"
        assert f'<link rel="canonical" href="{url}/{shop.product}">' in answer.body.decode()
        assert f"{url}/{shop.product}" in on_host("products").body.decode()
        assert f"<link>{url}/{shop.product}</link>" in on_host("products%2Ffeed.xml").body.decode()
        assert f"<loc>{url}/{shop.product}</loc>" in on_host("sitemap.xml").body.decode()
        assert get(f"/s/{host}/products", host="evil.example").status == 404
        assert on_host("products%2Fnone").status == 404


def test_active_products_are_found_in_their_order_and_in_parts(api: Api, things: Things) -> None:
    workspace = api.get("/api/workspaces/list")["workspaces"][0]["id"]
    ids = [things.product, *(product(api, name) for name in "BCD")]
    api.post("/api/products/update", {"id": ids[1], "status": "inactive"})
    api.post("/api/products/update", {"id": ids[3], "sortOrder": -5})
    order = [ids[3], ids[0], ids[2]]
    assert stored_products.active_ids(workspace, 10) == order
    assert stored_products.active_ids(workspace, 1, skipped=1) == order[1:2]
    assert stored_products.active_ids(workspace, 5, skipped=3) == []
