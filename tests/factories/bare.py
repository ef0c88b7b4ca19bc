"""A workspace whose records have what they must have, and nothing else."""

from functools import partial
from typing import Any

from chalicelib.core import clock
from chalicelib.core.operations import REGISTRY
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.clients.store.clients import new_client
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.domains.payments.store import payments
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import PASSWORD, Owner, call_console, call_operator
from tests.factories.console import Place, invite, reset_link, sign_up_link
from tests.factories.oauth import connect
from tests.factories.payments import record_payments, take_payments
from tests.factories.recipes import Recipes

EMAIL = "bare@example.com"
MEMBER = "bare-member@example.com"


def bare_places() -> tuple[Place, Place]:
    """Create an account with a workspace, and one record of each kind that the console shows.

    The second place has other records of the same workspace: a bot without knowledge and keys, a
    site without pages, a client without a name, and the service and the staff of the booking.
    """
    for email in (EMAIL, MEMBER):
        call_operator("create_account", email=email, password=PASSWORD)
    workspace = call_operator("create_workspace", owner=EMAIL, name="B")
    home, who = workspace["workspaceId"], accounts.require_by_email(EMAIL).id
    call_operator("add_member", workspaceId=home, email=MEMBER, role="member")
    call = partial(call_console, home, account_id=who)
    service = call("create_service", name="S", durationMin=60)["service"]["id"]
    staff = call("create_resource", name="R")["resource"]["id"]
    # Only a service with staff can be booked.
    booked = call("create_service", name="S", durationMin=60)["service"]["id"]
    member = call("create_resource", name="R", serviceIds=[booked])["resource"]["id"]
    booking = call(
        "create_booking",
        serviceId=booked,
        startAt="2027-01-18T10:00",
        ignoreSchedule=True,
        client={"name": "C"},
    )["booking"]["id"]
    form = call("create_form", title="F", fields=[{"name": "n", "type": "text"}])["form"]["id"]
    bot = call("create_agent", name="A", systemPrompt="x", model="demo")["agent"]["id"]
    bot_key = call("create_bot_key", agentId=bot, name="K")
    key = call("create_key", name="K", scopes=["projects:read"])
    source = call("add_knowledge", id=bot, title="T", text="x")["source"]["id"]
    empty_bot = call("create_agent", name="A", systemPrompt="x", model="demo")["agent"]["id"]
    empty_site = call("create_site", title="T")["project"]["id"]
    former = record_payments(home, who, booking).former_merchant
    place = Place(
        workspace_id=home,
        slug=workspace["slug"],
        key=key["keyId"],
        token=key["token"],
        bot=bot,
        bot_key=bot_key["keyId"],
        bot_token=bot_key["token"],
        source=source,
        webhook=call("create_webhook", url="https://bakery.example")["webhook"]["id"],
        connection=connect(workspaces.get(home)).id,
        form=form,
        file=call("upload_file", name="f.txt", content="aGk=")["file"]["id"],
        member=accounts.require_by_email(MEMBER).id,
        invitation=invite(home, "bare-guest@example.com"),
        reset=reset_link(EMAIL),
        sign_up=sign_up_link("bare-newcomer@example.com"),
        consent="terms",
        service=service,
        staff=staff,
        booking=booking,
        payment=_payment(home, booking),
        merchant=former,
        **_rows(home, form, bot),
        **_site(home),
    ).completed(_BareRecipes(call))
    others = {"bot": empty_bot, "site": empty_site, "service": booked, "staff": member}
    return place, place.changed(client=_client(home), **others)


class _BareRecipes(Recipes):
    """Records with the fields that their operations require."""

    def arguments(self, name: str) -> dict[str, Any]:
        required = REGISTRY[name].input_schema.get("required", ())
        arguments = super().arguments(name)
        return {field: arguments[field] for field in required}


def _client(workspace_id: str, **attributes: str) -> str:
    client = new_client(workspace_id, **attributes)
    run_unit(workspace_id, None, lambda unit: unit.create(client))
    return str(client.id)


def _rows(workspace_id: str, form_id: str, bot_id: str) -> dict[str, str]:
    """Store records that only visitors make."""
    lead = LEADS.new(
        workspace_id,
        status="new",
        form_id=form_id,
        source_name="direct",
        day="2026-01-01",
    )
    dialog = DIALOGS.new(
        workspace_id,
        agent_id=bot_id,
        channel="widget",
        last_number=2,
        messages_count=2,
        last_message_at=clock.now(),
    )

    def stage(unit: UnitOfWork) -> None:
        for row in (lead, dialog):
            unit.create(row)

    run_unit(workspace_id, None, stage)
    return {"client": _client(workspace_id, name="C"), "lead": lead.id, "dialog": dialog.id}


def _payment(workspace_id: str, booking_id: str) -> str:
    """Store a payment that nobody has paid, and return its id."""
    payment = payments.new(
        workspace_id,
        "booking",
        "RUB",
        subject_id=booking_id,
        merchant_id=take_payments(workspace_id).merchant_id,
        amount=1,
        description="",
        mode="full_payment",
        return_url="https://example.com/",
        expires_at=clock.now(),
        has_receipt=False,
    )
    run_unit(workspace_id, None, lambda unit: payments.stage_new(unit, payment))
    booking = BOOKINGS.require(workspace_id, record_id=booking_id)
    booking.payment_ids = [payment.id]
    run_unit(workspace_id, None, lambda unit: unit.save(booking))
    return str(payment.id)


def _site(workspace_id: str) -> dict[str, str]:
    """Create a site with an empty page and a version, and delete another site and another page."""
    api = Owner(workspaces.get(workspace_id)).api()

    def site() -> str:
        made: str = api.post("/api/projects/create", {"title": "T"})["project"]["id"]
        return made

    def page() -> str:
        made: str = api.post("/api/pages/create", {"projectId": kept, "title": "T"})["page"]["id"]
        return made

    kept, gone = site(), site()
    first, deleted = page(), page()
    api.post("/api/projects/delete", {"id": gone})
    api.post("/api/pages/delete", {"id": deleted, "confirm": True})
    for html in ("", "<p>"):
        api.post("/api/pages/save-html", {"id": first, "html": html})
    (version, *_) = api.get(f"/api/pages/{first}/versions")["versions"]
    return {
        "site": kept,
        "deleted_site": gone,
        "page": first,
        "deleted_page": deleted,
        "version": version["id"],
    }
