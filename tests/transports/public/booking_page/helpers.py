"""A visitor of a booking page who opens steps and sends the form."""

import html
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from tests.conftest import Answer, Api, Owner, call_console
from tests.factories.salon import Salon

NOON = "2027-03-03T12:00:00Z"
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
RUSSIAN = {"Accept-Language": "ru"}
GRACE = {"name": "Grace", "email": "grace@example.com"}
visitor = Api(None)


@dataclass(frozen=True)
class BookingPage:
    """The booking page of a salon."""

    owner: Owner
    salon: Salon

    @classmethod
    def opened(cls, owner: Owner, salon: Salon, **settings: Any) -> "BookingPage":
        """Switch the page on, with the salon's service."""
        page = cls(owner, salon)
        page.set(isOn=True, offer=[salon.service], **settings)
        return page

    def set(self, **settings: Any) -> Any:
        """Change the switches of the page."""
        return call_console(self.owner.workspace.id, "set_booking_page", **settings)

    @property
    def home(self) -> str:
        """Path of the page."""
        return f"/book/{self.owner.workspace.slug}"

    @property
    def path(self) -> str:
        """Path of the salon's service."""
        return f"{self.home}/{self.salon.service}"

    def get(
        self, path: str | None = None, headers: dict[str, str] | None = None, **query: str
    ) -> Answer:
        """Open a step."""
        url = f"{path or self.path}?{urlencode(query)}" if query else path or self.path
        return visitor.call("GET", url, headers=headers)

    def send(
        self, start: str = NOON, *, headers: dict[str, str] | None = None, **fields: str
    ) -> Answer:
        """Send the form. Contacts are Grace's unless others are given."""
        form = {"at": start, "staff": "", "once": "", **GRACE, **fields}
        body = urlencode(form).encode()
        return visitor.call("POST", self.path, body, FORM | (headers or {}))

    @property
    def bookings(self) -> list[Any]:
        """All bookings of the workspace."""
        bookings: list[Any] = self.owner.api().get("/api/bookings/list?size=100")["bookings"]
        return bookings


def text(answer: Answer) -> str:
    """Return the source of a page with entities decoded."""
    return html.unescape(answer.body.decode())


def links(answer: Answer, **query: str) -> list[str]:
    """Return the links of a page whose query has these values, or any value if it is empty."""
    hrefs = re.findall(r'href="([^"]+)"', text(answer))
    query_parts = [f"{name}={value}" for name, value in query.items()]
    return [href for href in hrefs if all(part in href for part in query_parts)]


def value_of(answer: Answer, name: str) -> str:
    """Return the value of a field of the form."""
    value = re.search(rf'<input[^>]* name="{name}"[^>]* value="([^"]*)"', answer.body.decode())
    assert value, answer.body.decode()
    return html.unescape(value[1])


def error_of(answer: Answer, name: str) -> str:
    """Return the error message of a field, to which the summary links."""
    page = text(answer)
    error = re.search(rf'id="{name}-error">([^<]*)<', page)
    assert error, page
    assert f'href="#{name}">{error[1]}<' in page
    assert re.search(rf'id="{name}"[^>]*aria-invalid="true"', page)
    return error[1]


def manage_path(answer: Answer) -> str:
    """Return the path of the link that the page of a new booking contains."""
    path = re.search(r"/booking/[\w=-]{64}", answer.body.decode())
    assert path, answer.body.decode()
    return path[0]
