"""Tests of sorting, filters, pages and truncated descriptions in lists of products."""

from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Api, Owner
from tests.factories.products import (
    EAN,
    LIST,
    UPDATE,
    create,
    create_category,
    create_many,
    list_products,
    names,
    read,
    refused_field,
    update,
)
from tests.support.effort import examples
from tests.support.warned import warned

SEPARATORS = (
    *(
        " ",
        "\u00a0",
        "-",
        "\u2010",
        "\u2011",
        " \u2013 ",
        "\u2014",
        "\u2212",
        "\ufe63",
        "\uff0d",
        "\u05be",
    ),
    *('"', "\u00ab", "\u00bb", "\u201c", "\u201d", "\u201e", "\u2033", "\uff02", "\u300c"),
    *(
        "'",
        "`",
        "\u00b4",
        "\u2018",
        "\u2019",
        "\u201b",
        "\u02bc",
        "\u02b9",
        "\u2032",
        "\uff07",
        "\u055a",
    ),
    *(", ", "/", "(", ") ", "; "),
)
"""Spaces, dashes, quotes, apostrophes and other characters between words."""


class TestListProducts:
    def test_the_list_sorts_by_sort_order_creation_price_or_name(self, api: Api) -> None:
        for name, price in (("Ёлка", 300), ("ель", 100), ("Дуб", 200)):
            create(api, name, price)
        assert names(api) == "Ёлка ель Дуб"
        assert names(api, sort="sortOrder") == "Ёлка ель Дуб"
        assert names(api, sort="createdAt") == "Дуб ель Ёлка"
        assert names(api, sort="price") == "ель Дуб Ёлка"
        assert names(api, sort="name") == "Дуб Ёлка ель"

    def test_the_search_finds_part_of_the_name_or_sku_in_any_case(self, api: Api) -> None:
        create(api, "Ёлка", sku="AB-17")
        create(api, "Oak", sku="CD-18")
        assert names(api, q="елк") == "Ёлка"
        assert names(api, q="b-1") == "Ёлка"
        assert names(api, q="-1") == "Ёлка Oak"
        assert names(api, q="nothing") == ""

    @pytest.mark.parametrize(
        ("name", "search"),
        [
            ("Кофе в зёрнах Oro", "кофе oro"),
            ("Кофе в зёрнах Oro", "ORO зерн, кофе"),
            ("iPhone 15 Max Pro", "15 pro"),
            ("USB\u2011C cable", "usb-c"),
            ("USB-C cable", "cable c\u2212usb"),
            ("O'Reilly, Learning Go", "o\u2019reilly"),
            ("O\u02bcReilly", "reilly o`"),
            ("O\u00b4Reilly", "o'reilly"),
            ("O'Reilly", "o\u00b4reilly"),
            ("Чай «Дарджилинг» (чёрный)", "черный дарджилинг"),
            ("М\u2019ята", "м'ята"),
            ("Rock\u2013n\u2014roll", "roll rock n"),
            ("Bread 18\u2033", '18" bread'),
            ("有机咖啡豆", "咖啡 有机"),
            ("Chanel №5", "chanel №5"),
            ("C++ primer", "primer c++"),
            ("Loaf", "00123 loaf"),
            ("A " + "long " * 49 + "end", "end long a"),
        ],
    )
    def test_the_search_finds_all_words_by_their_beginnings_in_any_order(
        self, name: str, search: str, api: Api
    ) -> None:
        create(api, name, sku="AB-00123")
        create(api, "Other")
        assert names(api, q=search) == name

    @examples(40)
    @given(
        words=st.lists(
            st.text(st.sampled_from("aбcé15й"), min_size=1, max_size=5), min_size=1, max_size=6
        ),
        between=st.lists(st.sampled_from(SEPARATORS), min_size=11, max_size=11),
        draw=st.data(),
    )
    def test_word_beginnings_find_a_product_whatever_separates_its_words(
        self, words: list[str], between: list[str], draw: st.DataObject, new_owner: Any
    ) -> None:
        api = new_owner().api()
        name = "".join(word + gap for word, gap in zip(words, between, strict=False))
        product, _ = create(api, f"{name}x"), create(api, "ЪЪ")
        chosen_words = draw.draw(st.lists(st.sampled_from(words), min_size=1, unique=True))
        parts = [word[: draw.draw(st.integers(1, len(word)))] for word in chosen_words]
        search = "".join(part + gap for part, gap in zip(parts, between[6:], strict=False))
        hits = api.get(f"{LIST}?{urlencode({'q': search})}")["products"]
        assert [hit["id"] for hit in hits] == [product["id"]], (name, search)

    def test_the_price_filter_includes_both_bounds(self, api: Api) -> None:
        for price in (0, 100, 199, 200, 201):
            create(api, str(price), price)
        assert names(api, minPrice=100, maxPrice=200) == "100 199 200"
        assert names(api, minPrice=200) == "200 201"
        assert names(api, maxPrice=0) == "0"
        assert names(api, minPrice=100, maxPrice=100) == "100"
        assert names(api, minPrice=1, maxPrice=200, q="19", sortDir="desc") == "199"

    def test_filters_find_an_sku_or_a_barcode(self, api: Api) -> None:
        bread = create_category(api)
        create(api, "A", sku="Ёж-1", barcode=EAN, categoryId=bread)
        create(api, "B", sku="Ёж-10", barcode="0" + EAN, status="inactive", price=7)
        create(api, "C", barcode="12345670")
        assert names(api, sku=" еЖ-1") == "A"
        assert names(api, sku="Ёж") == ""
        assert names(api, barcode=EAN) == names(api, barcode=f"0{EAN}") == "A B"
        assert names(api, barcode=EAN, status="active") == "A"
        assert names(api, barcode=EAN, sort="price") == "B A"
        assert names(api, barcode=EAN, categoryId=bread, minPrice=8) == "A"
        assert names(api, barcode=EAN, sku="Ёж-10", q="b") == "B"
        assert names(api, barcode="12345670", sku="Ёж-10") == ""
        page = api.get(f"{LIST}?{urlencode({'barcode': EAN, 'size': 1, 'page': 2})}")
        assert ([p["name"] for p in page["products"]], page["total"]) == (["B"], 2)

    def test_the_list_of_a_category_can_include_its_subcategories(
        self, api: Api, new_owner: Any
    ) -> None:
        bakery = create_category(api, "Bakery")
        bread, cakes = (
            create_category(api, parentId=bakery),
            create_category(api, "Cakes", parentId=bakery),
        )
        rye = create_category(api, "Rye", parentId=bread)
        for name, place in zip("ABCDE", (rye, bakery, None, cakes, bread), strict=True):
            create(api, name, categoryId=place)
        assert names(api, categoryId=bakery) == "B"
        assert names(api, categoryId=bakery, subcategories="true") == "A B D E"
        assert names(api, categoryId=bread, subcategories="true", sortDir="desc") == "E A"
        assert names(api, categoryId=rye, subcategories="true") == "A"
        assert names(api, categoryId=bakery, subcategories="true", q="d") == "D"
        paged = {"categoryId": bakery, "subcategories": "true", "size": 3}
        pages = [api.get(f"{LIST}?{urlencode({**paged, 'page': page})}") for page in (1, 2)]
        assert [len(page["products"]) for page in pages] == [3, 1]
        assert [page["total"] for page in pages] == [4, 4]
        foreign = create_category(new_owner().api())
        assert names(api, categoryId=foreign, subcategories="true") == ""
        unfiltered = api.get(f"{LIST}?subcategories=true")
        assert unfiltered["total"] == 5
        assert warned(unfiltered) == [{"code": "field_ignored", "field": "subcategories"}]

    def test_long_descriptions_are_truncated_with_a_warning(self, api: Api) -> None:
        long = create(api, description="ж" * 20_000)
        short = create(api, description="ж" * 500)
        page = api.get(LIST)
        assert [len(p["description"]) for p in page["products"]] == [500, 500]
        assert page["products"][0]["description"].endswith("…")
        assert page["products"][1] == short
        assert warned(page) == [{"code": "descriptions_shortened", "count": 1}]
        (warning,) = page["warnings"]
        assert [p["descriptionTruncated"] for p in page["products"]] == [True, False]
        assert "descriptions=full" in warning
        assert read(api, long) == long
        assert long["descriptionTruncated"] is False

    def test_full_descriptions_are_listed_in_pages_of_at_most_twenty(
        self, api: Api, owner: Owner
    ) -> None:
        create_many(owner, 21, description="ж" * 20_000)
        for query in ("descriptions=full", "descriptions=full&size=20"):
            page = api.get(f"{LIST}?{query}")
            assert {p["description"] for p in page["products"]} == {"ж" * 20_000}
            assert {p["descriptionTruncated"] for p in page["products"]} == {False}
            assert len(page["products"]) == 20
            assert "warnings" not in page
        failed, answer = api.tool("svc_list_products", descriptions="full", page=2)
        assert not failed
        assert answer["data"]["products"][0]["description"] == "ж" * 20_000
        response = api.call_refused("GET", f"{LIST}?descriptions=full&size=21")
        (error,) = response.data["errors"]
        assert (error["field"], error["key"]) == ("size", "too_large")
        short = api.get(f"{LIST}?descriptions=short&size=100")["products"]
        assert {p["descriptionTruncated"] for p in short} == {True}

    def test_a_truncated_description_from_the_list_is_refused_by_updates(self, api: Api) -> None:
        long = create(api, sku="A", description="ж" * 6007)
        short = create(api, sku="B", description="ж" * 500)
        listed_items = [
            {k: p[k] for k in ("sku", "description")} | {"price": 7} for p in list_products(api)
        ]
        answer = api.post("/api/products/upsert", {"items": listed_items})
        refusal, success = answer["results"]
        assert (refusal["status"], success["status"]) == (400, 200)
        assert (refusal["code"], refusal["key"]) == ("validation_error", "shortened")
        assert refusal["message"].startswith("description: ")
        assert (read(api, long)["description"], read(api, long)["price"]) == ("ж" * 6007, 100)
        assert read(api, short)["price"] == 7
        error = refused_field(api, UPDATE, {"id": long["id"], **listed_items[0]})
        assert error["field"] == "description"
        dry = api.post("/api/products/upsert", {"items": listed_items, "dryRun": True})
        assert [row["status"] for row in dry["results"]] == [400, 200]

    @pytest.mark.parametrize("text", ["ж" * 499, "ж" * 500, "ж" * 498 + "…", "ё" * 499 + "…", "…"])
    def test_a_new_description_that_only_looks_truncated_replaces_a_long_one(
        self, text: str, api: Api
    ) -> None:
        product = create(api, description="ж" * 6007)
        assert update(api, product, description=text)["description"] == text

    def test_a_hundred_long_products_fit_one_response(self, api: Api, owner: Owner) -> None:
        create_many(owner, 100, name="Ж" * 255, description="ж" * 20_000)
        assert len(list_products(api)) == 100
