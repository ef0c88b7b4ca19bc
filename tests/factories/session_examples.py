"""A valid call of every operation, for the tests that run operations of all callers."""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, ClassVar, Self

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience, VisitorPrincipal
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.identity.flows import emails, sign_in_proofs
from chalicelib.domains.identity.flows.second_factor import derive_seed
from chalicelib.domains.identity.rules.one_time_codes import DIGITS, STEP_SECONDS, app_secret
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.payments.flows.merchant_pages import Rows
from infra.local.demo.examples import Record, fill, words_in, words_of
from tests.conftest import PASSWORD, Owner, call_console, call_operator
from tests.factories.booking_links import requested
from tests.factories.console import invite, reset_link, sign_up_link
from tests.factories.examples import WORDS, Things
from tests.factories.oauth import CLIENT_ID, GRANT, connect, exchange_arguments, grant
from tests.factories.payments import (
    MERCHANT,
    PaymentIds,
    copy_booking,
    record_payments,
    take_payments,
)
from tests.factories.recipes import Ids, Recipes, example_of

OTHER_WORDS = sorted(
    {*words_of(Audience.SESSION, Audience.OPERATOR), "OWNER_ID"} - {*WORDS} | {"WEBHOOK_ID"}
)
"""Words that only examples of operations for sessions and for the operator have, and those whose
records differ. The webhook of the console gets events of all types, that of keys one rare type."""


class WorkspaceIds(Ids):
    """What the words in capitals of all examples stand for in one workspace.

    ``things`` are its records for keys, and ``connection`` is an app with its tokens.
    """

    things: Things
    refresh_token: str

    @classmethod
    def collect(cls, workspace_id: str, things: Things) -> Self:
        """Create the records that examples need beyond a workspace's ``things``."""
        recipes = WorkspaceRecipes(workspace_id, things)
        values = recipes.values(OTHER_WORDS)
        refresh_token = recipes.record("CONNECTION")["refresh"]
        return cls.of(values, things=things, refresh_token=refresh_token)

    @classmethod
    def unknown(cls) -> Self:
        """Return values that no record has."""
        return cls.unknown_of(OTHER_WORDS, things=Things.unknown())

    @property
    def workspace_id(self) -> str:
        return self.workspace

    @property
    def account_id(self) -> str:
        return self.owner

    @property
    def email(self) -> str:
        return self.owner_email

    @property
    def placeholders(self) -> dict[str, str]:
        """Values for the words in capitals of examples."""
        return self.things.placeholders | self.values_of(OTHER_WORDS)

    @property
    def ids(self) -> list[str]:
        """All ids that members of other workspaces must not see."""
        own_ids = [value for value in vars(self).values() if isinstance(value, str)]
        return [*own_ids, *vars(self.things).values()]


class WorkspaceRecipes(Recipes):
    """Records that the owner of a workspace makes in the console, and the operator."""

    differences: ClassVar = {"create_webhook": {"events": None}}

    def __init__(self, workspace_id: str, things: Things) -> None:
        self.workspace, self.things = workspaces.get(workspace_id), things
        self.owner = accounts.get(self.workspace.owner_id)
        super().__init__(partial(call_console, workspace_id, account_id=self.owner.id))

    def value(self, word: str) -> Any:
        if word in OTHER_WORDS:
            return super().value(word)
        return self.things.placeholders.get(word) or super().value(word)

    def make_workspace(self) -> Record:
        return {"id": self.workspace.id}

    def make_owner(self) -> Record:
        return {"id": self.owner.id, "email": self.owner.email}

    def make_sign_in(self) -> Record:
        Owner(self.workspace).start_session()
        return dict(self.call("list_sessions")["sessions"][0])

    def make_connection(self) -> Record:
        return vars(connect(self.workspace))

    def make_drafted_page(self) -> Record:
        page = self.value("PAGE_ID")
        self.call("save_page_draft", id=page, html="<h1>Soon</h1>")
        return {"id": page}

    def make_newcomer(self) -> Record:
        return self._new_account("newcomer")

    def make_member(self) -> Record:
        member = self._new_account("member")
        where = {"workspaceId": self.workspace.id, "email": member["email"]}
        call_operator("add_member", **where)
        return member

    def _new_account(self, name: str) -> Record:
        email = f"{name}-{self.workspace.id.lower()}@example.com"
        account = call_operator("create_account", email=email, password=PASSWORD)
        return {"id": account["accountId"], "email": email}

    def make_invitation(self) -> Record:
        """Invite the owner to another workspace."""
        owner = self.value("MEMBER_EMAIL")
        other = call_operator("create_workspace", owner=owner, name="Other")["workspaceId"]
        return {"token": invite(other, self.owner.email)}

    def make_open_invitation(self) -> Record:
        email = f"guest-{self.value('MEMBER_EMAIL')}"
        return dict(call_operator("invite_member", workspaceId=self.workspace.id, email=email))

    def make_proof(self) -> Record:
        return {"token": emails.proof_page_url(self.owner).rpartition("/")[2]}

    @cached_property
    def payments(self) -> PaymentIds:
        return record_payments(self.workspace.id, self.owner.id, self.things.booking)

    def make_payment(self) -> Record:
        return {"id": self.payments.payment}

    def make_refund(self) -> Record:
        return {"id": self.payments.refund}

    def make_top_up(self) -> Record:
        return {"id": self.payments.top_up}

    def make_former_merchant(self) -> Record:
        return {"id": self.payments.former_merchant}

    def make_held_booking(self) -> Record:
        start = clock.now() + timedelta(days=1)
        return self._copied_booking(
            status="pending_payment",
            due=100,
            client_email="held@example.com",
            starts_at=start,
            ends_at=start + timedelta(minutes=30),
        )

    def make_visited_booking(self) -> Record:
        return self._copied_booking(status="completed", price=100)

    def _copied_booking(self, **changes: Any) -> Record:
        return {"id": copy_booking(self.workspace.id, self.things.booking, **changes)}


