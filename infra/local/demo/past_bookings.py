"""Bookings of the last weeks, which reports show."""

import random
from datetime import timedelta

from chalicelib.core import clock
from infra.local.demo import school
from infra.local.demo.caller import Caller
from infra.local.demo.texts import Language

WEEKS = 8
MOST_EACH = 3  # bookings of a week
OUTCOMES = (["completed", "no_show", "cancelled"], [8, 1, 1])


def make_past_bookings(do: Caller, language: Language) -> None:
    """Create the bookings of the last weeks that are missing, each with its outcome."""
    today = clock.now().date()
    listed = do("list_bookings", to=str(today - timedelta(days=1)), size=100)["bookings"]
    there = {(each["client"]["name"], each["startLocal"][:16]): each for each in listed}
    offer = school.load(language)
    # A service with dates has no other times.
    names = [service.name for service in offer.services if service.dates is None]
    services = [each for each in do("list_services", size=100)["services"] if each["name"] in names]
    dice = random.Random("bookings")  # noqa: S311  repeatable by intent
    for week in range(WEEKS, 0, -1):
        for number in range(dice.randrange(1, MOST_EACH + 1)):
            start = (
                f"{today - timedelta(weeks=week) + timedelta(days=2 * number)}T{10 + 3 * number}:00"
            )
            service, guest = dice.choice(services)["id"], dice.randrange(len(offer.guests))
            outcome = dice.choices(*OUTCOMES)[0]
            name = offer.guests[guest]
            booking = (
                there.get((name, start))
                or do(
                    "create_booking",
                    serviceId=service,
                    startAt=start,
                    client={"name": name, "phone": f"+7 916 555-02-0{guest}"},
                    ignoreSchedule=True,
                )["booking"]
            )
            if booking["status"] != outcome:
                do("set_booking_status", id=booking["id"], status=outcome)
