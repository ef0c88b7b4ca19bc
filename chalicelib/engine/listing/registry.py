"""The registry of nouns: the listing of each, by its row class and by its name."""

from typing import Any, TypeVar

from chalicelib.core.manifest import Declarations, manifest
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.tables import Record, Row

R = TypeVar("R", bound=Record)

LISTINGS: dict[type[Row], Listing[Any]] = {}
"""The listing of each noun's row class; nouns register theirs with ``listed``."""
NOUNS: Declarations[Listing[Any]] = Declarations(manifest().nouns)
"""The same by the noun; all are known, whether or not their modules are imported."""


def listed(listing: Listing[R]) -> Listing[R]:
    """Register a noun's listing, so that units index and count its records.

    It belongs into the module of its row class.
    """
    NOUNS.declare(listing.noun, listing, listing.row.__module__)
    LISTINGS[listing.row] = listing
    return listing


def listing_of(noun: str) -> Listing[Any]:
    """Return the listing of a noun."""
    return NOUNS[noun]
