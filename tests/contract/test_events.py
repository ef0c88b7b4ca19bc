"""Every operation that writes emits an event, or this module says why it does not."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import PEOPLE_EVENTS, WEBHOOK_EVENTS
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.principals import ApiKeyPrincipal, Audience, VisitorPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.identity.flows import invitation_links
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine import jobs
from chalicelib.engine.events import subscriptions
from tests.conftest import PASSWORD, call_console, call_operator
from tests.contract.conftest import ExampleRunner
from tests.factories.booking_links import requested
from tests.factories.console import invite, reset_link
from tests.factories.event_runs import recorded_events, unanswered
from tests.factories.examples import fill
from tests.factories.oauth import CLIENT_ID, exchange_arguments, grant
from tests.factories.payments import MERCHANT, take_payments
from tests.factories.session_examples import (
    SESSION_EXAMPLES,
    WorkspaceIds,
    caller_of,
    code_after_password,
)
from tests.support.restoring import Snapshots

load_all()
pytestmark = pytest.mark.usefixtures("telegram", "mail_enabled")

MEMBER = "bob@example.com"
Arguments = Callable[[WorkspaceIds], dict[str, Any]]

REASONS: Mapping[str, tuple[str, ...]] = {
    "accounts and sessions are the person's own, and no part of a workspace": (
        *("change_password", "create_account", "disable_account", "end_session", "set_password"),
        *("request_password_reset", "reset_password", "sign_in", "sign_out_everywhere"),
        "update_account",
        *("prove_email", "request_proof"),
        *("end_second_factor", "remove_second_factor", "set_second_factor"),
        *("forget_browsers", "set_sign_in_factor", "sign_in_by_code"),
    ),
    "an invitation gives no access until it is accepted": ("invite_member", "revoke_invitation"),
    "the operator's decision, who tells the owner": (
        *("create_workspace", "resume_site", "set_plan", "suspend_site"),
        *("allow_mail", "pause_mail", "resume_mail"),
    ),
    "money is told of when it runs out, by chats": ("adjust", "credit", "set_bot_limits"),
    "payments are not records of keys; a booking that is paid emits an event": (
        *("pay_booking", "receive_payment_hook", "refund_payment", "retry_refund"),
        *("set_merchant", "set_payment_terms", "set_platform_merchant", "start_top_up"),
        *("note_visit_payment", "send_payment_link", "set_closing_receipts"),
        "remove_merchant_secret",
    ),
    "how people and systems are told, which they have just chosen": (
        *("create_webhook", "delete_webhook", "link_telegram", "resend_webhook_delivery"),
        *("rotate_webhook_secret", "send_test_event", "set_notifications", "unlink_telegram"),
        "update_webhook",
    ),
    "what the workspace's own people and programs write, which no visitor caused": (
        *("add_file", "complete_upload", "create_folder", "create_upload", "delete_file"),
        *("delete_folder", "update_file", "update_folder", "upload_file"),
        *("create_blog_post", "delete_blog_post", "update_blog_post"),
        *("create_page", "create_site", "delete_page", "delete_site", "import_page_html"),
        *("save_page_html", "set_site_domain", "toggle_site_stats", "update_page", "update_site"),
        *("restore_page", "restore_page_version", "restore_site"),
        *("create_form", "delete_form", "update_form"),
        *("create_category", "delete_category", "update_category"),
        *("create_product", "delete_product", "duplicate_product", "reorder_products"),
        *("create_resource", "delete_resource", "set_availability", "update_resource"),
        *("create_service", "delete_service", "set_booking_page", "update_service"),
        "admit_assistants",
        *("create_time_off", "delete_time_off"),
        *("add_knowledge", "create_agent", "delete_knowledge", "set_bot", "update_agent"),
        *("create_bot_key", "delete_bot_key", "set_workspace", "link_member", "reply_to_visitor"),
    ),
    "consent without an exchange of its code gives no access, and an end takes access away": (
        *("end_connection", "grant_access", "refresh_tokens", "revoke_token", "widen_connection"),
    ),
    "a copy for a person, who changes nothing": ("export_leads",),
    "a read by a secret, which must not stand in a URL": ("list_replies",),
    "a draft, which it stores nowhere": ("ai_fill_product", "ai_fill_service"),
    "an event only if a stock becomes low, as tests/engine/test_events.py shows": (
        *("bulk_products", "update_product", "upsert_products", "upsert_products_by_id"),
    ),
    "counts of visits, of which there are too many": ("record_hit", "widget_event"),
}
"""Operations that write and emit nothing, by the reason."""
NO_EVENTS = {name: reason for reason, names in REASONS.items() for name in names}


ADA = {"name": "Ada", "email": "ada@example.com"}


def booking_page_request(w: WorkspaceIds) -> dict[str, Any]:
    """Open the booking page of a workspace, and return a booking on it."""
    call_console(w.workspace_id, "set_booking_page", isOn=True, offer=[w.things.service])
    slug, service = workspaces.get(w.workspace_id).slug, w.things.service
    query = {"workspace": slug, "serviceId": service}
    return query | {
        "startAt": visitors_call("find_page_times", **query)["slots"][0]["startAt"],
        "client": {"name": "Ada", "phone": "+74951234567"},
    }


def to_another_time(w: WorkspaceIds) -> dict[str, Any]:
    """Book on the booking page, and return the move of the booking to another time."""
    booked = visitors_call("book_on_page", **booking_page_request(w))
    token = booked["manageUrl"].rpartition("/")[2]
    slots = visitors_call("find_move_times", token=token)["slots"]
    return {"token": token, "startAt": slots[-1]["startAt"]}


def unpaid_booking(w: WorkspaceIds) -> dict[str, Any]:
    """Hold a booking until it is paid, without an event. Return the token of the link that pays."""
    take_payments(w.workspace_id)
    booking = BOOKINGS.require(w.workspace_id, record_id=w.things.booking)
    booking.status, booking.due = "pending_payment", 100
    booking.starts_at = clock.now() + timedelta(days=1)
    booking.save()
    link = call_console(w.workspace_id, "get_payment_link", bookingId=booking.id)["paymentUrl"]
    return {"token": link.rpartition("/")[2]}


def visitors_call(operation: str, /, **arguments: Any) -> Any:
    """Call an operation as a visitor, and return the data of the response."""
    visiting = VisitorPrincipal(visitor="v")
    reply = invoke(REGISTRY[operation], visiting, lambda: arguments, request_id="r")
    return json.loads(reply.body)["data"]


OTHER_EXAMPLES: Mapping[str, Arguments] = {
    "add_file": lambda w: {
        "workspaceId": w.workspace_id,
        "folder": "Papers",
        "name": "c.txt",
        "content": "aGVsbG8=",
    },
    "add_member": lambda w: {"workspaceId": w.workspace_id, "email": MEMBER},
    "adjust": lambda w: {
        "account": w.email,
        "kopecks": 5,
        "reason": "Gift",
        "idempotencyKey": new_id(),
    },
    "allow_mail": lambda _: {"email": "ada@example.com"},
    "book_on_page": booking_page_request,
    "book_by_link": lambda w: {
        "token": requested(w.workspace_id, {**booking_page_request(w), "client": ADA})
    },
    "move_public_booking": to_another_time,
    "pause_mail": lambda w: {"workspaceId": w.workspace_id},
    "pay_booking": unpaid_booking,
    "receive_payment_hook": lambda w: {
        "merchantId": take_payments(w.workspace_id).merchant_id,
        "body": '{"payment": "unknown"}',
    },
    "set_platform_merchant": lambda _: MERCHANT,
    "create_account": lambda _: {"email": "new@example.com", "password": PASSWORD},
    "create_invited_account": lambda w: {
        "token": invite(w.workspace_id, "invited@example.com"),
        "name": "Ivy",
        "password": PASSWORD,
    },
    "create_workspace": lambda w: {"owner": w.email, "name": "Second"},
    "credit": lambda w: {
        "account": w.email,
        "kopecks": 5,
        "reason": "Paid",
        "idempotencyKey": new_id(),
    },
    "disable_account": lambda _: {"email": MEMBER},
    "exchange_code": lambda w: exchange_arguments(grant(workspaces.get(w.workspace_id))["code"]),
    "erase_client": lambda w: {"workspaceId": w.workspace_id, "email": "ada@example.com"},
    "refresh_tokens": lambda w: {"refreshToken": w.refresh_token, "clientId": CLIENT_ID},
    "remove_second_factor": lambda w: {"email": w.email},
    "resume_mail": lambda w: {"workspaceId": w.workspace_id},
    "resume_site": lambda w: {"id": w.things.site},
    "revoke_token": lambda w: {"token": w.refresh_token, "clientId": CLIENT_ID},
    "set_bot": lambda w: {"id": w.things.agent, "isActive": False},
    "set_password": lambda w: {"email": w.email, "password": "battery staple"},
    "set_plan": lambda w: {"workspaceId": w.workspace_id, "plan": "enterprise"},
    "request_password_reset": lambda w: {"email": w.email},
    "reset_password": lambda w: {"token": reset_link(w.email), "password": "battery staple"},
    "sign_in": lambda w: {"email": w.email, "password": PASSWORD},
    "sign_in_by_code": lambda w: code_after_password(w.account_id),
    "submit_form": lambda w: {
        "id": w.things.form,
        "values": {"name": "Ada", "email": "ada@example.com"},
    },
    "suspend_site": lambda w: {"id": w.things.site},
    "upsert_products_by_id": lambda w: {
        "workspaceId": w.workspace_id,
        "items": [{"id": w.things.product, "name": "Rye"}],
    },
}
"""Examples of operations that neither the reference nor the sweeps of the console have."""

WRITING = [operation for operation in REGISTRY if not operation.read_only]


def run(operation: Operation, runner: ExampleRunner, ids: WorkspaceIds) -> None:
    """Run a valid call of an operation, for the first of its audiences."""
    name, workspace_id = operation.name, ids.workspace_id
    arguments = (SESSION_EXAMPLES | OTHER_EXAMPLES).get(name)
    sent_arguments = arguments(ids) if arguments else fill(operation.example, runner.placeholders)
    principal: ApiKeyPrincipal | VisitorPrincipal
    if Audience.SESSION in operation.audience:
        call_console(workspace_id, name, account_id=caller_of(operation, ids), **sent_arguments)
        return
    if Audience.KEY in operation.audience:
        principal = ApiKeyPrincipal(
            key_id=ids.key,
            account_id=ids.account_id,
            workspace_id=workspace_id,
            plan="business",
            role="admin",
            scopes=frozenset(Scope),
        )
    elif Audience.PUBLIC in operation.audience:
        principal = VisitorPrincipal(visitor="v")
    else:
        call_operator(name, **sent_arguments)
        return
    invoke(operation, principal, lambda: sent_arguments, request_id=new_id())


@pytest.mark.parametrize("operation", WRITING, ids=lambda operation: operation.name)
def test_an_operation_that_writes_emits_an_event_or_has_a_reason(
    operation: Operation, runner: ExampleRunner, snapshots: Snapshots
) -> None:
    world = runner.world

    def make() -> WorkspaceIds:
        call_operator("create_account", email=MEMBER, password=PASSWORD)
        return WorkspaceIds.collect(world.workspace_id, world.things)

    ids = snapshots.once(f"ids of events {world.workspace_id}", make)
    if operation.name == "disable_account":
        call_operator("add_member", workspaceId=ids.workspace_id, email=MEMBER)
    if operation.name == "resume_site":
        call_operator("suspend_site", id=world.things.site)
    subscriptions.forget()
    joins = operation.name == "accept_invitation"
    home = invitation_links.read(ids.invitation_token).workspace.id if joins else ids.workspace_id
    jobs_before = {job.sk for job in jobs.read_workspace_jobs(home)}
    with recorded_events() as recorded:
        run(operation, runner, ids)
    assert unanswered(recorded) == set()
    types = {
        event[0]
        for job in jobs.read_workspace_jobs(home)
        if job.kind in {WEBHOOK_EVENTS, PEOPLE_EVENTS} and job.sk not in jobs_before
        for event in job.payload["events"]
    }
    assert bool(types) is (operation.name not in NO_EVENTS), types


def test_only_operations_that_write_have_a_reason() -> None:
    assert NO_EVENTS.keys() <= {operation.name for operation in WRITING}
