"""The pages of payments, as a member of a workspace reads them."""

import csv
from typing import Any, get_args

import pytest

from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.notifications.rules.client_mail_texts import Kind
from chalicelib.domains.notifications.rules.waiting_texts import WaitingKind
from chalicelib.domains.payments.store import payments
from chalicelib.transports.console.bookings import payments as payment_pages
from tests.conftest import Owner, Time, call_console
from tests.factories.console import person
from tests.factories.payments import record_payments
from tests.factories.salon import Salon
from tests.support.restoring import Snapshots


@pytest.fixture
def booking_ids(owner: Owner, snapshots: Snapshots) -> list[str]:
    """Three bookings, each with a payment whose refund has failed."""

    def make() -> list[str]:
        home, salon = owner.workspace, Salon.opened(owner.api())
        hours = (12, 14, 16)
        ids = [salon.book(f"2027-03-03T{hour}:00", ignoreSchedule=True)["id"] for hour in hours]
        for booking_id in ids:
            record_payments(home.id, home.owner_id, booking_id)
        return ids

    return [*snapshots.once_upon_equal_rows("bookings with payments", make)]


def test_a_file_has_all_payments_with_the_states_that_the_page_shows(
    owner: Owner, booking_ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payment_pages, "MAX_PAGE", 2)
    call_console(owner.workspace.id, "set_booking_status", id=booking_ids[0], status="cancelled")
    path, user = f"/console/w/{owner.workspace.slug}/payments", person(owner)
    html = user.get(path).body.decode()
    rows = csv.DictReader(user.get(f"{path}?format=csv").body.decode("utf-8-sig").splitlines())
    states = [row["State"] for row in rows]
    assert sorted(states) == ["Refund due", "Refund failed", "Refund failed"]
    assert all(html.count(f">{state}</span>") == states.count(state) for state in set(states))


def test_a_file_has_local_times_with_their_offset(
    owner: Owner, time: Time, booking_ids: list[str]
) -> None:
    """The day of the page begins at midnight in the zone of the workspace, too."""
    path, user = f"/console/w/{owner.workspace.slug}/payments", person(owner)
    file = user.get(f"{path}?format=csv&day=2027-01-15").body.decode("utf-8-sig")
    rows = list(csv.DictReader(file.splitlines()))
    assert {row["Created"] for row in rows} == {"2027-01-15T15:00:00+03:00"}
    assert {row["Paid at"] for row in rows} == {"2027-01-15T15:00:00+03:00"}


@pytest.mark.parametrize("path", ["", "/payments/{payment}"])
def test_a_payment_of_another_booking_is_not_refunded(
    owner: Owner, booking_ids: list[str], path: str
) -> None:
    ours, other = (
        bookings.BOOKINGS.require(owner.workspace.id, record_id=it) for it in booking_ids[:2]
    )
    stored = list_payments(owner)
    for booking in (ours, other):
        ids = [it["id"] for it in stored if it["bookingId"] == booking.id]
        booking.payment_ids = ids
        booking.save()
    payment = other.payment_ids[0]
    page = f"/console/w/{owner.workspace.slug}/bookings/{ours.id}{path.format(payment=payment)}"
    form = {"action": "cancelled", "refund": payment, "amount": "100"}
    assert person(owner).post(page, form).status == 404
    assert bookings.BOOKINGS.require(owner.workspace.id, record_id=ours.id).status == "confirmed"
    assert list_payments(owner) == stored


OF_NO_BOOKING = {"link", *get_args(WaitingKind)}
"""Kinds of messages to people who have no booking yet."""


@pytest.mark.parametrize("language", ["ru", "en"])
@pytest.mark.parametrize("kind", [kind for kind in get_args(Kind) if kind not in OF_NO_BOOKING])
def test_a_booking_shows_each_mail_to_its_client(
    owner: Owner, booking_ids: list[str], kind: str, language: str
) -> None:
    workspace_id = owner.workspace.id
    booking = bookings.BOOKINGS.require(workspace_id, record_id=booking_ids[0])
    for state in ("sent", "withheld"):
        entry = bookings.mail_entry(
            workspace_id, booking, state, kind=kind, channel="mail", state=state, reason="by_plan"
        )
        entry.save()
    path = f"/console/w/{owner.workspace.slug}/bookings/{booking.id}"
    answer = person(owner).get(path, Accept_Language=language)
    assert answer.status == 200


@pytest.mark.parametrize(
    ("amount", "text"),
    [("", "Укажите сумму"), (" ", "Укажите сумму"), ("0", "Укажите"), ("99999", "меньшую сумму")],
)
def test_a_refund_without_a_valid_amount_is_refused(
    owner: Owner, booking_ids: list[str], amount: str, text: str
) -> None:
    payment = next(it for it in list_payments(owner) if it["bookingId"] == booking_ids[0])
    booking = bookings.BOOKINGS.require(owner.workspace.id, record_id=booking_ids[0])
    booking.payment_ids = [payment["id"]]
    booking.save()
    path = f"/console/w/{owner.workspace.slug}/bookings/{booking_ids[0]}/payments/{payment['id']}"
    answer = person(owner).post(path, {"amount": amount}, Accept_Language="ru")
    assert answer.status in {400, 409}
    assert text in answer.body.decode()
    assert list_payments(owner, bookingIds=booking_ids[:1]) == [payment]


@pytest.mark.store
@pytest.mark.parametrize("query", ["before=%00", "before=-", "day=2027-01-15&before=00"])
def test_a_page_before_all_payments_is_empty(
    owner: Owner, booking_ids: list[str], query: str
) -> None:
    answer = person(owner).get(f"/console/w/{owner.workspace.slug}/payments?{query}")
    assert answer.status == 200
    assert booking_ids[0] not in answer.body.decode()


def list_payments(owner: Owner, **filters: list[str]) -> list[Any]:
    response = call_console(owner.workspace.id, "list_payments", **filters)
    return list(response["payments"])


def test_a_file_of_too_many_payments_is_refused(
    owner: Owner, booking_ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payment_pages, "MAX_PAGE", 1)
    monkeypatch.setattr(payment_pages, "MAX_ROWS", 2)
    answer = person(owner).get(f"/console/w/{owner.workspace.slug}/payments?format=csv")
    assert answer.status == 413


def test_an_imported_payment_is_refunded_at_its_provider(
    owner: Owner, booking_ids: list[str]
) -> None:
    workspace_id = owner.workspace.id
    booking = bookings.BOOKINGS.require(workspace_id, record_id=booking_ids[0])
    payment_id = next(it["id"] for it in list_payments(owner) if it["bookingId"] == booking.id)
    booking.payment_ids = [payment_id]
    booking.save()
    payment = payments.require(workspace_id, payment_id=payment_id)
    payment.is_imported = True
    payment.save()
    path, user = f"/console/w/{owner.workspace.slug}/bookings/{booking.id}", person(owner)
    html = user.get(path).body.decode()
    assert "Refund it at the payment provider" in html
    assert "retry=" not in html
    (refund,) = payments.refunds_of(workspace_id, [payment_id])
    refund_path = f"{path}/payments/{payment_id}"
    assert user.post(refund_path, {"amount": "10", "once": "1"}).status == 409
    assert user.post(refund_path, {"retry": refund.id}).status == 409
