"""The tables in which many products or services are changed at once."""

import re
from html import unescape
from typing import Any

import pytest

from chalicelib.transports.http import HttpResponse
from tests.conftest import Api, Owner
from tests.factories.console import Person, person
from tests.transports.console.forms.helpers import error_beside, text, value_of


@pytest.fixture
def boss(owner: Owner) -> Person:
    return person(owner)


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}/products/many"


@pytest.fixture
def ids(api: Api) -> list[str]:
    """Products of 100, 200 and 300 rubles."""
    return [
        api.post("/api/products/create", {"name": f"P{n}", "price": n * 10_000})["product"]["id"]
        for n in (1, 2, 3)
    ]


def product(api: Api, product_id: str) -> Any:
    return api.get(f"/api/products/{product_id}")["product"]


def prices(api: Api, ids: list[str]) -> list[int]:
    return [product(api, product_id)["price"] for product_id in ids]


def controls(page: HttpResponse) -> dict[str, list[str]]:
    """Return the inputs of a page's form, as a browser would send them with nothing ticked."""
    fields: dict[str, list[str]] = {}
    for tag in re.findall(r"<input [^>]*>", text(page)):
        name, value = re.search(r' name="([^"]*)"', tag), re.search(r' value="([^"]*)"', tag)
        if name and ('type="checkbox"' not in tag or " checked" in tag):
            fields.setdefault(name[1], []).append(unescape(value[1]) if value else "")
    return fields


def send(boss: Person, path: str, fields: dict[str, Any], **typed: Any) -> HttpResponse:
    values = {"seen": "", **fields, **typed}
    pairs = [
        (name, each)
        for name, value in values.items()
        for each in ([value] if isinstance(value, str) else value)
        if name != "csrf"
    ]
    return boss.post(path, pairs)


def typed_in(ids: list[str], **values: str) -> dict[str, str]:
    """Return controls such as ``price-ID`` by names such as ``price0``."""
    return {f"{name[:-1]}-{ids[int(name[-1])]}": value for name, value in values.items()}


