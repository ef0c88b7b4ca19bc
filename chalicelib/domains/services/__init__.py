"""Services: their records, and help with filling them in."""

from chalicelib.domains.services import assistance, records

__all__ = ["assistance", "records"]
