"""The part of a booking page's URL that chooses services and staff, to book a visit again."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

ANYONE = "any"  # Value of ``staff`` if any free member of the staff will do.
SEPARATOR = "."  # between the ids of the services that follow the first one in a visit


class Part(NamedTuple):
    """A service of a visit, and who does it."""

    service_id: str
    resource_id: str


def path(visit: Sequence[Part]) -> str:
    """Return the path below the page's URL, with its query.

    >>> path([Part("cut", "anna"), Part("colour", "olga")])
    'cut?staff=any&then=colour'
    """
    first, *further = visit
    people = {part.resource_id for part in visit}
    # A named person would do all that is theirs, so those who shared a visit are not named.
    query = {"staff": first.resource_id if len(people) == 1 else ANYONE}
    if further:
        query["then"] = SEPARATOR.join(part.service_id for part in further)
    return f"{first.service_id}?{urlencode(query)}"
