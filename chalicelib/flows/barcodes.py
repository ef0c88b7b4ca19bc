"""What the world knows of a barcode, each asked about outside once a month."""

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from chalicelib.gateways import barcodes
from chalicelib.gateways.barcodes import Found
from chalicelib.rules.barcodes import Barcode
from chalicelib.store.cache import cached

KEPT = timedelta(days=30)
UNKNOWN_KEPT = timedelta(days=1)
"""Open databases grow: what nobody knows today may be there tomorrow."""


def look_up(barcode: Barcode) -> Found | None:
    """Return what the open databases say of an article, or None if none of them knows it.

    A number that a shop gave itself is neither asked about nor kept: elsewhere it is another thing.

    Raises:
        LookupFailedError: not everybody could be asked; that is not kept.
    """
    if barcode.in_store:
        return None

    def ask() -> dict[str, Any] | None:
        found = barcodes.look_up(barcode)
        return asdict(found) if found else None

    kept = cached("barcodes", barcode.gtin14, KEPT, ask, ttl_of_none=UNKNOWN_KEPT)
    return Found(**kept) if kept else None
