"""What the world knows of a barcode, each asked about outside once a month."""

from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

from chalicelib.core.errors import RateLimitedError
from chalicelib.core.limits import Limit
from chalicelib.core.principals import PLATFORM
from chalicelib.engine import limits
from chalicelib.engine.cache import cached
from chalicelib.gateways import barcodes
from chalicelib.gateways.barcodes import Found
from chalicelib.lib.barcodes import Barcode

KEPT = timedelta(days=30)
UNKNOWN_KEPT = timedelta(days=1)
"""Open databases grow: what nobody knows today may be there tomorrow."""
BUDGET = Limit("barcode-reads", "look-ups a minute", 15, timedelta(minutes=1), fails_open=True)
"""What each open database allows (their documentation), for the whole platform."""
SHARE = Limit("barcode-share", "look-ups a workspace and day", 500, timedelta(days=1))


def look_up(workspace_id: str, barcode: Barcode) -> Found | None:
    """Return what the open databases say of an article, or None if none of them knows it.

    A number that a shop gave itself is neither asked about nor kept: elsewhere it is another thing.

    Raises:
        LookupFailedError: not everybody could be asked; that is not kept.
    """
    if barcode.in_store:
        return None

    def ask() -> dict[str, Any] | None:
        found = barcodes.look_up(barcode, admits=partial(_admits, workspace_id))
        return asdict(found) if found else None

    kept = cached("barcodes", barcode.gtin14, KEPT, ask, ttl_of_none=UNKNOWN_KEPT)
    return Found(**kept) if kept else None


def _admits(workspace_id: str, source: str) -> bool:
    """Whether a source may be asked once more, by its own rules and within the share."""
    try:
        limits.take(SHARE, f"{workspace_id}:{source}")
        limits.take(BUDGET, f"{PLATFORM}:{source}")
    except RateLimitedError:
        return False
    return True
