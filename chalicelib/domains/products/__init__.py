"""Products: their records, their order, and changes of many at once."""

from chalicelib.domains.products import bulk, order, records

__all__ = ["bulk", "order", "records"]