ADA = {"name": "Ada", "email": "ada@example.com"}


def booking_page(w: WorkspaceIds) -> dict[str, Any]:
    """Open the booking page of a workspace, and return what names a service on it."""
    call_console(w.workspace_id, "set_booking_page", isOn=True, offer=[w.things.service])
    return {"workspace": workspaces.get(w.workspace_id).slug, "serviceId": w.things.service}


def booking_page_request(w: WorkspaceIds) -> dict[str, Any]:
    """Open the booking page of a workspace, and return a booking on it."""
    page = booking_page(w)
    return page | {
        "startAt": visitors_call("find_page_times", **page)["slots"][0]["startAt"],
        "client": {"name": "Ada", "phone": "+74951234567"},
    }


def repeated_visit(w: WorkspaceIds) -> dict[str, Any]:
    """Open the booking page of a workspace, and return a start of which visits may be repeated."""
    request = booking_page_request(w)
    del request["client"]
    return request


def booked_on_page(w: WorkspaceIds) -> dict[str, Any]:
    """Book on the booking page, and return the token that manages the booking."""
    booked = visitors_call("book_on_page", **booking_page_request(w))
    return {"token": booked["manageUrl"].rpartition("/")[2]}


def calendar_of_business(w: WorkspaceIds) -> dict[str, Any]:
    """Make the link of the calendar of a workspace."""
    link = call_console(w.workspace_id, "create_calendar_link")["calendarLink"]
    return {"file": link["url"].rpartition("/")[2]}


def to_another_time(w: WorkspaceIds) -> dict[str, Any]:
    """Book on the booking page, and return the move of the booking to another time."""
    booking = booked_on_page(w)
    slots = visitors_call("find_move_times", **booking)["slots"]
    return booking | {"startAt": slots[-1]["startAt"]}


def unpaid_booking(w: WorkspaceIds) -> dict[str, Any]:
    """Hold a booking until it is paid, without an event. Return the token of the link that pays."""
    take_payments(w.workspace_id)
    booking = BOOKINGS.require(w.workspace_id, record_id=w.things.booking)
    booking.status, booking.due = "pending_payment", 100
    booking.starts_at = clock.now() + timedelta(days=1)
    booking.save()
    link = call_console(w.workspace_id, "get_booking_money", bookingId=booking.id)["paymentUrl"]
    return {"token": link.rpartition("/")[2]}


def visitors_call(operation: str, /, **arguments: Any) -> Any:
    """Call an operation as a visitor, and return the data of the response."""
    visiting = VisitorPrincipal(visitor="v")
    reply = invoke(REGISTRY[operation], visiting, lambda: arguments, request_id="r")
    return json.loads(reply.body)["data"]


def payment_of_a_test(w: WorkspaceIds) -> dict[str, Any]:
    """Return a payment at the test merchant of a test workspace."""
    made = call_operator("create_workspace", owner=w.email, name="Tests", isTest=True)
    rows, payment_id = Rows(made["workspaceId"]), "0" * 32
    with rows.change(payment_id) as payment:
        payment |= {"amount": 100, "purpose": "Haircut", "status": "pending", "refunds": {}}
        payment["return_url"] = "https://example.com/"
    return {"id": f"{rows.workspace_id}{payment_id}"}


