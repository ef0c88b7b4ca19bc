"""For every type of events, what makes the service emit one, through its public faces."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

import pytest

from chalicelib.core.ids import new_id
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Prices, Terms, TokenUsage
from chalicelib.domains.bookings.flows import booking_payments
from chalicelib.domains.bots.rules.capabilities import CAPABILITIES
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.payments.flows.opening import PaymentRefusedError
from chalicelib.domains.payments.rules.job_kinds import REFUND_JOBS
from chalicelib.domains.schedule.flows import busy_links, busy_readings
from chalicelib.domains.schedule.rules.job_kinds import READ_BUSY_TIMES
from chalicelib.domains.schedule.store import busy_calendars
from chalicelib.domains.schedule.store.busy_calendars import BusyCalendarRow
from chalicelib.engine import jobs
from chalicelib.engine.unit import run_unit
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ProviderUsage
from chalicelib.gateways.payments import ProviderError, local_merchant
from chalicelib.gateways.payments.local_merchant import LocalMerchant
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, call_console, call_operator
from tests.factories.chat import Bot, ScriptedModel, ask, new_bot
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit, top_up
from tests.factories.oauth import connect
from tests.factories.payments import open_payment, pay_booking, take_payments
from tests.factories.proposals import ASKED, call
from tests.factories.salon import Salon
from tests.fakes.receiver import Receiver, status

MEMBER = "bob@example.com"


@dataclass(frozen=True)
class World:
    """A workspace with one record of every type, a user to add as a member, and a clock."""

    owner: Owner
    api: Api
    things: Things
    time: Time
    receiver: Receiver
    monkeypatch: pytest.MonkeyPatch

    @property
    def workspace_id(self) -> str:
        return self.owner.workspace.id

    def priced_bot(self, *script: Any, kopecks: int = 1_000_000) -> Bot:
        """Return a bot whose replies cost money, and whose model follows a script."""
        spec = llm.resolve("claude-opus-4.1", tenant="w")._replace(takes_tools=True)
        self.monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)
        self.script(*script)
        return new_bot(self.owner, money=kopecks, capabilities=list(CAPABILITIES))

    def script(self, *steps: Any) -> None:
        """Let every model follow a script from now on."""
        self.monkeypatch.setattr(llm, "chat_model_for", lambda _: ScriptedModel(steps))

    def member(self, role: str) -> None:
        """Give an account a role in the workspace."""
        call_operator("add_member", workspaceId=self.workspace_id, email=MEMBER, role=role)

    def new_key(self) -> str:
        """Create a key, and return its id."""
        created = call_operator(
            "create_key", workspaceId=self.workspace_id, name="Cash desk", scopes=["crm:read"]
        )
        return str(created["keyId"])


def _erase_client(world: World) -> None:
    submit(world.things.form, name="Ada", email="ada@example.com")
    call_operator("erase_client", workspaceId=world.workspace_id, email="ada@example.com")


def _order(world: World) -> None:
    item = {"productId": world.things.product, "quantity": 2}
    submit(world.things.form, name="Ada", email="ada@example.com", items=[item])


def _update_client(world: World) -> None:
    world.api.post("/api/clients/update", {"id": world.things.client, "notes": "Likes rye."})


def _book(world: World) -> None:
    body = {
        "serviceId": world.things.service,
        "startAt": "2027-03-02T17:00:00+03:00",
        "client": {"name": "Grace", "email": "grace@example.com"},
    }
    world.api.post("/api/public/bookings", body)


def _cancel_booking(world: World) -> None:
    body = {"id": world.things.booking, "status": "cancelled"}
    world.api.post("/api/bookings/set-status", body)


def _move_booking(world: World) -> None:
    body = {"id": world.things.booking, "startAt": "2027-03-03T12:00", "ignoreSchedule": True}
    world.api.post("/api/bookings/reschedule", body)


def _let_hold_expire(world: World) -> None:
    Salon.opened(world.api, requirePayment=True).book("2027-01-18T10:00")
    world.time.pass_by(hours=1)
    assert run_jobs()["lapse-of-hold"] == 1


def _pay(world: World) -> None:
    booking = Salon.opened(world.api, requirePayment=True).book("2027-01-18T10:00")
    pay_booking(world.workspace_id, booking["id"])


def _refund(world: World) -> None:
    """Refund a booking, and run only the job that sends the refund."""
    _pay(world)
    (payment,) = call_console(world.workspace_id, "list_payments")["payments"]
    call_console(world.workspace_id, "refund_payment", id=payment["id"])
    kind = REFUND_JOBS["booking"]
    (job,) = (job for job in jobs.read_workspace_jobs(world.workspace_id) if job.kind == kind)
    JOB_HANDLERS[kind](job)
    jobs.remove_finished(job)


def _dispute(world: World) -> None:
    """Let the bank take back the payment of a booking, and read its state."""
    take_payments(world.workspace_id)
    booking = Salon.opened(world.api, requirePayment=True).book("2027-01-18T10:00")
    provider_id = open_payment(world.workspace_id, booking["id"])
    local_merchant.settle_payment(provider_id, "succeeded")
    (payment,) = call_console(world.workspace_id, "list_payments")["payments"]
    booking_payments.settle(world.workspace_id, payment["id"])
    local_merchant.return_payment(provider_id, "disputed", 150_000)
    booking_payments.settle(world.workspace_id, payment["id"])


def _change_contacts(world: World) -> None:
    world.api.post("/api/clients/update", {"id": world.things.client, "name": "Grace"})


def _fail_to_refund(world: World) -> None:
    def refuse(*_: Any) -> NoReturn:
        raise ProviderError("Not enough money on the account.")

    world.monkeypatch.setattr(LocalMerchant, "refund", refuse)
    _refund(world)


def _update_lead(world: World) -> None:
    world.api.post("/api/forms/collection-update", {"id": world.things.lead, "notes": "Call back."})


def _set_status_of_lead(world: World) -> None:
    body = {"id": world.things.lead, "status": "in_progress"}
    world.api.post("/api/forms/collection-status", body)


def _sell(world: World) -> None:
    body = {"name": "Rye", "price": 1, "stock": 6}
    product = world.api.post("/api/products/create", body)["product"]["id"]
    world.api.post("/api/products/update", {"id": product, "stockDelta": -1})


def _ask_for_person(world: World) -> None:
    end = ProviderUsage(10, 5)
    bot = world.priced_bot(call("request_person", reason="A wedding cake"), end, "Done.", end)
    ask(bot, ASKED)


def _reach_limit(world: World) -> None:
    bot = world.priced_bot("Hello.", ProviderUsage(10, 5))
    call_console(world.workspace_id, "set_bot_limits", agentId=bot.id, daily=1)
    assert ask(bot, "Hi").status == 429


def spend_of_limit(bot: Bot, kopecks: int) -> None:
    """Let a bot spend an amount, at one kopeck per token."""
    place = workspaces.get(bot.workspace_id)
    prices = Prices(10**6, 10**6)
    terms = Terms(place.owner_id, place.id, bot.id, place.timezone, prices, "model")
    hold = charging.reserve(terms, new_id(), 1, max_output_tokens=kopecks)
    charging.settle(hold, TokenUsage(1, kopecks - 1))


def _spend_half(world: World) -> None:
    bot = new_bot(world.owner)
    call_console(world.workspace_id, "set_bot_limits", agentId=bot.id, daily=1_000)
    spend_of_limit(bot, 500)


def _spend(world: World) -> None:
    """Spend what takes the balance below 100 rubles."""
    bot = world.priced_bot("Hello.", ProviderUsage(10, 5), kopecks=0)
    top_up(bot.account_id, 10_001 - bot.money[0])
    assert ask(bot, "Hi").status == 200


def _lose_receiver(world: World) -> None:
    call_operator("create_webhook", workspaceId=world.workspace_id, url="https://gone.example/")
    world.receiver.answer = lambda _: status(410)
    submit(world.things.form, name="Ada", email="ada@example.com")
    run_until_idle()


def _lose_calendar(world: World) -> None:
    """Read a calendar that has failed for a day, from an address that is refused."""
    place = (world.workspace_id, world.things.resource)
    calendar = BusyCalendarRow.of(*place) or busy_calendars.new(*place)
    busy_links.set_link(calendar, "https://127.0.0.1/", "127.0.0.1")
    calendar.failures, calendar.failing_since = 1, world.time.now - timedelta(days=2)
    run_unit(world.workspace_id, None, lambda unit: unit.save(calendar))
    payload = {"resourceId": world.things.resource, "turn": int(calendar.turn)}
    job = jobs.row(READ_BUSY_TIMES, world.workspace_id, payload)
    busy_readings.read_busy_times(job)


def _delete_webhook(world: World) -> None:
    url = "https://receiver.example/"
    made = call_operator("create_webhook", workspaceId=world.workspace_id, url=url)
    call_operator("delete_webhook", id=made["webhook"]["id"])


def _start_export(world: World) -> None:
    run_jobs()  # One that runs is not started again.
    world.api.post("/api/workspace/export", {})


def _remove_member(world: World) -> None:
    world.member("member")
    call_operator("remove_member", workspaceId=world.workspace_id, email=MEMBER)


def _change_role(world: World) -> None:
    world.member("member")
    world.member("manager")


def _return_top_up(world: World) -> None:
    take_payments(world.workspace_id)
    owner_id = world.owner.workspace.owner_id
    arguments = {"account_id": owner_id, "amount": 10_000}
    top_up = call_console(world.workspace_id, "start_top_up", **arguments)
    provider_id = top_up["url"].rpartition("/")[2]
    local_merchant.settle_payment(provider_id, "succeeded")
    local_merchant.return_payment(provider_id, "returned", 10_000)
    call_console(world.workspace_id, "get_top_up", account_id=owner_id, id=top_up["id"])


def _refuse_payment(world: World) -> None:
    booking = Salon.opened(world.api, requirePayment=True).book("2027-01-18T10:00")
    take_payments(world.workspace_id)

    def refuse(*_: object) -> NoReturn:
        raise ProviderError("The amount is too small.")

    world.monkeypatch.setattr(LocalMerchant, "create", refuse)
    with suppress(PaymentRefusedError):
        open_payment(world.workspace_id, booking["id"])


def _connect(world: World) -> None:
    """Connect an app as a manager. An owner who has confirmed it gets another e-mail."""
    world.member("manager")
    connect(world.owner.workspace, accounts.require_by_email(MEMBER).id)


def _create(noun: str, **values: Any) -> Callable[[World], object]:
    return lambda world: world.api.post(f"/api/{noun}/create", values)


def _change(noun: str, thing: str, **values: Any) -> Callable[[World], object]:
    return lambda world: world.api.post(
        f"/api/{noun}/update", {"id": getattr(world.things, thing), **values}
    )


def _delete(noun: str, thing: str) -> Callable[[World], object]:
    return lambda world: world.api.post(
        f"/api/{noun}/delete", {"id": getattr(world.things, thing), "confirm": True}
    )


TRIGGERS: Mapping[str, Callable[[World], object]] = {
    "balance.low": _spend,
    "balance.returned": _return_top_up,
    "booking.created": _book,
    "booking.disputed": _dispute,
    "booking.hold_expired": _let_hold_expire,
    "booking.moved": _move_booking,
    "booking.paid": _pay,
    "booking.refund_done": _refund,
    "booking.refund_failed": _fail_to_refund,
    "booking.status_changed": _cancel_booking,
    "bot.limit_half": _spend_half,
    "bot.limit_reached": _reach_limit,
    "client.contacts_changed": _change_contacts,
    "client.created": _create("clients", name="Grace", email="grace@example.com"),
    "client.erased": _erase_client,
    "client.updated": _update_client,
    "dialog.handover_requested": _ask_for_person,
    "dialog.started": lambda world: ask(world.things.agent, "Hello"),
    "connection.created": _connect,
    "key.created": World.new_key,
    "key.revoked": lambda world: call_operator("revoke_key", id=world.new_key()),
    "form.created": _create("forms", title="Order", fields=[{"name": "email"}]),
    "form.deleted": _delete("forms", "form"),
    "form.updated": _change("forms", "form", title="Order"),
    "lead.created": lambda world: submit(world.things.form, name="Ada", email="ada@example.com"),
    "lead.status_changed": _set_status_of_lead,
    "lead.updated": _update_lead,
    "member.added": lambda world: world.member("member"),
    "member.removed": _remove_member,
    "member.role_changed": _change_role,
    "order.created": _order,
    "payment.refused": _refuse_payment,
    "page.created": lambda world: world.api.post(
        "/api/pages/create", {"projectId": world.things.site, "title": "Prices"}
    ),
    "page.deleted": _delete("pages", "page"),
    "page.updated": lambda world: world.api.post(
        "/api/pages/save-html", {"id": world.things.page, "html": "<h1>New</h1>"}
    ),
    "product.created": _create("products", name="Rye", price=1),
    "product.deleted": _delete("products", "product"),
    "product.low_stock": _sell,
    "product.updated": _change("products", "product", price=1),
    "service.created": _create("services", name="Cut", durationMin=60),
    "service.deleted": _delete("services", "service"),
    "service.updated": _change("services", "service", price=1),
    "export.started": _start_export,
    "calendar.unreadable": _lose_calendar,
    "webhook.changed": lambda world: call_operator(
        "create_webhook", workspaceId=world.workspace_id, url="https://receiver.example/"
    ),
    "webhook.deleted": _delete_webhook,
    "webhook.switched_off": _lose_receiver,
}
