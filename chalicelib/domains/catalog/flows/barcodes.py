"""Look up barcodes in open databases, and cache articles for 30 days."""

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

CACHE_TTL = timedelta(days=30)
# Shorter than ``CACHE_TTL``, because open databases add barcodes every day.
NOT_FOUND_CACHE_TTL = timedelta(days=1)
# Rate limit of one open database, for the whole platform. Its documentation requires it.
DATABASE_LIMIT = Limit(
    "barcode-reads", "barcode look-ups per minute", 15, timedelta(minutes=1), fails_open=True
)
WORKSPACE_LIMIT = Limit(
    "barcode-share", "barcode look-ups per workspace and day", 500, timedelta(days=1)
)


def look_up(workspace_id: str, barcode: Barcode) -> Found | None:
    """Return an article from the open databases, or None if no database has the barcode.

    Raises:
        LookupFailedError: some databases could not be reached. This result is not cached.
    """
    # A barcode for in-store use is another article in each shop.
    if barcode.in_store:
        return None

    def request() -> dict[str, Any] | None:
        article = barcodes.look_up(barcode, admits=partial(_within_limits, workspace_id))
        return asdict(article) if article else None

    article = cached(
        "barcodes",
        key=barcode.gtin14,
        ttl=CACHE_TTL,
        produce=request,
        ttl_of_none=NOT_FOUND_CACHE_TTL,
    )
    return Found(**article) if article else None


def _within_limits(workspace_id: str, source: str) -> bool:
    try:
        # The workspace's share is taken first, so a busy workspace does not use up the others'
        # limit.
        limits.take(WORKSPACE_LIMIT, f"{workspace_id}:{source}")
        limits.take(DATABASE_LIMIT, f"{PLATFORM}:{source}")
    except RateLimitedError:
        return False
    return True
