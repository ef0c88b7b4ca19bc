"""Products in the console, over HTTP."""

from typing import Any

import pytest

from tests.conftest import Owner, call_console
from tests.factories.console import Person, person
from tests.factories.images import drawn, saved
from tests.transports.console.forms.helpers import error_beside, text, value_of

JPEG = saved(drawn(), "JPEG")


@pytest.fixture
def boss(owner: Owner) -> Person:
    return person(owner)


@pytest.fixture
def path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}/products"


def products(owner: Owner) -> list[Any]:
    records: list[Any] = call_console(owner.workspace.id, "list_products")["products"]
    return records


def categories(owner: Owner) -> dict[str, str]:
    records = call_console(owner.workspace.id, "list_categories", kind="product")["categories"]
    return {category["id"]: category["name"] for category in records}


def make(owner: Owner, **fields: Any) -> str:
    response = call_console(
        owner.workspace.id, "create_product", **{"name": "Rye", "price": 100} | fields
    )
    return str(response["product"]["id"])


def test_a_product_with_a_photo_and_a_new_category_is_created_once(
    boss: Person, path: str, owner: Owner
) -> None:
    form = {"name": "Rye", "price": "120,50", "stock": "7", "categoryId": " Bread ", "once": "1"}
    form |= {"active": "yes"}
    for _ in "12":
        answer = boss.post(path, form, files=[("imagesFile", "rye.jpg", JPEG)])
        assert answer.status == 303
    (product,) = products(owner)
    assert (product["price"], product["stock"], product["status"]) == (12_050, 7, "active")
    assert len(product["images"]) == 1
    assert categories(owner) == {product["categoryId"]: "Bread"}
    page = boss.get(answer.headers["Location"])
    assert "The product is added." in text(page)
    assert value_of(page, "categoryId") == "Bread"


@pytest.mark.parametrize(
    ("category", "names"),
    [
        ("bread", {"Bread"}),
        ("Bread / Rye", {"Bread", "Rye"}),
        ("Tea / Green", {"Bread", "Tea / Green"}),
    ],
)
def test_a_category_is_chosen_by_its_name_or_created(
    boss: Person, path: str, owner: Owner, category: str, names: set[str]
) -> None:
    call_console(owner.workspace.id, "create_category", kind="product", name="Bread")
    product_id = make(owner)
    form = {"name": "Rye", "price": "1", "categoryId": category, "active": "yes"}
    assert boss.post(f"{path}/{product_id}", form).status == 303
    assert set(categories(owner).values()) == names
    assert products(owner)[0]["categoryId"]


def test_price_and_stock_are_changed_in_the_list(boss: Person, path: str, owner: Owner) -> None:
    product_id = make(owner, stock=3, description="Sour.")
    page = text(boss.get(f"{path}?status=active"))
    seen = page.split('name="seen" value="')[1].split('"')[0]
    form = {"row": "yes", "seen": seen, "price": "much", "stock": ""}
    answer = boss.post(f"{path}/{product_id}", form)
    assert answer.status == 400
    assert "amount" in error_beside(answer, "price")
    assert value_of(answer, "price") == "much"
    assert value_of(answer, "name") == "Rye"
    answer = boss.post(f"{path}/{product_id}?status=active", {**form, "price": "1.50"})
    assert answer.headers["Location"] == f"{path}?status=active&done=product_saved"
    (product,) = products(owner)
    assert (product["price"], product["stock"], product["description"]) == (150, None, "Sour.")


def test_an_order_meanwhile_is_not_overwritten_by_a_row_of_the_list(
    boss: Person, path: str, owner: Owner
) -> None:
    product_id = make(owner, stock=3)
    seen = text(boss.get(path)).split('name="seen" value="')[1].split('"')[0]
    call_console(owner.workspace.id, "update_product", id=product_id, stockDelta=-1)
    answer = boss.post(
        f"{path}/{product_id}", {"row": "yes", "seen": seen, "price": "1", "stock": "9"}
    )
    assert answer.status == 409
    assert "Now: 2" in text(answer)
    assert products(owner)[0]["stock"] == 2


def test_a_taken_article_and_a_wrong_barcode_are_reported_beside_their_fields(
    boss: Person, path: str, owner: Owner
) -> None:
    make(owner, sku="A1")
    form = {"name": "Rye", "price": "1", "sku": "a1"}
    assert "Another product" in error_beside(boss.post(path, form), "sku")
    answer = boss.post(path, {**form, "sku": "", "barcode": "123"})
    assert "barcode" in error_beside(answer, "barcode")
    assert '<details class="more stack" open>' in text(answer)


def test_an_order_is_named_so_among_the_leads(boss: Person, path: str, owner: Owner) -> None:
    product_id = make(owner)
    field = {"name": "phone", "type": "phone"}
    form = call_console(owner.workspace.id, "create_form", title="Order", fields=[field])["form"]
    submission = {"phone": "+74951234567", "items": [{"productId": product_id, "quantity": 2}]}
    assert (
        owner.api().call("POST", f"/api/public/forms/{form['id']}/submit", submission).status == 200
    )
    assert '<span class="tag">Order</span>' in text(boss.get(path.replace("products", "leads")))
    assert f'<a href="{path.replace("products", "leads")}">Leads</a>' in text(boss.get(path))


def test_a_product_links_to_its_page_on_a_site(boss: Person, path: str, owner: Owner) -> None:
    rye = make(owner)

    def has_link() -> bool:
        return f"/s/bakery/products/{rye}?v=" in text(boss.get(f"{path}/{rye}"))

    here = owner.workspace.id
    site = call_console(here, "create_site", title="Bakery", slug="bakery")["project"]["id"]
    call_console(here, "create_page", projectId=site, title="Home")
    assert not has_link()
    settings = f"{path.removesuffix('products')}sites/{site}"
    shown = {"title": "Bakery", "active": "yes", "showsProducts": "yes"}
    assert boss.post(settings, shown).status == 303
    assert "/s/bakery/products/feed.xml" in text(boss.get(settings))
    assert has_link()
    call_console(here, "update_product", id=rye, status="inactive")
    assert not has_link()
    assert boss.post(settings, {"title": "Bakery", "active": "yes"}).status == 303
    assert "/s/bakery/products/feed.xml" not in text(boss.get(settings))
