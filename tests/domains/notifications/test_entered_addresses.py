"""Emails reach the mailbox that was entered, in any script."""

from collections.abc import Callable, Iterator

import idna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import UnauthorizedError
from chalicelib.domains.identity.store import console_sessions
from chalicelib.domains.mails.store import suppressions
from chalicelib.gateways.mail import Mail, message
from chalicelib.gateways.mail import ses as provider
from chalicelib.lib import emails
from chalicelib.lib.markup.mails import RenderedMail
from tests.conftest import Api, Owner, call_console, call_operator
from tests.domains.notifications.clients import book
from tests.domains.notifications.inbox import Inbox
from tests.factories.chat import ask, new_bot
from tests.factories.console import begun
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import FORM, submit
from tests.factories.salon import CREATE, Salon

pytestmark = pytest.mark.usefixtures("database")
NOON, ONE = "2027-03-03T12:00:00Z", "2027-03-03T13:00:00Z"
PASSWORD = "correct horse"
MAILBOXES = {
    "chief@ёлка.рф": "chief@xn--80atc1g.xn--p1ai",
    "Ada@faß.de": "Ada@xn--fa-hia.de",
    "ada@ελλάς.gr": "ada@xn--hxarsa0b.gr",
    "Ada.King@Example.com": "Ada.King@example.com",
    "\u2068ada@пример.рф\u2069\u200b": "ada@xn--e1afmkfd.xn--p1ai",
}
"""Entered addresses, and the recipients of their mail."""
NEIGHBOURS = [
    ("chief@ёлка.рф", "chief@елка.рф"),
    ("ada@faß.de", "ada@fass.de"),
    ("ada@ελλάς.gr", "ada@ελλάσ.gr"),
    ("ﬁn@example.com", "fin@example.com"),
    ("АДА@example.com", "ада@example.com"),
]
"""Addresses of different users, which were equal when folded."""
BOTH_ORDERS = [
    *NEIGHBOURS,
    *(pytest.param(*pair[::-1], marks=pytest.mark.slow) for pair in NEIGHBOURS),
]


@pytest.fixture
def salon(api: Api, inbox: Inbox) -> Salon:
    """A salon whose emails are sent."""
    return Salon.opened(api)


def recipients(inbox: Inbox) -> set[str]:
    run_until_idle()
    return {str(message["To"]) for message in inbox.mails}


def signed_in(email: str, password: str = PASSWORD) -> str:
    """Sign in, and return the account."""
    session = console_sessions.find(begun(email, password))
    assert session is not None
    return str(session.account_id)


def stored_address(entered: str) -> str:
    """Return the value of an entered address: its domain is in lower case."""
    local, _, domain = entered.strip("\u2068\u2069\u200b").rpartition("@")
    return f"{local}@{domain.lower()}"


@pytest.mark.parametrize("entered", MAILBOXES)
class TestEveryEntrance:
    def test_a_visitors_booking_is_mailed_to_the_entered_mailbox(
        self, entered: str, salon: Salon, inbox: Inbox, api: Api
    ) -> None:
        booking = book(salon, NOON, entered)["booking"]
        assert MAILBOXES[entered] in recipients(inbox)
        client = api.get(f"/api/bookings/{booking['id']}")["booking"]["client"]
        assert client["email"] == stored_address(entered)

    def test_a_booking_of_the_business_is_mailed_to_the_entered_mailbox(
        self, entered: str, salon: Salon, inbox: Inbox
    ) -> None:
        salon.api.post(CREATE, salon.order(NOON) | {"client": {"name": "A", "email": entered}})
        assert MAILBOXES[entered] in recipients(inbox)

    def test_an_invitation_is_mailed_to_the_entered_mailbox(
        self, entered: str, inbox: Inbox, owner: Owner
    ) -> None:
        invitation = call_operator("invite_member", workspaceId=owner.workspace.id, email=entered)
        assert invitation["email"] == stored_address(entered)
        assert MAILBOXES[entered] in recipients(inbox)

    def test_forms_chats_and_clients_keep_the_entered_address(
        self, entered: str, owner: Owner, api: Api
    ) -> None:
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        lead = submit(form, name="Ada", email=entered)
        stored_lead = api.get(f"/api/forms/collection/{lead}")["lead"]
        assert stored_lead["email"] == stored_lead["data"]["email"] == stored_address(entered)
        ask(new_bot(owner), f"Write to {entered} please")
        chats = api.get("/api/forms/collection-list?size=1")["collections"]
        assert chats[0]["email"] == stored_address(entered)
        assert chats[0]["clientId"] == stored_lead["clientId"]
        body = {"id": stored_lead["clientId"], "email": entered}
        assert api.post("/api/clients/update", body)["client"]["email"] == stored_address(entered)

    def test_an_account_signs_in_in_any_case_of_ascii_letters(
        self, entered: str, owner: Owner
    ) -> None:
        account = call_operator("create_account", email=entered, password=PASSWORD)
        assert account["email"] == stored_address(entered)
        for spelling in (entered, entered.swapcase() if entered.isascii() else entered):
            assert signed_in(spelling) == account["accountId"]


