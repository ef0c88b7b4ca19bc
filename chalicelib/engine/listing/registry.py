"""Registry of the listings, by row class and by noun.

A noun is the name of a kind of record, such as ``PRODUCT``. Its listing declares how records of the
kind are indexed, sorted and searched.
"""

from typing import Any, TypeVar

from chalicelib.core.manifest import Declarations, manifest
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.tables import Record, Row

R = TypeVar("R", bound=Record)

LISTINGS: dict[type[Row], Listing[Any]] = {}
"""Listings by row class. ``register_listing`` adds them."""
NOUNS: Declarations[Listing[Any]] = Declarations(manifest().nouns)
"""Listings by noun. Reading one imports the module that declares it, if necessary."""


def register_listing(listing: Listing[R]) -> Listing[R]:
    """Register a listing and return it. Units of work then index and count its records.

    Call it in the module that defines the row class.
    """
    NOUNS.declare(listing.noun, listing, listing.row.__module__)
    LISTINGS[listing.row] = listing
    return listing


def listing_of(noun: str) -> Listing[Any]:
    """Return the listing of a noun."""
    return NOUNS[noun]
