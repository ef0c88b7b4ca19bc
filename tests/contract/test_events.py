"""Every operation that writes emits an event, or this module says why it does not."""

from collections.abc import Mapping

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import PEOPLE_EVENTS, WEBHOOK_EVENTS
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.principals import ApiKeyPrincipal, Audience, VisitorPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.domains.identity.flows import invitation_links
from chalicelib.engine import jobs
from chalicelib.engine.events import subscriptions
from infra.local.demo.examples import fill, words_in
from tests.conftest import call_console, call_operator
from tests.contract.conftest import VISITORS_WORDS, ExampleRunner
from tests.factories.event_runs import recorded_events, unanswered
from tests.factories.session_examples import WorkspaceIds, caller_of, session_example
from tests.support.restoring import Snapshots

load_all()
pytestmark = pytest.mark.usefixtures("telegram", "mail_enabled")

OWN = "what the workspace's own people and programs write, which no visitor caused"
OWN_DOMAINS = {
    *("blog", "bots", "files", "knowledge"),
}
"""Domains in which only visitors' operations and those of ``REASONS`` have another reason."""
REASONS: Mapping[str, tuple[str, ...]] = {
    "accounts and sessions are the person's own, and no part of a workspace": (
        *("change_password", "create_account", "disable_account", "end_session", "set_password"),
        *("request_password_reset", "reset_password", "sign_in", "sign_out_everywhere"),
        *("add_workspace", "request_sign_up", "sign_up"),
        *("create_test_workspace", "update_account", "wipe_test_workspace"),
        *("prove_email", "request_proof"),
        *("end_second_factor", "remove_second_factor", "set_second_factor"),
        *("forget_browsers", "set_sign_in_factor", "sign_in_by_code"),
    ),
    "a job tells the members by e-mail": ("close_workspace", "reopen_workspace"),
    "an invitation gives no access until it is accepted": ("invite_member", "revoke_invitation"),
    "the operator's decision, who tells the owner": (
        *("create_workspace", "resume_site", "set_plan", "suspend_site"),
        *("admit_workspace", "suspend_workspace"),
        *("allow_mail", "pause_mail", "resume_mail", "set_sms_price"),
    ),
    "money is told of when it runs out, by chats": ("adjust", "credit", "set_bot_limits"),
    "payments are not records of keys; a booking that is paid emits an event": (
        *("pay_booking", "receive_payment_hook", "refund_payment", "retry_refund"),
        *("set_merchant", "set_platform_merchant", "start_top_up"),
        *("note_visit_payment", "send_payment_link", "set_closing_receipts"),
        *("remove_merchant_secret", "settle_merchant_payment"),
    ),
    "how people and systems are told, which they have just chosen": (
        *("link_telegram", "resend_webhook_delivery"),
        *("send_test_event", "set_notifications", "unlink_telegram"),
        *("set_client_channels", "link_client_chat", "unlink_client_chat"),
    ),
    "the name of a key, and how much it may do": ("update_key",),
    OWN: (
        "dismiss_first_steps",
        *("create_site", "restore_site", "set_site_domain", "toggle_site_stats", "update_site"),
        *("create_category", "reorder_products", "update_category", "update_resource"),
        *("create_time_off", "delete_time_off", "set_availability", "reply_to_visitor"),
        "add_starts",
        *("admit_assistants", "link_member", "set_booking_page", "set_workspace"),
        *("create_calendar_link", "delete_calendar_link"),
        *("create_busy_calendar", "read_busy_calendar", "delete_busy_calendar"),
        *(
            "delete_waiting_entry",
            "join_waiting_list",
            "leave_waiting_list",
        ),
    ),
    "consent without an exchange of its code gives no access, and an end takes access away": (
        *("end_connection", "grant_access", "refresh_tokens", "revoke_token", "widen_connection"),
    ),
    "the events of the bookings that it changes": ("arrange_absence", "remove_starts"),
    "what a client agrees to, and takes back": ("withdraw_advertising_consent",),
    "a copy for a person, who changes nothing": (
        *("export_client", "export_clients", "export_leads", "export_workspace"),
    ),
    "a page that nobody sees until it is published, which is an event": (
        *("discard_page_draft", "save_page_draft"),
    ),
    "a read by a secret, which must not stand in a URL": ("get_managed_booking", "list_replies"),
    "a draft, which it stores nowhere": ("ai_fill_product", "ai_fill_service"),
    "an event only if a product changes, as upsert_products shows": ("upsert_products_by_id",),
    "the same for clients and services": ("upsert_clients_by_contact", "upsert_services_by_name"),
    "the events of the records that its job creates and changes": (
        *("import_clients", "import_products", "import_services"),
    ),
    "a program's own values, of which nobody is told": ("update_booking",),
    "counts of visits, of which there are too many": ("record_hit", "widget_event"),
}
"""Operations that write and emit nothing, by the reason."""
WRITING = [operation for operation in REGISTRY if not operation.read_only]
NO_EVENTS = {
    operation.name: OWN
    for operation in WRITING
    if operation.module.split(".")[2] in OWN_DOMAINS and Audience.PUBLIC not in operation.audience
} | {name: reason for reason, names in REASONS.items() for name in names}


def run(operation: Operation, runner: ExampleRunner, ids: WorkspaceIds) -> None:
    """Run a valid call of an operation, for the first of its audiences."""
    name, workspace_id = operation.name, ids.workspace_id
    # A computed call for visitors makes a record, and so an event of its own.
    is_visitors = bool(words_in(operation.example) & {*VISITORS_WORDS})
    example = operation.example if is_visitors else session_example(operation, ids)
    sent_arguments = fill(example, runner.placeholders)
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

    ids: WorkspaceIds = snapshots.once(
        f"ids of events {world.workspace_id}",
        lambda: WorkspaceIds.collect(world.workspace_id, world.things),
    )
    if operation.name == "disable_account":
        call_operator("add_member", workspaceId=ids.workspace_id, email=ids.newcomer_email)
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
    if types:
        assert operation.name not in NO_EVENTS, (
            f"{operation.name} emits {types}. Remove its reason from REASONS of this module."
        )
    else:
        assert operation.name in NO_EVENTS, (
            f"{operation.name} writes and emits no event. Declare one in events= of the noun's "
            "Listing, or name the operation at a reason of REASONS in this module."
        )


def test_only_operations_that_write_have_a_reason() -> None:
    assert NO_EVENTS.keys() <= {operation.name for operation in WRITING}
