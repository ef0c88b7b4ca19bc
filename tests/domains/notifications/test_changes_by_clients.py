"""Members are told when a client changes something, as they are of a new booking."""

from urllib.parse import urlencode

import pytest

from chalicelib.domains.identity.store import accounts
from chalicelib.domains.notifications.store import choices
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, call_console
from tests.domains.notifications.helpers import link, new_member
from tests.domains.notifications.inbox import Inbox, choose, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things
from tests.factories.payments import pay_booking
from tests.factories.salon import Salon
from tests.fakes.telegram import FakeTelegram
from tests.transports.public.booking_page.helpers import FORM, BookingPage, manage_path

pytestmark = pytest.mark.usefixtures("database")
NOON, TWO = "2027-03-03T12:00:00Z", "2027-03-03T14:00:00Z"
BOB, OLGA = "bob@example.com", "olga@example.com"


@pytest.fixture
def salon(api: Api, inbox: Inbox) -> Salon:
    return Salon.opened(api, resources=[{"name": "Bob"}, {"name": "Olga"}])


@pytest.fixture
def page(owner: Owner, salon: Salon) -> BookingPage:
    return BookingPage.opened(owner, salon)


def book(page: BookingPage) -> str:
    """Book with Bob as a client, and return the path of the client's link."""
    return manage_path(page.send(NOON, staff=page.salon.resources[0]))


def send(path: str, **fields: str) -> None:
    """Send a form of the page behind the client's link."""
    answer = Api(None).call("POST", path, urlencode(fields).encode(), FORM)
    assert answer.status in {200, 303}, answer.body


def move(path: str, salon: Salon, resource: int = 0) -> None:
    send(path, action="move", at=TWO, resource=salon.resources[resource])


def subjects(inbox: Inbox, address: str) -> list[str]:
    """Return the beginnings of the subjects of the mails to an address."""
    run_until_idle()
    mails = [mail for mail in inbox.mails if mail["To"] == address]
    return sorted(str(mail["Subject"]).partition(":")[0] for mail in mails)


def boss(owner: Owner) -> str:
    return accounts.get(owner.workspace.owner_id).email


def test_the_owner_is_told_by_mail_and_telegram_when_a_client_moves_a_booking(
    owner: Owner, page: BookingPage, inbox: Inbox, telegram: FakeTelegram
) -> None:
    link(owner, 7)
    # The owner chose the channels of new bookings before moved ones had a kind of their own.
    row = choices.ChoicesRow(
        f"W#{owner.workspace.id}#NOTIFY",
        owner.workspace.owner_id,
        chosen={"booking.mail": True, "booking.telegram": True},
        language="en",
    )
    row.save()
    path = book(page)
    run_until_idle()
    inbox.clear()
    move(path, page.salon)
    assert subjects(inbox, boss(owner)) == ["Booking moved"]
    (mail,) = (mail for mail in inbox.mails if mail["To"] == boss(owner))
    assert "Was: Wednesday, 3 March 2027, 15:00" in text_of(mail)
    assert "Time: Wednesday, 3 March 2027, 17:00" in text_of(mail)
    assert [text.partition(":")[0] for text in telegram.texts] == ["New booking", "Booking moved"]
    assert "Grace" not in telegram.texts[-1]


def test_a_move_between_members_of_the_staff_is_told_to_both(
    owner: Owner, page: BookingPage, inbox: Inbox
) -> None:
    choose(owner, owner.workspace.owner_id, "owner", booking=[])
    for number, address in enumerate((BOB, OLGA)):
        arguments = {"accountId": new_member(owner, address)}
        resource = page.salon.resources[number]
        call_console(owner.workspace.id, "link_member", **arguments, resourceId=resource)
    run_until_idle()
    inbox.clear()
    path = book(page)
    run_until_idle()
    move(path, page.salon, resource=1)
    assert subjects(inbox, BOB) == ["Запись перенесена", "Новая запись"]
    assert subjects(inbox, OLGA) == ["Запись перенесена"]
    send(path, action="cancel")
    assert "Запись отменена" in subjects(inbox, OLGA)
    assert "Запись отменена" not in subjects(inbox, BOB)
    assert subjects(inbox, boss(owner)) == ["Booking cancelled", "Booking moved"]


def test_the_owner_is_told_that_a_booking_is_paid_and_that_money_is_returned(
    owner: Owner, api: Api, inbox: Inbox
) -> None:
    choose(owner, owner.workspace.owner_id, "owner", "en", lead=[])
    booking = Salon.opened(api, requirePayment=True).book(NOON)
    pay_booking(owner.workspace.id, booking["id"])
    run_until_idle()
    assert "Booking paid" in subjects(inbox, boss(owner))
    (mail,) = (mail for mail in inbox.mails if str(mail["Subject"]).startswith("Booking paid"))
    assert "Paid: 1,500 ₽" in text_of(mail).replace("\u00a0", " ")
    (payment,) = call_console(owner.workspace.id, "list_payments")["payments"]
    call_console(owner.workspace.id, "refund_payment", id=payment["id"])
    run_jobs()
    assert "Refund done" in subjects(inbox, boss(owner))
    assert "Оплата возвращена" in subjects(inbox, "ada@example.com")
    (mail,) = (m for m in inbox.mails if str(m["Subject"]).startswith("Оплата возвращена"))
    assert "Возврат: 1 500 ₽" in text_of(mail).replace("\u00a0", " ")
    assert "тем же способом" in text_of(mail)


def test_members_are_told_of_replaced_contacts_but_not_of_new_ones(
    owner: Owner, api: Api, inbox: Inbox, things: Things
) -> None:
    choose(owner, owner.workspace.owner_id, "owner", "en", lead=[])
    api.post("/api/clients/update", {"id": things.client, "notes": "Likes rye."})
    client_id = things.client
    api.post("/api/clients/update", {"id": client_id, "phone": "+74951234568"})
    assert subjects(inbox, boss(owner)) == []
    api.post("/api/clients/update", {"id": client_id, "email": "eve@example.com"})
    assert subjects(inbox, boss(owner)) == ["Contacts changed"]
    assert "eve@example.com" in text_of(inbox.only())
