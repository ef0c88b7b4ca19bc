"""Two synthetic nouns for large lists: appointments, read by time, and contacts with tags."""

import random
from datetime import timedelta
from typing import Any

from pynamodb.attributes import ListAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import Record
from infra.local.seed import FIRST_MADE_AT, NOUNS, WORDS

TAGS = [f"tag-{number}" for number in range(20)]
MINUTES_BETWEEN = 20
"""Interval between the starts of two appointments. 50,000 appointments fill almost two years."""


class AppointmentRow(Record):
    """An appointment."""

    starts_at = UTCDateTimeAttribute()
    client = UnicodeAttribute()
    resource_id = UnicodeAttribute()
    notes = UnicodeAttribute()
    status = UnicodeAttribute()


APPOINTMENTS = register_listing(
    Listing(
        row=AppointmentRow,
        noun="APPOINTMENT",
        text=lambda each: (each.client,),
        status="status",
        facets=("resource_id",),
        counted=("resource_id",),
        partitioned=("resource_id",),
        numbers=("starts_at",),
        sorts={"startAt": "n1", "createdAt": "id"},
        indexes=(SortIndex("startAt"),),
    )
)


class ContactRow(Record):
    """A contact with tags and a submitted text, about 2 KB."""

    name = UnicodeAttribute()
    tags: ListAttribute[Any] = ListAttribute(default=list)
    submitted = UnicodeAttribute()


CONTACTS = register_listing(
    Listing(
        row=ContactRow,
        noun="CONTACT",
        text=lambda each: (each.name, each.submitted),
        tags=("tags",),
        sorts={"createdAt": "id"},
    )
)


def _appointment(number: int, dice: random.Random) -> dict[str, Any]:
    return {
        "starts_at": FIRST_MADE_AT + timedelta(minutes=MINUTES_BETWEEN * number),
        "client": f"{dice.choice(WORDS)} {dice.randrange(10**6)}".capitalize(),
        "resource_id": f"resource-{dice.randrange(10)}",
        "notes": " ".join(dice.choices(WORDS, k=60)),
        "status": dice.choice(("confirmed", "confirmed", "completed", "cancelled")),
    }


def _contact(number: int, dice: random.Random) -> dict[str, Any]:
    return {
        "name": f"{dice.choice(WORDS)} {number}".capitalize(),
        "tags": dice.sample(TAGS, k=dice.randrange(4)),
        "submitted": " ".join(dice.choices(WORDS, k=190)) + f" No. {number:05}",
    }


NOUNS |= {"appointments": (APPOINTMENTS, _appointment), "contacts": (CONTACTS, _contact)}