@pytest.mark.parametrize(("one", "other"), BOTH_ORDERS)
class TestNeighbours:
    def test_different_addresses_are_two_clients(self, one: str, other: str, api: Api) -> None:
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        leads = [submit(form, name=email, email=email) for email in (one, other, one, other)]
        ids = [api.get(f"/api/forms/collection/{lead_id}")["lead"]["clientId"] for lead_id in leads]
        assert ids[:2] == ids[2:]
        assert ids[0] != ids[1]
        for client, email in zip(ids, (one, other), strict=False):
            page = api.get(f"/api/forms/collection-find?email={email}")
            assert {listed_lead["email"] for listed_lead in page["leads"]} == {email}
            assert (page["total"], page["client"]["id"]) == (2, client)

    def test_different_addresses_are_two_accounts(self, one: str, other: str) -> None:
        account = call_operator("create_account", email=one, password=PASSWORD)
        with pytest.raises(UnauthorizedError):
            begun(other, PASSWORD)
        second = call_operator("create_account", email=other, password="other horse")
        assert signed_in(one) == account["accountId"]
        assert signed_in(other, "other horse") == second["accountId"]

    def test_different_addresses_are_erased_separately(
        self, one: str, other: str, api: Api, owner: Owner
    ) -> None:
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        leads = [submit(form, name=email, email=email, message=email) for email in (one, other)]
        call_operator("erase_client", workspaceId=owner.workspace.id, email=one)
        emails = [api.get(f"/api/forms/collection/{lead_id}")["lead"]["email"] for lead_id in leads]
        assert emails == [None, other]

    def test_different_addresses_are_suppressed_separately(self, one: str, other: str) -> None:
        suppressions.suppress(one, "complaint")
        assert suppressions.reason(one) == "complaint"
        assert suppressions.reason(other) is None
        assert call_operator("allow_mail", email=one)["wasSuppressed"] is True
        assert suppressions.reason(one) is None

    def test_invitation_of_a_similar_address_ends_no_other(
        self, one: str, other: str, owner: Owner
    ) -> None:
        for email in (one, other, one):
            call_operator("invite_member", workspaceId=owner.workspace.id, email=email)
        invitations = call_console(owner.workspace.id, "list_invitations")["invitations"]
        assert [invitation["email"] for invitation in invitations] == [one, other]


def test_a_second_contact_with_the_address_of_a_client_is_refused(api: Api) -> None:
    form = api.post("/api/forms/create", FORM)["form"]["id"]
    ids = [
        api.get(f"/api/forms/collection/{submit(form, name='A', email=email)}")["lead"]["clientId"]
        for email in ("ada@faß.de", "ada@fass.de")
    ]
    for client, taken_email in zip(ids, ("ADA@FASS.DE", "Ada@Faß.de"), strict=True):
        answer = api.call_refused(
            "POST", "/api/clients/update", {"id": client, "email": taken_email}
        )
        assert answer.data["code"] == "duplicate_client"
    updated = api.post("/api/clients/update", {"id": ids[0], "email": "ada@ελλάς.gr"})["client"]
    assert updated["email"] == "ada@ελλάς.gr"
    freed = api.post("/api/clients/update", {"id": ids[1], "email": "ada@faß.de"})["client"]
    assert freed["email"] == "ada@faß.de"


@pytest.fixture
def ses(
    salon: Salon, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[list[str]]:
    """Send mail through SES after the salon has opened, and return the recipients."""
    recipients: list[str] = []
    monkeypatch.setattr(provider, "send", lambda mail: recipients.append(mail.recipient))
    monkeypatch.setenv("MAIL", "ses")
    monkeypatch.setenv("MAIL_FROM", "mail@example.com")
    reload_settings()
    yield recipients
    monkeypatch.undo()
    reload_settings()


def test_email_to_an_address_that_ses_rejects_is_unsupported(
    salon: Salon, ses: list[str], owner: Owner, api: Api
) -> None:
    addresses = {"ада@пример.рф": "withheld", "ada@пример.рф": "waiting"}
    for start, address in zip((NOON, ONE), addresses, strict=True):
        booking = book(salon, start, address)["booking"]
        assert api.get(f"/api/bookings/{booking['id']}")["booking"]["client"]["email"] == address
    for address, state in addresses.items():
        invited = call_operator("invite_member", workspaceId=owner.workspace.id, email=address)
        assert (invited["mail"], invited["email"]) == (state, address)
    run_until_idle()
    assert [recipient for recipient in ses if recipient.isascii()] == ses
    assert ses.count("ada@xn--e1afmkfd.xn--p1ai") == 2
    response = call_console(
        owner.workspace.id, "get_notifications", account_id=owner.workspace.owner_id
    )
    assert {reason for reason, count in response["withheld"].items() if count} == {"unsupported"}


LABELS = st.text(
    "abcABCёйЁßẞςΣσéÉİıﬁﬀKſａＺ\u0301\u00ad\u200b\u202e-09ñ日本", min_size=1, max_size=8
)
LOCALS = st.text("adzADZ09ёЁßςİﬁ\ufeff\u2060_+", min_size=1, max_size=8)


@given(LOCALS, LABELS, st.sampled_from(["de", "РФ", "рф", "Com", "ΕΛ"]))
def test_email_goes_to_the_entered_address(local: str, label: str, top: str) -> None:
    """Only UTS 46 defines the host of the entered domain."""
    value = emails.find_email(f"{local}@{label}.{top}")
    if value is None:
        return
    entered_local = local.translate(dict.fromkeys(map(ord, "\ufeff\u2060")))
    visible = label.replace("\u202e", "")
    a_label = idna.encode(f"{visible}.{top}", uts46=True).decode()
    assert value.rpartition("@")[0] == entered_local
    assert idna.encode(value.rpartition("@")[2], uts46=True).decode() == a_label
    raw = message.build(
        Mail(id="1", origin="w", recipient=value, content=RenderedMail("", "", "")), "a@b.example"
    )
    assert raw.recipient == f"{entered_local}@{a_label}"
    assert emails.find_email(value) == value
    assert emails.key(emails.mailbox(value)) == emails.key(value)
