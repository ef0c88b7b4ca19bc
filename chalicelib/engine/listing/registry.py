"""Registry of the listings, by row class and by noun, such as ``PRODUCT``."""

from typing import Any, TypeVar

from chalicelib.core.manifest import Declarations, manifest
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.tables import Record, Row

R = TypeVar("R", bound=Record)

LISTINGS: dict[type[Row], Listing[Any]] = {}  # by row class; ``register_listing`` adds them
# Reading a noun imports the module that declares it, if necessary.
NOUNS: Declarations[Listing[Any]] = Declarations(manifest().nouns)


def register_listing(listing: Listing[R]) -> Listing[R]:
    """Register a listing in its row's module, so that units of work index its records."""
    NOUNS.declare(listing.noun, listing, listing.row.__module__)
    LISTINGS[listing.row] = listing
    return listing


def listing_of(noun: str) -> Listing[Any]:
    """Return the listing of a noun."""
    return NOUNS[noun]
