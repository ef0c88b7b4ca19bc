"""Made-up records: the same for the same seed, counted, and gone on with after a stop."""

from itertools import islice

import pytest

from chalicelib.store import categories, counters
from chalicelib.store.products import PRODUCTS
from chalicelib.store.queries import Query
from infra.seed import BATCH, records, seed

pytestmark = pytest.mark.usefixtures("database")


def test_the_same_seed_makes_the_same_records_and_a_longer_run_begins_with_them() -> None:
    def values(count: int, number: int) -> list[dict[str, object]]:
        made = records("w", "products", count, number)
        return [record.attribute_values for record in made]

    assert values(5, 1) == values(9, 1)[:5]
    assert values(5, 1) != values(5, 2)


def test_a_stopped_run_goes_on_where_it_was() -> None:
    assert sum(islice(seed("w", "products", 500), 2)) == 2 * BATCH
    begun = counters.read("w", "PRODUCT")["total"]
    assert 2 * BATCH <= begun < 500
    assert sum(seed("w", "products", 500)) == 500
    assert counters.read("w", "PRODUCT")["total"] == 500
    assert counters.read("w", "CATEGORY")["total"] == 40
    made = {category.id for category in categories.tree("w")}
    assert {product.category_id for product in records("w", "products", 500, 1)} <= made
    assert PRODUCTS.page("w", Query(1, 20, "price")).total == 500
    assert sum(seed("w", "products", 500)) == 500
    assert counters.read("w", "PRODUCT")["total"] == 500
