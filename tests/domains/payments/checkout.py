"""What visitors, members and the provider do to pay bookings."""

import json
import re
from dataclasses import dataclass
from typing import Any

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.payments.store import payments
from chalicelib.domains.payments.store.payments import PaymentRow, RefundRow
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Answer, Api, Owner, Time, call_console
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon, bookings_of
from tests.fakes.payment_shop import SECRET, FakeShop

visitor = Api(None)
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
START = "2027-01-18T10:00"
PRICE = 150_000
EMAIL = "grace@example.com"


def call_visitor(operation: str, arguments: dict[str, Any]) -> Any:
    """Call an operation as a visitor, and return its response."""
    principal = VisitorPrincipal(visitor="v")
    reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id="r")
    return json.loads(reply.body)["data"]


@dataclass
class Checkout:
    """A salon that takes payments."""

    owner: Owner
    salon: Salon
    time: Time
    shop: FakeShop
    inbox: Inbox

    @classmethod
    def opened(cls, owner: Owner, api: Api, time: Time, shop: FakeShop, inbox: Inbox) -> "Checkout":
        """Open a salon with an account at the provider, and a booking page."""
        salon = Salon.opened(api, requirePayment=True, price=PRICE)
        checkout = cls(owner, salon, time, shop, inbox)
        checkout.set_merchant()
        run_until_idle()
        inbox.clear()  # The owner is told of the account.
        checkout.console("set_booking_page", isOn=True, offer=[salon.service])
        return checkout

    @property
    def workspace(self) -> str:
        """The workspace's id."""
        return self.owner.workspace.id

    def console(self, operation: str, **arguments: Any) -> Any:
        """Call an operation as the owner in the console."""
        account = self.owner.workspace.owner_id
        return call_console(self.workspace, operation, account_id=account, **arguments)

    def set_merchant(self, **fields: Any) -> Any:
        """Set up the account at the provider."""
        body = {"provider": "yookassa", "shopId": "100500", "secret": SECRET, "vatCode": "1"}
        return self.console("set_merchant", **(body | fields))["merchant"]

    def hold(self, start: str = START, **fields: Any) -> str:
        """Book on the booking page, and return the path of the page that pays the booking."""
        response = self.book_on_page(start, **fields)
        return str(response["paymentUrl"]).partition("8000")[2]

    def book_on_page(self, start: str = START, **fields: Any) -> Any:
        """Book on the booking page, and return the response."""
        body = {
            "workspace": self.owner.workspace.slug,
            "serviceId": self.salon.service,
            "startAt": f"{start}:00+03:00",
            "client": {"name": "Grace", "email": EMAIL},
            "language": "en",
            **fields,
        }
        return call_visitor("book_on_page", body)

    def click(self, path: str) -> Answer:
        """Press the button of the page that pays a booking."""
        return visitor.call("POST", path, b"", FORM)

    def view(self, path: str, *, is_back: bool = False) -> str:
        """Return the page that pays a booking."""
        answer = visitor.call("GET", path + ("?back=1" if is_back else ""))
        assert answer.status == 200, answer.body
        return answer.body.decode()

    def hook(self, body: str | None = None, merchant_id: str | None = None) -> Answer:
        """Send a notification of the provider, about the latest payment by default.

        The jobs that it makes due are done.
        """
        if merchant_id is None:
            url = self.console("get_merchant")["merchant"]["hookUrl"]
            merchant_id = url.rpartition("/")[2]
        path = f"/api/public/payments/hooks/{merchant_id}"
        answer = visitor.call("POST", path, (body or self.shop.last_id).encode())
        run_until_idle()
        return answer

    @property
    def booking(self) -> BookingRow:
        """The latest booking of the visitor."""
        rows = [row for row in bookings_of(self.workspace) if row.client_email == EMAIL]
        return max(rows, key=lambda row: row.id)

    @property
    def payments(self) -> list[PaymentRow]:
        """All payments, oldest first."""
        return payments.latest(self.workspace, 100)[::-1]

    @property
    def refunds(self) -> list[RefundRow]:
        """All refunds, oldest first."""
        return payments.refunds_of(self.workspace, [row.id for row in self.payments])

    @property
    def statuses(self) -> list[str]:
        """The statuses of all payments."""
        return [row.status for row in self.payments]

    def run_after(self, **length: float) -> None:
        """Let time pass, and run the jobs that are due."""
        self.time.pass_by(**length)
        run_jobs()
        run_until_idle()

    def subjects(self) -> list[str]:
        """Return the subjects of the e-mails to the client."""
        run_until_idle()
        mails = [mail for mail in self.inbox.mails if mail["To"] == EMAIL]
        return [re.sub(r":.*", "", str(mail["Subject"])) for mail in mails]

    def cancel(self) -> None:
        """Cancel the booking in the console."""
        self.console("set_booking_status", id=self.booking.id, status="cancelled")

    def book_by_key(self, start: str = START) -> Any:
        """Book a time by a key, without a payment."""
        return self.salon.book(start, "Ada", status="confirmed")

    def page_of_booking(self, query: str = "") -> str:
        """Return the page on which the client manages the booking."""
        return visitor.call("GET", self._manage_path + query).body.decode()

    def send_cancellation(self, form: str) -> Answer:
        """Send a form of the page on which the client manages the booking."""
        return visitor.call("POST", self._manage_path, form.encode(), FORM)

    def cancel_by_link(self, form: str = "action=cancel") -> None:
        """Cancel the booking as its client."""
        answer = self.send_cancellation(form)
        assert answer.status == 200, answer.body

    def move_by_link(self, start: str) -> None:
        """Move the booking as its client."""
        token = self._manage_path.rpartition("/")[2]
        call_visitor("move_public_booking", {"token": token, "startAt": start})

    @property
    def _manage_path(self) -> str:
        url = booking_links.page_url(self.workspace, self.booking) or ""
        return url.partition("8000")[2]

    def find(self, booking_id: str) -> BookingRow:
        """Return a booking."""
        return BOOKINGS.require(self.workspace, record_id=booking_id)