class TestSaveAll:
    def test_the_rows_that_were_changed_are_saved_and_no_others(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        before = product(api, ids[2])["updatedAt"]
        fields = controls(boss.get(path))
        typed = typed_in(ids, price0="150", name1="Rye", stock1="7")
        answer = send(boss, path, fields, do="save", **typed)
        assert answer.headers["Location"] == f"{path}?done=many_saved"
        assert prices(api, ids) == [15_000, 20_000, 30_000]
        assert (product(api, ids[1])["name"], product(api, ids[1])["stock"]) == ("Rye", 7)
        assert product(api, ids[2])["updatedAt"] == before

    def test_a_row_that_another_user_has_changed_is_shown_and_the_others_are_saved(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        fields = controls(boss.get(path))
        api.post("/api/products/update", {"id": ids[0], "price": 77_700})
        typed = typed_in(ids, price0="150", price1="250")
        answer = send(boss, path, fields, do="save", **typed)
        assert answer.status == 409
        assert prices(api, ids) == [77_700, 25_000, 30_000]
        assert value_of(answer, f"price-{ids[0]}") == "150"
        assert "777" in text(answer)
        again = send(boss, path, controls(answer), do="save")
        assert again.headers["Location"] == f"{path}?done=many_saved"
        assert prices(api, ids) == [15_000, 25_000, 30_000]

    def test_a_change_of_another_field_by_another_user_is_kept(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        fields = controls(boss.get(path))
        api.post("/api/products/update", {"id": ids[0], "stock": 5})
        send(boss, path, fields, do="save", **typed_in(ids, price0="150"))
        saved = product(api, ids[0])
        assert (saved["price"], saved["stock"]) == (15_000, 5)

    def test_a_refused_value_stays_beside_its_row(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        fields = controls(boss.get(path))
        typed = typed_in(ids, price0="cheap", price1="250")
        answer = send(boss, path, fields, do="save", **typed)
        assert answer.status == 409
        assert f'id="price-{ids[0]}-error"' in text(answer)
        assert f'href="#price-{ids[0]}"' in text(answer)
        assert value_of(answer, f"price-{ids[0]}") == "cheap"
        assert prices(api, ids) == [10_000, 25_000, 30_000]

    def test_a_row_whose_product_was_deleted_is_named(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        fields = controls(boss.get(path))
        api.post("/api/products/delete", {"id": ids[0]})
        answer = send(boss, path, fields, do="save", **typed_in(ids, price0="150", price1="250"))
        assert answer.status == 409
        assert "P1" in text(answer)
        assert product(api, ids[1])["price"] == 25_000

    def test_a_refused_row_is_shown_although_the_filter_leaves_it_out(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        page = f"{path}?q=P1"
        fields = controls(boss.get(page))
        api.post("/api/products/update", {"id": ids[0], "name": "Theirs"})
        answer = send(boss, page, fields, do="save", **typed_in(ids, name0="Mine"))
        assert value_of(answer, f"name-{ids[0]}") == "Mine"


class TestTickedRows:
    def test_ticked_products_go_to_the_archive_and_back(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        for do, status in (("archive", "inactive"), ("restore", "active")):
            fields = controls(boss.get(path))
            answer = send(boss, path, fields, do=do, pick=ids[:2])
            assert answer.headers["Location"] == f"{path}?done=many_saved"
            assert [product(api, i)["status"] for i in ids] == [status, status, "active"]

    def test_ticked_products_get_a_category_and_lose_it(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        body = {"name": "Bread", "kind": "product"}
        category = api.post("/api/categories/create", body)["category"]["id"]
        for chosen, stored in ((category, category), ("-", None)):
            fields = controls(boss.get(path))
            send(boss, path, fields, do="category", category=chosen, pick=[ids[0]])
            assert product(api, ids[0])["categoryId"] == stored

    @pytest.mark.parametrize("do", ["archive", "category", "preview"])
    def test_nothing_ticked_changes_nothing_and_keeps_what_was_typed(
        self, do: str, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        fields = controls(boss.get(path))
        answer = send(boss, path, fields, do=do, **typed_in(ids, price0="150"))
        assert answer.status == 400
        assert value_of(answer, f"price-{ids[0]}") == "150"

    def test_rows_that_are_not_saved_are_saved_first(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        fields = controls(boss.get(path))
        answer = send(
            boss, path, fields, do="archive", pick=[ids[1]], **typed_in(ids, price0="150")
        )
        assert answer.status == 400
        assert value_of(answer, f"price-{ids[0]}") == "150"
        assert product(api, ids[1])["status"] == "active"

    def test_a_button_ticks_all_rows_and_keeps_what_was_typed(
        self, boss: Person, path: str, ids: list[str]
    ) -> None:
        fields = controls(boss.get(path))
        answer = send(boss, path, fields, do="tick", **typed_in(ids, price0="150"))
        assert set(controls(answer)["pick"]) == set(ids)
        assert value_of(answer, f"price-{ids[0]}") == "150"


RULE = {"direction": "raise", "kind": "percent", "ruleValue": "5", "roundTo": "10"}


class TestPrices:
    def preview(self, boss: Person, path: str, ids: list[str], **rule: str) -> HttpResponse:
        fields = controls(boss.get(path))
        return send(boss, path, fields, do="preview", pick=ids, **{**RULE, **rule})

    def test_a_preview_changes_nothing_and_its_button_changes_the_prices_once(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        page = self.preview(boss, path, ids)
        assert page.status == 200
        assert prices(api, ids) == [10_000, 20_000, 30_000]
        form = controls(page)
        assert [form[f"from-{i}"] for i in ids] == [["10000"], ["20000"], ["30000"]]
        answers = [send(boss, path, form, do="apply") for _ in "12"]
        assert {a.headers["Location"] for a in answers} == {f"{path}?done=prices_changed"}
        assert prices(api, ids) == [11_000, 21_000, 32_000]

    def test_a_second_preview_of_the_same_prices_changes_none_again(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        first, second = (controls(self.preview(boss, path, ids)) for _ in "12")
        send(boss, path, first, do="apply")
        answer = send(boss, path, second, do="apply")
        assert answer.status == 409
        assert prices(api, ids) == [11_000, 21_000, 32_000]

    def test_a_price_that_was_changed_meanwhile_is_shown_and_the_others_are_changed(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        form = controls(self.preview(boss, path, ids, direction="lower", ruleValue="10,5 %"))
        api.post("/api/products/update", {"id": ids[0], "price": 77_700})
        answer = send(boss, path, form, do="apply")
        assert answer.status == 409
        assert prices(api, ids) == [77_700, 18_000, 27_000]
        again = controls(answer)
        assert again["pick"] == [ids[0]]
        preview = send(boss, path, again, do="preview")
        assert controls(preview)[f"from-{ids[0]}"] == ["77700"]

    def test_an_amount_never_lowers_a_price_below_zero(
        self, boss: Person, path: str, api: Api, ids: list[str]
    ) -> None:
        rule = {"kind": "amount", "direction": "lower", "ruleValue": "150", "roundTo": ""}
        send(boss, path, controls(self.preview(boss, path, ids, **rule)), do="apply")
        assert prices(api, ids) == [0, 5_000, 15_000]

    @pytest.mark.parametrize(
        ("field", "rule"),
        [
            ("ruleValue", {"ruleValue": ""}),
            ("ruleValue", {"ruleValue": "0"}),
            ("ruleValue", {"ruleValue": "much"}),
            ("ruleValue", {"ruleValue": "101", "direction": "lower"}),
            ("ruleValue", {"ruleValue": "0", "kind": "amount"}),
            ("roundTo", {"roundTo": "ten"}),
        ],
    )
    def test_a_rule_that_cannot_be_read_is_reported_beside_its_control(
        self, field: str, rule: dict[str, str], boss: Person, path: str, ids: list[str]
    ) -> None:
        answer = self.preview(boss, path, ids, **rule)
        assert answer.status == 400
        assert error_beside(answer, field)
        assert set(controls(answer)["pick"]) == set(ids)


def test_services_are_changed_in_a_table_too(boss: Person, owner: Owner, api: Api) -> None:
    body = {"name": "Cut", "durationMin": 60, "price": 149_000}
    service = api.post("/api/services/create", body)["service"]["id"]
    path = f"/console/w/{owner.workspace.slug}/services/many"
    fields = controls(boss.get(path))
    typed = typed_in([service], durationMin0="1:30", name0="Long cut")
    send(boss, path, fields, do="save", **typed)
    page = send(boss, path, controls(boss.get(path)), do="preview", pick=[service], **RULE)
    send(boss, path, controls(page), do="apply")
    saved = api.get(f"/api/services/{service}")["service"]
    assert (saved["name"], saved["durationMin"], saved["price"]) == ("Long cut", 90, 156_000)
