"""A workspace with more records of each noun than any page shows."""

from typing import Any

from chalicelib.engine.listing.registry import listing_of
from chalicelib.engine.unit import run_unit
from tests.conftest import call_console
from tests.factories.console import Place

TOTALS = {
    "SERVICE": 121,
    "RESOURCE": 113,
    "FORM": 107,
    "SITE": 103,
    "PAGE": 109,
    "PRODUCT": 127,
    "CLIENT": 131,
    "LEAD": 137,
    "BOOKING": 139,
    "DIALOG": 149,
    "FILE": 151,
    "AGENT": 21,
    "KNOWLEDGE": 100,
    "CATEGORY": 37,
}
"""Records of each noun, or the maximum that a workspace may have."""
PLACES = {"AGENT": "bot", "KNOWLEDGE": "source", "RESOURCE": "staff"}
"""Fields of ``Place`` with the record that is copied, if they are not the noun's name."""
BATCH = 20


def name_of(noun: str, number: int) -> str:
    """Return the name of a record, such as ``Serviceab``."""
    return noun.title() + "".join(chr(ord("a") + digit) for digit in divmod(number, 26))


def seed(here: Place) -> None:
    """Copy the workspace's record of each noun until there are as many as ``TOTALS`` says."""
    call_console(here.workspace_id, "create_category", name="Categoryzz")
    for noun, total in TOTALS.items():
        listing = listing_of(noun)
        (entry, *_) = listing.entries(here.workspace_id)
        known = getattr(here, PLACES.get(noun, noun.lower()), entry.id)
        (original,) = listing.fetch(here.workspace_id, [known])
        have = len(listing.entries(here.workspace_id))
        copies = [copy_of(here, listing, original, number) for number in range(total - have)]
        while copies:
            batch, copies = copies[:BATCH], copies[BATCH:]

            def stage(unit: Any, batch: Any = batch) -> None:
                for copy in batch:
                    unit.create(copy)

            run_unit(here.workspace_id, None, stage)


def copy_of(here: Place, listing: Any, original: Any, number: int) -> Any:
    values = original.copied_values("resource_ids", "client_id", "named_contacts", "deletion_id")
    name = name_of(listing.noun, number)
    for attribute in ("name", "title", "words", "client_name"):
        if attribute in values or hasattr(type(original), attribute):
            values[attribute] = name
    for attribute in ("slug", "sku"):
        if attribute in values:
            values[attribute] = name.lower()
    if "phone" in values:
        values |= {"phone": None, "email": f"{name.lower()}@example.com"}
    return listing.new(here.workspace_id, **values)


NAMES = {noun: {name_of(noun, number) for number in range(total)} for noun, total in TOTALS.items()}
