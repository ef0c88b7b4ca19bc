"""The price of an SMS segment by country, which the operator sets for all owners."""

from pynamodb.attributes import NumberAttribute

from chalicelib.core.principals import PLATFORM
from chalicelib.engine.tables import LedgerRow
from chalicelib.engine.unit import UnitOfWork

_PARTITION = f"W#{PLATFORM}#SMS-PRICE"


class SmsPriceRow(LedgerRow):
    """The price of a country. Its sort key is the country's ISO 3166 code."""

    kopecks = NumberAttribute(null=True)  # a segment; None: no SMS to this country

    @property
    def country(self) -> str:
        return self.sk


def find(country: str) -> int | None:
    """Return the kopecks of a segment to a country, or None if no SMS is sent there."""
    row = SmsPriceRow.find(_PARTITION, country)
    return None if row is None or row.kopecks is None else int(row.kopecks)


def read_all() -> dict[str, int]:
    """Return the kopecks of a segment by country."""
    rows = SmsPriceRow.partition(_PARTITION)
    return {row.country: int(row.kopecks) for row in rows if row.kopecks is not None}


def stage(unit: UnitOfWork, country: str, *, kopecks: int | None) -> None:
    """Stage the price of a country, or that it has none: rows of the ledger are never deleted."""
    unit.save(SmsPriceRow(_PARTITION, country, kopecks=kopecks))
