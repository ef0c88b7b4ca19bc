"""People who wait for a free time of a salon with one time a day."""

from dataclasses import dataclass
from typing import Any

from chalicelib.core import clock
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Answer, Api, Time
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import ALL_DAYS, Salon

PATH = "/api/bookings/waiting"
PUBLIC = "/api/public/bookings/waiting"
DAY = "2027-01-18"
"""A Monday, three days from now."""
TEN = f"{DAY}T10:00"
AN_HOUR = [{"weekdays": ALL_DAYS, "start": "10:00", "end": "11:00"}]
visitor = Api(None)


def email_of(name: str) -> str:
    """Return the address of a person."""
    return f"{name.lower()}@example.com"


@dataclass(frozen=True)
class Line:
    """The line of a salon for a day."""

    salon: Salon
    day: str = DAY

    @classmethod
    def of_full_day(cls, api: Api, day: str = DAY) -> "Line":
        """Open a salon with one time a day, which is booked on a day."""
        line = cls(Salon.opened(api, rules=AN_HOUR), day)
        line.book("Holder")
        return line

    def book(self, name: str) -> str:
        """Book the time of the day, and return the id of the booking."""
        booking_id: str = self.salon.book(f"{self.day}T10:00", name)["id"]
        return booking_id

    def cancel(self) -> None:
        """Cancel the bookings of the day."""
        listed = self.salon.api.get("/api/bookings/list?size=100&status=confirmed")["bookings"]
        for booking in listed:
            assert self.salon.set_status(booking["id"], "cancelled").status == 200

    def add(self, name: str, **fields: Any) -> Any:
        """Let a client wait, as the business does."""
        return self.salon.api.post(PATH, self.body(name, **fields))["waitingEntry"]

    def remove(self, entry: Any) -> bool:
        """Remove one who waits."""
        answer = self.salon.api.call("DELETE", f"{PATH}?id={entry['id']}")
        assert answer.status == 200, answer.body
        return bool(answer.data["deleted"])

    def body(self, name: str, **fields: Any) -> dict[str, Any]:
        """Return the body of a request to wait."""
        client = {"name": name, "email": email_of(name)}
        return {"serviceId": self.salon.service, "day": self.day, "client": client, **fields}

    def join(self, name: str, **fields: Any) -> Answer:
        """Wait as a visitor."""
        return visitor.call("POST", PUBLIC, self.body(name, **fields))

    def joined(self, name: str, **fields: Any) -> str:
        """Wait as a visitor, and return the token."""
        url: str = visitor.post(PUBLIC, self.body(name, **fields))["waitingUrl"]
        return url.rpartition("/")[2]

    @property
    def waiting(self) -> list[Any]:
        """All who wait, in order."""
        waiting: list[Any] = self.salon.api.get(f"{PATH}?serviceId={self.salon.service}")["waiting"]
        return waiting

    @property
    def names(self) -> list[str]:
        """The names of all who wait, in order."""
        return [each["name"] for each in self.waiting]

    @property
    def offered_to(self) -> str | None:
        """Who has an offer that stands."""
        now = clock.iso(clock.now())
        names = [
            each["name"]
            for each in self.waiting
            if each["offeredUntil"] and each["offeredUntil"] > now
        ]
        assert len(names) < 2
        return names[0] if names else None


def run(time: Time, **later: float) -> None:
    """Let time pass, and run all jobs that are due."""
    time.pass_by(**later)
    while run_jobs()["waiting-line"] or run_jobs()["waiting-days"]:
        pass
    run_until_idle()
