"""Rows: the attributes that a copy of a record gets."""

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.engine.tables import Record


class BoatRow(ProductRow):
    """A product with attributes that a later version added."""

    hull = UnicodeAttribute()
    masts = NumberAttribute(null=True)


class TestCopiedValues:
    def test_a_copy_gets_every_attribute_that_is_not_excluded(self) -> None:
        boat = BoatRow("W#1#BOAT", "1", name="Vasa", hull="oak", masts=3, sku="V")
        assert boat.copied_values("name", "sku") == {"hull": "oak", "masts": 3, "images": []}

    def test_a_copy_gets_no_attribute_of_the_base_row(self) -> None:
        product = PRODUCTS.new("1", name="Loaf", price=1, status="active", sort_order=1)
        PRODUCTS.set_index_keys(product)
        assert product.copied_values().keys().isdisjoint(Record.get_attributes())
