"""The registry of nouns: the listing of each, by its row class and by its name."""

from typing import Any, TypeVar

from chalicelib.core.manifest import Declarations, manifest
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.tables import Record, Row

R = TypeVar("R", bound=Record)

LISTINGS: dict[type[Row], Listing[Any]] = {}
"""The listing of each noun's row class. Nouns register theirs with ``listed``."""
NOUNS: Declarations[Listing[Any]] = Declarations(manifest().nouns)
"""Listings by noun. All names are known, even if their modules are not imported yet."""


def listed(listing: Listing[R]) -> Listing[R]:
    """Register a noun's listing, so that units of work index and count its records.

    Call it in the module of the row class.
    """
    NOUNS.declare(listing.noun, listing, listing.row.__module__)
    LISTINGS[listing.row] = listing
    return listing


def listing_of(noun: str) -> Listing[Any]:
    """Return the listing of a noun."""
    return NOUNS[noun]