COMPUTED: Mapping[str, Callable[[WorkspaceIds], dict[str, Any]]] = {
    "book_by_link": lambda w: {
        "token": requested(w.workspace_id, {**booking_page_request(w), "client": ADA})
    },
    "book_on_page": booking_page_request,
    "change_password": lambda _: {"current": PASSWORD, "password": "battery staple"},
    "create_account": lambda _: {"email": "new@example.com", "password": PASSWORD},
    "create_invited_account": lambda w: {
        "token": invite(w.workspace_id, "invited@example.com"),
        "name": "Ivy",
        "password": PASSWORD,
    },
    "exchange_code": lambda w: exchange_arguments(grant(workspaces.get(w.workspace_id))["code"]),
    "find_move_times": booked_on_page,
    "find_page_times": booking_page,
    "find_repeat_times": repeated_visit,
    "get_calendar_feed": calendar_of_business,
    "get_managed_booking": booked_on_page,
    "get_merchant_payment": payment_of_a_test,
    "get_password_reset": lambda w: {"token": reset_link(w.email)},
    "get_payable_booking": unpaid_booking,
    "get_sign_up": lambda _: {"token": sign_up_link("newcomer@example.com")},
    "grant_access": lambda _: GRANT,
    "move_public_booking": to_another_time,
    "open_booking_page": booking_page,
    "pay_booking": unpaid_booking,
    "receive_payment_hook": lambda w: {
        "merchantId": take_payments(w.workspace_id).merchant_id,
        "body": '{"payment": "unknown"}',
    },
    "refresh_tokens": lambda w: {"refreshToken": w.refresh_token, "clientId": CLIENT_ID},
    "reset_password": lambda w: {"token": reset_link(w.email), "password": "battery staple"},
    "revoke_token": lambda w: {"token": w.refresh_token, "clientId": CLIENT_ID},
    "settle_merchant_payment": lambda w: {
        **payment_of_a_test(w),
        "outcome": "paid",
        "refundsFail": False,
    },
    "set_merchant": lambda _: MERCHANT,
    "set_password": lambda w: {"email": w.email, "password": "battery staple"},
    "set_platform_merchant": lambda _: MERCHANT,
    "set_second_factor": lambda w: first_code(w.account_id),
    "sign_in": lambda w: {"email": w.email, "password": PASSWORD},
    "sign_up": lambda _: {
        "token": sign_up_link("newcomer@example.com"),
        "name": "Grace",
        "password": PASSWORD,
        "workspace": "Salon",
        "country": "GB",
        "terms": True,
        "personalData": True,
    },
    "submit_form": lambda w: {"id": w.things.form, "values": ADA},
    "sign_in_by_code": lambda w: code_after_password(w.account_id),
}
"""Calls that no example can show: with secrets and codes, or with a token of a new record. The
example of a form has the fields as a browser sends them."""
ADMITTED_BY_TOKEN = {"accept_invitation", "get_invitation"}
"""Operations that a secret of the input admits, whatever the workspace of the session."""


def first_code(account_id: str) -> dict[str, Any]:
    """Return the arguments that switch an account's second factor on."""
    salt = 22 * "a"
    return {"salt": salt, "secondFactor": app_code(account_id, salt)}


def app_code(account_id: str, salt: str) -> str:
    """Return the code that the app of an account shows now."""
    secret = base64.b32decode(app_secret(derive_seed(account_id, salt=salt)))
    code = TOTP(secret, DIGITS, SHA1(), STEP_SECONDS).generate(clock.now().timestamp())  # noqa: S303
    return code.decode()


def code_after_password(account_id: str) -> dict[str, Any]:
    """Give an account a second factor, and return the code of a sign-in after the password."""
    account, salt = accounts.get(account_id), 22 * "a"
    account.update([AccountRow.factor_salt.set(salt), AccountRow.factor_step.set(0)])
    account.update([AccountRow.factor_used.set(0)])
    code = app_code(account_id, salt)
    return {"proof": sign_in_proofs.after_password(account), "code": code}


def caller_of(operation: Operation, ids: WorkspaceIds) -> str:
    """Return the account that calls an operation: the owner, unless the owner cannot."""
    return ids.member if operation.name == "leave_workspace" else ids.account_id


def session_example(operation: Operation, ids: WorkspaceIds) -> dict[str, Any]:
    """Return the arguments of a valid call."""
    computed = COMPUTED.get(operation.name)
    arguments = computed(ids) if computed else fill(example_of(operation), ids.placeholders)
    return dict(arguments)


def session_operations(*, with_ids: bool | None = None) -> list[Operation]:
    """Return the operations for the console that use ids, or the operations without ids."""
    operations = REGISTRY.select(Audience.SESSION)
    if with_ids is None:
        return operations
    return [
        operation
        for operation in operations
        if operation.name not in ADMITTED_BY_TOKEN
        and not (operation.scope and operation.scope.admin_only)  # The blog is the platform's.
        and bool(words_in(operation.example)) is with_ids
    ]
