"""Products: their records, their order, changes of many at once, and help with filling them in."""

from chalicelib.domains.products import assistance, bulk, order, records, upsert

__all__ = ["assistance", "bulk", "order", "records", "upsert"]
