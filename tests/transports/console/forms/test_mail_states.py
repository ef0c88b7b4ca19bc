"""The console shows the state of e-mails, and a user proves an address by the mailed link."""

from urllib.parse import urlsplit

import pytest

from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.identity.flows import emails
from chalicelib.domains.identity.store import accounts, invitations
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.mails.store.mail_log import Reason
from chalicelib.engine.unit import run_unit
from tests.factories.console import Person, World, invite
from tests.transports.console.forms.helpers import text

REASONS = [reason for reason in Reason.__args__ if reason != "unproved"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize(
    ("state", "message"),
    [("withheld", "was not notified."), ("waiting", "has not been notified yet.")],
)
def test_a_booking_says_that_its_client_was_not_told_and_why(
    world: World, reason: str, state: str, message: str
) -> None:
    home, path = world.here.workspace_id, f"{world.here.path}/bookings/{world.here.booking}"
    console_owner = world.person("boss")
    assert "told" not in text(console_owner.get(path))
    booking = BOOKINGS.require(home, record_id=world.here.booking)
    entry = bookings.mail_entry(
        home, booking, "m", kind="cancelled", channel="mail", state=state, reason=reason
    )
    run_unit(home, None, lambda unit: unit.save(entry))
    page = text(console_owner.get(path))
    assert f"The client {message}" in page
    assert "mail_reason" not in page
    booking_mail = bookings.mail_entry(
        home, booking, "m", kind="cancelled", channel="mail", state="sent"
    )
    run_unit(home, None, lambda unit: unit.save(booking_mail))
    assert f"The client {message}" not in text(console_owner.get(path))


def test_the_list_of_invitations_says_what_became_of_the_mail(world: World) -> None:
    console_owner = world.person("boss")
    token = invite(world.here.workspace_id, "ivy@example.com")
    row = invitations.find(token)
    assert row
    for state, reason, message in [
        ("waiting", "by_address", "The e-mail is waiting to be sent."),
        ("withheld", "by_bounce", "The e-mail was not sent"),
        ("sent", None, "The link was sent by e-mail."),
    ]:
        invitations.note_mail(row, state, reason)
        assert message in text(console_owner.get(f"{world.here.path}/members"))


def test_a_person_proves_the_address_by_the_mailed_link_after_signing_in(world: World) -> None:
    account = accounts.require_by_email("boss@example.com")
    account.update([AccountRow.awaits_proof.set(True)])
    path = urlsplit(emails.proof_page_url(account)).path
    guest = Person("boss@example.com")
    assert "/console/sign-in?next=" in guest.get(path).headers["Location"]
    console_owner, other = world.person("boss"), world.person("member")
    assert "Your address is not confirmed" in text(console_owner.get("/console/account"))
    assert other.post(path).status == 404
    assert not accounts.get(account.id).is_proved
    assert "Confirm address" in text(console_owner.get(path))
    assert not accounts.get(account.id).is_proved
    assert console_owner.post(path).headers["Location"] == "/console/account?done=email_proved"
    assert accounts.get(account.id).is_proved
    assert "not confirmed" not in text(console_owner.get("/console/account"))
