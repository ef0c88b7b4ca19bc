"""Jobs that fold existing rows again after the folding rules change, so that searches find them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from chalicelib.application import refolding as flow
from chalicelib.core.settings import settings
from chalicelib.core.text import fold
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.engine.connection import connection
from chalicelib.engine.listing import declaration, lookups
from chalicelib.engine.listing.index_entries import TextRow, texts_partition
from chalicelib.engine.listing.lookups import LookupRow
from chalicelib.transports import scheduled_functions
from infra.operator import refolding
from tests.conftest import Api, Owner, Time
from tests.factories.products import LIST, create, read, update

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def former_folding(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Fold text with the former rule, which keeps diacritics, for the duration of a block."""

    @contextmanager
    def former() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(declaration, "search_fold", fold)
            yield

    return former


def store_former_key(owner: Owner, product: Any) -> None:
    """Move the claim on a product's SKU to the key of the former rule, which kept double spaces."""
    row = PRODUCTS.find(owner.workspace.id, record_id=product["id"])
    assert row is not None
    (sku, *_) = PRODUCTS.lookups
    change = lookups.key_change(sku, owner.workspace.id, noun=PRODUCTS.noun, record=row)
    assert change is not None
    change.former.save()
    change.current.delete()


def sku_claim_rules(owner: Owner, product: Any) -> set[str]:
    """Return the rules, current or former, under which a product's SKU is claimed."""
    row = PRODUCTS.find(owner.workspace.id, record_id=product["id"])
    assert row is not None
    (sku, *_) = PRODUCTS.lookups
    change = lookups.key_change(sku, owner.workspace.id, noun=PRODUCTS.noun, record=row)
    if change is None:
        return set()
    return {
        name
        for name, key in change._asdict().items()
        if key.pk in {r.pk for r in change.existing_for(row.id)}
    }


def fold_again(time: Time) -> int:
    """Start the refolding as a deployment does, and run its jobs.

    Return the number of jobs scheduled.
    """
    configured = settings()
    scheduled = refolding.schedule(
        connection().client, f"{configured.table_prefix}-{configured.stage}"
    )
    time.pass_by(minutes=2)
    scheduled_functions.run_jobs()
    return scheduled


def names(api: Api, query: str) -> list[str]:
    """Return the names in a list response."""
    return [product["name"] for product in api.get(f"{LIST}?{query}")["products"]]


def test_rows_of_the_former_rule_are_found_after_refolding(
    api: Api, time: Time, former_folding: Callable[[], Any]
) -> None:
    with former_folding():
        category = api.post("/api/categories/create", {"name": "Sweets"})["category"]["id"]
        create(api, "Café crème", categoryId=category)
        create(api, "Bread")
    assert names(api, "q=cafe") == []
    assert fold_again(time) > 0
    for query in ("q=cafe", "q=caf%C3%A9", f"q=creme&categoryId={category}"):
        assert names(api, query) == ["Café crème"], query
    assert names(api, "sort=name") == ["Bread", "Café crème"]


def submit(api: Api, text: str) -> None:
    """Submit a workspace's form with this message."""
    fields = [{"name": "email", "type": "email"}, {"name": "text", "type": "textarea"}]
    form = api.post("/api/forms/create", {"title": "Contact", "fields": fields})["form"]["id"]
    body = {"email": "ada@example.com", "text": text}
    Api(None).post(f"/api/public/forms/{form}/submit", body)


def leads_with(api: Api, search: str) -> int:
    """Return the number of leads that match a search."""
    total: int = api.get(f"/api/forms/collection-list?search={search}")["total"]
    return total


def long_texts(owner: Owner) -> list[str]:
    """Return the overflow rows of leads whose search text is too long for an index entry."""
    return [
        row.whole for row in TextRow.partition(texts_partition(owner.workspace.id, noun="LEAD"))
    ]


@pytest.mark.parametrize("length", [2_000, 6_000])
def test_overflow_search_texts_are_refolded(
    length: int, api: Api, owner: Owner, time: Time, former_folding: Callable[[], Any]
) -> None:
    with former_folding():
        submit(api, f"Crème {'x' * length} Ångström")
    assert leads_with(api, "angstrom") == 0
    fold_again(time)
    assert (leads_with(api, "angstrom"), leads_with(api, "creme")) == (1, 1)
    (text,) = long_texts(owner)
    assert "ångström" not in text


def test_a_text_that_fits_after_refolding_loses_its_overflow_row(
    api: Api, owner: Owner, time: Time, former_folding: Callable[[], Any]
) -> None:
    with former_folding():
        submit(api, "\u1ea5" * 400)
    assert len(long_texts(owner)) == 1
    fold_again(time)
    assert long_texts(owner) == []
    assert leads_with(api, "a" * 200) == 1


