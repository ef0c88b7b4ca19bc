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
    """Create bookings of the last weeks with their outcomes, unless there are some."""
    today = clock.now().date()
    yesterday = str(today - timedelta(days=1))
    if do("list_bookings", to=yesterday, size=1)["bookings"]:
        return
    offer = school.load(language)
    # A service with dates has no other times.
    names = [service.name for service in offer.services if service.dates is None]
    services = [each for each in do("list_services", size=100)["services"] if each["name"] in names]
    dice = random.Random("bookings")  # noqa: S311  repeatable by intent
    for week in range(WEEKS, 0, -1):
        for number in range(dice.randrange(1, MOST_EACH + 1)):
            day = today - timedelta(weeks=week) + timedelta(days=2 * number)
            guest = dice.randrange(len(offer.guests))
            booking = do(
                "create_booking",
                serviceId=dice.choice(services)["id"],
                startAt=f"{day}T{10 + 3 * number}:00",
                client={"name": offer.guests[guest], "phone": f"+7 916 555-02-0{guest}"},
                ignoreSchedule=True,
            )["booking"]
            outcome = dice.choices(*OUTCOMES)[0]
            do("set_booking_status", id=booking["id"], status=outcome)
