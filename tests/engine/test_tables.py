"""Creating tables, and the attributes that a copy of a record receives."""

from datetime import date
from typing import Any

import pytest
from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.connection import TableConnection
from pynamodb.exceptions import TableError

from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.engine.tables import ControlRow, DateAttribute, Record, ensure_tables


class BoatRow(ProductRow):
    """A product with attributes that a later version added."""

    hull = UnicodeAttribute()
    masts = NumberAttribute(null=True)
    launched = DateAttribute(null=True)


class TestCopiedValues:
    def test_a_copy_gets_every_attribute_that_is_not_excluded(self) -> None:
        boat = BoatRow("W#1#BOAT", "1", name="Vasa", hull="oak", masts=3, sku="V")
        assert boat.copied_values("name", "sku") == {"hull": "oak", "masts": 3, "images": []}

    def test_a_copy_gets_no_attribute_of_the_base_row(self) -> None:
        product = PRODUCTS.new("1", name="Loaf", price=1, status="active", sort_order=1)
        PRODUCTS.set_index_keys(product)
        assert product.copied_values().keys().isdisjoint(Record.get_attributes())


def test_a_table_is_made_even_if_the_answer_to_its_creation_is_lost(
    database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ControlRow.delete_table()
    create, lost = TableConnection.create_table, [TableError("a repeated request finds the table")]

    def losing(table: TableConnection, **options: Any) -> None:
        create(table, **options)
        if lost:
            raise lost.pop()

    monkeypatch.setattr(TableConnection, "create_table", losing)
    assert ensure_tables() == [ControlRow.Meta.table_name]
    assert ControlRow.exists()
    assert ensure_tables() == []


def test_a_date_is_stored_as_iso_text() -> None:
    boat = BoatRow("W#1#BOAT", "1", name="Vasa", hull="oak", launched=date(1627, 8, 10))
    item = {"launched": {"S": "1627-08-10"}}
    assert boat.serialize(null_check=False).items() >= item.items()
    boat.launched = None
    boat.deserialize(item)
    assert boat.launched == date(1627, 8, 10)
