"""Tests of rows whose e-mail addresses the last release folded, and of a rollback."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core.errors import UnauthorizedError
from chalicelib.core.settings import settings
from chalicelib.core.text import fold
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.mails.store import suppressions
from chalicelib.domains.mails.store.suppressions import SuppressionRow
from chalicelib.engine.claims import ClaimRow, name_hash
from chalicelib.engine.connection import connection
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.lookups import Lookup, LookupRow
from chalicelib.lib import emails
from chalicelib.transports import scheduled_functions
from infra.operator import refolding
from tests.conftest import Api, Owner, Time, call_operator
from tests.factories.chat import ask, new_bot
from tests.factories.console import begun
from tests.factories.salon import Salon

pytestmark = pytest.mark.usefixtures("database")
TYPED, FOLDED = "chief@ёлка.рф", "chief@елка.рф"
PAIRS = [(TYPED, FOLDED), ("ada@faß.de", "ada@fass.de")]
"""Addresses as entered and as the last release folded them, with and without other letters."""
NOON = "2027-03-03T12:00:00Z"
PASSWORD = "correct horse"
Former = Callable[[], Any]


@pytest.fixture
def last_release(monkeypatch: pytest.MonkeyPatch) -> Former:
    """Return a context in which addresses are stored and found as by the last release."""
    entered = emails.normalize_email

    @contextmanager
    def former() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(emails, "normalize_email", lambda text: fold(entered(text)))
            patch.setattr(accounts, "email_hash", name_hash)
            patch.setattr(lookups, "CURRENT", None)
            patch.setattr(lookups, "may_have_value", lambda _, **__: True)
            patch.setattr(
                Lookup, "hashes", lambda _, value, group="": (name_hash(value, group=group),) * 2
            )
            yield

    return former


@pytest.fixture
def form(api: Api) -> str:
    fields = [{"name": "email", "type": "email"}, {"name": "text", "type": "textarea"}]
    id_: str = api.post("/api/forms/create", {"title": "Contact", "fields": fields})["form"]["id"]
    return id_


def submit(api: Api, form: str, email: str, text: str = "Hello") -> Any:
    """Submit a form, and return the lead."""
    values = {"email": email, "text": text}
    lead = Api(None).post(f"/api/public/forms/{form}/submit", values)["id"]
    return api.get(f"/api/forms/collection/{lead}")["lead"]


def run_jobs(time: Time) -> int:
    """Schedule and run the jobs of an upgrade, and return their number."""
    config = settings()
    count = refolding.schedule(connection().client, f"{config.table_prefix}-{config.stage}")
    time.pass_by(minutes=2)
    scheduled_functions.run_jobs()
    return count


def delete_rows_of_former_keys(*addresses: str) -> None:
    """Delete the rows under the former keys of addresses, as the next release may."""
    hashes = {name_hash(address) for address in addresses} - {
        accounts.email_hash(address) for address in addresses
    }
    for table in ("content", "identity"):
        name = settings().table_name(table)
        for item in connection().client.scan(TableName=name)["Items"]:
            if item["pk"]["S"].rpartition("#")[2] in hashes:
                key = {"pk": item["pk"], "sk": item["sk"]}
                connection().client.delete_item(TableName=name, Key=key)


@pytest.mark.parametrize(("entered", "folded"), PAIRS)
class TestClients:
    def test_a_client_is_found_by_the_stored_address_only(
        self, entered: str, folded: str, api: Api, form: str, last_release: Former
    ) -> None:
        with last_release():
            first_lead = submit(api, form, entered)
        assert first_lead["email"] == folded
        assert submit(api, form, folded, "Again")["clientId"] == first_lead["clientId"]
        assert submit(api, form, entered, "Again")["clientId"] != first_lead["clientId"]
        response = api.get(f"/api/forms/collection-find?email={folded}")
        assert (response["total"], response["client"]["id"]) == (2, first_lead["clientId"])

    def test_the_next_release_finds_a_client_once_the_jobs_have_run(
        self, entered: str, folded: str, api: Api, form: str, last_release: Former, time: Time
    ) -> None:
        with last_release():
            first_lead = submit(api, form, entered, f"or {entered}")
        assert run_jobs(time) > 0
        delete_rows_of_former_keys(entered, folded)
        assert submit(api, form, folded, "Again")["clientId"] == first_lead["clientId"]
        response = api.get(f"/api/forms/collection-find?email={folded}")
        assert response["client"]["id"] == first_lead["clientId"]
        assert run_jobs(time) == 0

    def test_the_last_release_finds_a_client_of_this_one(
        self, entered: str, folded: str, api: Api, form: str, last_release: Former
    ) -> None:
        lead = submit(api, form, entered)
        with last_release():
            assert submit(api, form, entered, "Again")["clientId"] == lead["clientId"]
            change = {"id": lead["clientId"], "email": "new@example.com"}
            api.post("/api/clients/update", change)
        second_lead = submit(
            api, form, entered, "New"
        )  # A row of the current key still leads to the client.
        assert second_lead["clientId"] != lead["clientId"]
        assert submit(api, form, entered, "Newer")["clientId"] == second_lead["clientId"]

    def test_an_erasure_finds_folded_addresses(
        self, entered: str, folded: str, api: Api, form: str, owner: Owner, last_release: Former
    ) -> None:
        with last_release():
            first_lead = submit(api, form, entered)
        other = submit(api, form, folded, "entered so")
        call_operator("erase_client", workspaceId=owner.workspace.id, email=entered)
        for lead in (first_lead, other):  # They share a client, so the operator sees both.
            assert api.get(f"/api/forms/collection/{lead['id']}")["lead"]["email"] is None

    def test_an_erasure_keeps_clients_who_entered_the_folded_address(
        self, entered: str, folded: str, api: Api, form: str, owner: Owner
    ) -> None:
        leads = [submit(api, form, email) for email in (folded, entered)]
        call_operator("erase_client", workspaceId=owner.workspace.id, email=entered)
        emails = [api.get(f"/api/forms/collection/{lead['id']}")["lead"]["email"] for lead in leads]
        assert emails == [folded, None]


def test_an_erasure_finds_the_address_of_a_booking_after_the_jobs(
    api: Api, owner: Owner, last_release: Former, time: Time
) -> None:
    salon = Salon.opened(api)
    with last_release():
        booking = api.post(
            "/api/bookings/create",
            salon.order(NOON) | {"client": {"name": "A", "email": TYPED}, "notes": f"or b{TYPED}"},
        )["booking"]
    run_jobs(time)
    delete_rows_of_former_keys(TYPED, FOLDED, f"b{TYPED}")
    erased = call_operator("erase_client", workspaceId=owner.workspace.id, email=f"b{FOLDED}")
    assert erased["cancelledBookings"] == [booking["id"]]


class TestRestoring:
    @pytest.mark.parametrize(
        ("message", "email"),
        [
            (f"Write to {TYPED}!", TYPED),
            (f"Write to {TYPED} or {TYPED.upper()}", FOLDED),
            ("Write to Chief@Example.com", "chief@example.com"),
        ],
    )
    def test_the_job_takes_the_address_that_a_visitor_wrote_in_a_chat(
        self, message: str, email: str, api: Api, owner: Owner, last_release: Former, time: Time
    ) -> None:
        with last_release():
            ask(new_bot(owner), message)
        run_jobs(time)
        (lead,) = api.get("/api/forms/collection-list")["collections"]
        assert lead["email"] == email
        assert api.get(f"/api/forms/collection-find?email={email}")["total"] == 1

    def test_the_job_leaves_an_address_that_was_folded_everywhere(
        self, api: Api, form: str, last_release: Former, time: Time
    ) -> None:
        with last_release():
            lead_before = submit(api, form, TYPED)
        run_jobs(time)
        lead_after = api.get(f"/api/forms/collection/{lead_before['id']}")["lead"]
        assert (lead_after["email"], lead_after["version"]) == (FOLDED, lead_before["version"])


class TestAccounts:
    @pytest.mark.parametrize(("entered", "folded"), PAIRS)
    def test_the_former_key_is_not_enough_to_sign_in(
        self, entered: str, folded: str, last_release: Former
    ) -> None:
        with last_release():
            call_operator("create_account", email=entered, password=PASSWORD)
        assert begun(folded, PASSWORD)
        with pytest.raises(UnauthorizedError):
            begun(entered, PASSWORD)
        call_operator("create_account", email=entered, password="other horse")
        assert begun(entered, "other horse")
        assert begun(folded, PASSWORD)

    def test_the_next_release_finds_an_account_once_the_jobs_have_run(
        self, last_release: Former, time: Time
    ) -> None:
        with last_release():
            call_operator("create_account", email=TYPED, password=PASSWORD)
        run_jobs(time)
        delete_rows_of_former_keys(FOLDED)
        assert begun(FOLDED, PASSWORD)

    def test_the_last_release_finds_an_account_of_this_one(self, last_release: Former) -> None:
        account = call_operator("create_account", email=TYPED, password=PASSWORD)
        with last_release():
            claim = ClaimRow.find_claim(accounts.EMAIL_CLAIM, name=name_hash(TYPED))
            assert claim is not None
            assert claim.target == account["accountId"]


def test_a_complaint_about_a_folded_address_applies_to_every_spelling(time: Time) -> None:
    _, key = suppressions._keys(TYPED)  # Earlier releases had only this row.
    SuppressionRow(
        *key, reason="complaint", since=time.now, expires=time.now + timedelta(days=1)
    ).save()
    assert [suppressions.reason(address) for address in (TYPED, FOLDED)] == ["complaint"] * 2
    assert call_operator("allow_mail", email=TYPED)["wasSuppressed"] is True
    assert suppressions.reason(FOLDED) is None


def test_an_erasure_removes_rows_under_former_keys(api: Api, form: str, owner: Owner) -> None:
    submit(api, form, TYPED, f"or {FOLDED}, or b{TYPED}")
    call_operator("erase_client", workspaceId=owner.workspace.id, email=TYPED)
    rows = connection().client.scan(TableName=LookupRow.Meta.table_name)["Items"]
    assert [row["pk"]["S"] for row in rows if "#BY#" in row["pk"]["S"]] == []