def test_refolding_keeps_a_records_version_and_update_time(
    api: Api, owner: Owner, time: Time, former_folding: Callable[[], Any]
) -> None:
    with former_folding():
        product = create(api, "Café", sku="A  1")
    product_before = PRODUCTS.find(owner.workspace.id, record_id=product["id"])
    fold_again(time)
    product_after = PRODUCTS.find(owner.workspace.id, record_id=product["id"])
    assert product_before is not None
    assert product_after is not None
    assert (product_after.version, product_after.updated_at) == (
        product_before.version,
        product_before.updated_at,
    )
    assert read(api, product) == product


def test_refolding_jobs_continue_until_all_records_are_done(
    api: Api, time: Time, former_folding: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "SLICE", 2)
    monkeypatch.setattr(flow, "SECONDS", 0)
    with former_folding():
        for number in range(7):
            create(api, f"Café {number}")
    fold_again(time)
    assert names(api, "q=cafe") == []  # The first job has moved on to another type of record.
    while scheduled_functions.run_jobs()["refold"]:
        pass
    assert len(names(api, "q=cafe")) == 7


def test_refolding_twice_changes_nothing(
    api: Api, owner: Owner, time: Time, former_folding: Callable[[], Any]
) -> None:
    with former_folding():
        create(api, "Café", sku="A  1")
    fold_again(time)
    first = connection().client.scan(TableName=settings().table_name("content"))["Items"]
    flow.job(owner.workspace.id, time.now).save()
    scheduled_functions.run_jobs()
    rows_after = connection().client.scan(TableName=settings().table_name("content"))["Items"]
    assert rows_after == first


def test_a_current_version_schedules_no_refolding(time: Time, owner: Owner) -> None:
    assert fold_again(time) == 2  # one for the workspace and one for the platform
    assert fold_again(time) == 0
    configured = settings()
    refolding.forget(connection().client, f"{configured.table_prefix}-{configured.stage}")
    assert fold_again(time) == 2


class TestSkuRefolding:
    def test_an_sku_with_double_spaces_is_found_by_single_spaces(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        product = create(api, "Loaf", sku="A  1")
        store_former_key(owner, product)
        assert names(api, "sku=A+1") == []
        fold_again(time)
        assert names(api, "sku=A+1") == names(api, "sku=a%20%20%201") == ["Loaf"]
        assert sku_claim_rules(owner, product) == {"current"}
        assert (
            api.call_refused(
                "POST", "/api/products/create", {"name": "B", "price": 1, "sku": "a 1"}
            ).data["code"]
            == "sku_taken"
        )

    def test_a_product_with_a_colliding_sku_is_still_found_by_its_name(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        first = create(api, "First", sku="A  1")
        store_former_key(owner, first)
        second = create(api, "Second", sku="A   1")
        store_former_key(owner, second)
        fold_again(time)
        assert names(api, "sku=A+1") == ["First"]
        assert names(api, "q=second") == ["Second"]
        assert read(api, second)["sku"] == "A   1"
        assert update(api, second, price=7)["price"] == 7
        assert names(api, "sku=A+1") == ["First"]
        api.post("/api/products/delete", {"id": second["id"]})
        assert names(api, "sku=A+1") == ["First"]

    def test_a_colliding_sku_is_found_once_it_is_made_unique(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        for name, sku in (("First", "A  1"), ("Second", "A   1")):
            product = create(api, name, sku=sku)
            store_former_key(owner, product)
        fold_again(time)
        update(api, product, sku="B 1")
        assert names(api, "sku=b+1") == ["Second"]
        assert names(api, "sku=a+1") == ["First"]

    @pytest.mark.parametrize("change", ["price", "sku", "delete"])
    def test_a_product_updated_before_its_refolding_leaves_no_stale_claim(
        self, change: str, api: Api, owner: Owner, time: Time
    ) -> None:
        product = create(api, "Loaf", sku="A  1")
        store_former_key(owner, product)
        if change == "delete":
            api.post("/api/products/delete", {"id": product["id"]})
        else:
            update(api, product, **{change: {"price": 5, "sku": "B"}[change]})
        fold_again(time)
        assert names(api, "sku=A+1") == (["Loaf"] if change == "price" else [])
        stale_claims = [
            row
            for row in connection().client.scan(TableName=LookupRow.Meta.table_name)["Items"]
            if "#BY#sku#" in row["pk"]["S"]
        ]
        assert len(stale_claims) == (0 if change == "delete" else 1)

    @pytest.mark.parametrize("other", ["a 1", " A   1 ", "A\u00a01", "\ufeffA 1"])
    def test_new_skus_that_differ_only_in_white_space_collide(self, other: str, api: Api) -> None:
        create(api, "Loaf", sku="A 1")
        refusal = api.call_refused(
            "POST", "/api/products/create", {"name": "B", "price": 1, "sku": other}
        )
        assert (refusal.status, refusal.data["code"]) == (409, "sku_taken")
        items = [{"sku": other, "price": 9}, {"sku": "A 2", "name": "New", "price": 1}]
        results = api.post("/api/products/upsert", {"items": items})["results"]
        assert [result["created"] for result in results] == [False, True]
