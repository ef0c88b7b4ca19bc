"""A valid call of every console operation, for the tests that run all operations."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.domains.identity.flows import emails, sign_in_proofs
from chalicelib.domains.identity.flows.second_factor import derive_seed
from chalicelib.domains.identity.rules.one_time_codes import DIGITS, STEP_SECONDS, app_secret
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.lib.tokens import REFRESH_PREFIX
from tests.conftest import PASSWORD, Owner, call_console, call_operator
from tests.factories.examples import Things, example
from tests.factories.oauth import GRANT, connect, forged
from tests.factories.payments import MERCHANT, copy_booking, record_payments


@dataclass(frozen=True)
class WorkspaceIds:
    """Ids of a workspace that examples use: its records, its keys, its owner and their session."""

    things: Things
    workspace_id: str
    account_id: str
    email: str
    key: str
    bot_key: str
    session: str
    webhook: str
    event: str
    connection: str
    refresh_token: str
    member: str
    member_id: str
    open_invitation: str
    invitation_token: str
    proof_token: str
    payment: str
    refund: str
    top_up: str
    held: str
    visited: str
    former_merchant: str

    @classmethod
    def collect(cls, workspace_id: str, things: Things) -> "WorkspaceIds":
        """Create the records that examples need beyond a workspace's ``things``."""
        workspace = workspaces.get(workspace_id)
        owner = accounts.get(workspace.owner_id)
        scopes = ["crm:read"]
        key = call_operator("create_key", workspaceId=workspace_id, name="Laptop", scopes=scopes)
        bot_key = call_operator("create_bot_key", agentId=things.agent, name="Site")
        url = "https://receiver.example/"
        webhook = call_operator("create_webhook", workspaceId=workspace_id, url=url)
        event = call_operator("send_test_event", webhookId=webhook["webhookId"])
        Owner(workspace).start_session()
        sessions = call_console(workspace_id, "list_sessions", account_id=owner.id)["sessions"]
        app = connect(workspace)
        member = f"member-{workspace_id.lower()}@example.com"
        call_operator("create_account", email=member, password=PASSWORD)
        call_operator("add_member", workspaceId=workspace_id, email=member)
        guest = {"workspaceId": workspace_id, "email": f"guest-{member}"}
        other = call_operator("create_workspace", owner=member, name="Other")["workspaceId"]
        to_other = call_operator("invite_member", workspaceId=other, email=owner.email)
        return cls(
            things,
            workspace_id,
            owner.id,
            owner.email,
            key=key["keyId"],
            bot_key=bot_key["keyId"],
            session=sessions[0]["id"],
            webhook=webhook["webhookId"],
            event=event["eventId"],
            connection=app.id,
            refresh_token=app.refresh,
            member=member,
            member_id=accounts.require_by_email(member).id,
            open_invitation=call_operator("invite_member", **guest)["id"],
            invitation_token=to_other["url"].rpartition("/")[2],
            proof_token=emails.proof_page_url(owner).rpartition("/")[2],
            **record_payments(workspace_id, owner.id, things.booking)._asdict(),
            held=copy_booking(
                workspace_id,
                things.booking,
                status="pending_payment",
                due=100,
                starts_at=clock.now() + timedelta(days=1),
                ends_at=clock.now() + timedelta(days=1, minutes=30),
                client_email="held@example.com",
            ),
            visited=copy_booking(workspace_id, things.booking, status="completed", price=100),
        )

    @classmethod
    def unknown(cls) -> "WorkspaceIds":
        """Return ids that no record has."""
        return cls(
            Things.unknown(),
            new_id(),
            new_id(),
            f"{new_id().lower()}@example.com",
            key=new_id(),
            bot_key=new_id(),
            session=new_id(),
            webhook=new_id(),
            event=f"evt_{new_id()}",
            connection=new_id(),
            refresh_token=forged(new_id(), REFRESH_PREFIX),
            member=f"{new_id().lower()}@example.com",
            member_id=new_id(),
            open_invitation=new_id(),
            invitation_token=new_id(),
            proof_token=new_id(),
            payment=new_id(),
            refund=new_id(),
            top_up=new_id(),
            held=new_id(),
            visited=new_id(),
            former_merchant=new_id(),
        )

    @property
    def ids(self) -> list[str]:
        """All ids that members of other workspaces must not see."""
        own_ids = [text for text in vars(self).values() if isinstance(text, str)]
        return [*own_ids, *vars(self.things).values()]


SESSION_EXAMPLES: dict[str, Callable[[WorkspaceIds], dict[str, Any]]] = {
    "admit_assistants": lambda h: {"isOn": True, "knowledgeBotId": h.things.agent},
    "accept_invitation": lambda h: {"token": h.invitation_token},
    "change_password": lambda _: {"current": PASSWORD, "password": "battery staple"},
    "check_merchant": lambda _: {},
    "create_bot_key": lambda h: {"agentId": h.things.agent, "name": "App"},
    "create_key": lambda _: {"name": "Laptop", "scopes": ["*:read"]},
    "create_webhook": lambda _: {"url": "https://receiver.example/", "types": ["lead.created"]},
    "delete_bot_key": lambda h: {"agentId": h.things.agent, "keyId": h.bot_key},
    "delete_webhook": lambda h: {"webhookId": h.webhook},
    "end_second_factor": lambda _: {},
    "forget_browsers": lambda _: {},
    "set_sign_in_factor": lambda _: {"isAsked": True},
    "prepare_second_factor": lambda _: {},
    "set_second_factor": lambda h: first_code(h.account_id),
    "end_connection": lambda h: {"id": h.connection},
    "widen_connection": lambda h: {"id": h.connection, "scopes": ["pages:write"]},
    "end_session": lambda h: {"id": h.session},
    "export_leads": lambda _: {"status": "new"},
    "erase_client": lambda h: {"clientId": h.things.client},
    "get_account": lambda _: {},
    "get_assistants": lambda _: {},
    "get_balance": lambda h: {"account": h.email},
    "get_booking_money": lambda h: {"bookingId": h.things.booking},
    "get_booking_page": lambda _: {},
    "get_bot_limits": lambda h: {"agentId": h.things.agent},
    "get_dialog_details": lambda h: {"id": h.things.dialog},
    "get_lead_details": lambda h: {"id": h.things.lead},
    "get_invitation": lambda h: {"token": h.invitation_token},
    "get_merchant": lambda _: {},
    "get_notifications": lambda _: {},
    "get_first_steps": lambda _: {},
    "get_overview": lambda _: {},
    "get_staff_calendar": lambda _: {"view": "week", "date": "2027-01-18"},
    "get_payment_link": lambda h: {"bookingId": h.things.booking},
    "get_payment_terms": lambda h: {"serviceId": h.things.service},
    "get_spending": lambda _: {},
    "get_statement": lambda _: {"limit": 5},
    "get_telegram": lambda _: {},
    "get_former_merchant": lambda h: {"id": h.former_merchant},
    "list_former_merchants": lambda _: {},
    "remove_merchant_secret": lambda h: {"id": h.former_merchant},
    "get_top_up": lambda h: {"id": h.top_up},
    "get_workspace": lambda _: {},
    "grant_access": lambda _: GRANT,
    "invite_member": lambda _: {"email": "new@example.com", "role": "manager"},
    "leave_workspace": lambda _: {},
    "link_member": lambda h: {"accountId": h.member_id, "resourceId": h.things.resource},
    "link_telegram": lambda _: {},
    "list_audit_log": lambda _: {"area": "sites", "limit": 5},
    "list_bot_keys": lambda h: {"agentId": h.things.agent},
    "list_bookings_at_closed_times": lambda _: {},
    "list_connections": lambda _: {},
    "list_dialogs": lambda _: {"search": "bread"},
    "list_held_back_bots": lambda _: {},
    "list_invitations": lambda _: {},
    "list_keys": lambda _: {},
    "list_ledger": lambda h: {"account": h.email, "limit": 5},
    "list_members": lambda _: {},
    "list_my_workspaces": lambda _: {},
    "list_payments": lambda _: {"day": "2027-01-15"},
    "list_sessions": lambda _: {},
    "list_unbookable_services": lambda _: {"ids": []},
    "list_webhook_deliveries": lambda h: {"webhookId": h.webhook},
    "list_webhooks": lambda _: {},
    "note_visit_payment": lambda h: {"bookingId": h.visited, "method": "cash"},
    "refund_payment": lambda h: {"id": h.payment, "amount": 100},
    "reply_to_visitor": lambda h: {"id": h.things.dialog, "text": "Hello"},
    "remove_member": lambda h: {"email": h.member},
    "resend_webhook_delivery": lambda h: {"webhookId": h.webhook, "eventId": h.event},
    "retry_refund": lambda h: {"id": h.payment, "refundId": h.refund},
    "revoke_invitation": lambda h: {"id": h.open_invitation},
    "revoke_key": lambda h: {"id": h.key},
    "rotate_webhook_secret": lambda h: {"webhookId": h.webhook},
    "send_test_event": lambda h: {"webhookId": h.webhook},
    "send_payment_link": lambda h: {"bookingId": h.held},
    "set_booking_page": lambda h: {"isOn": True, "offer": [h.things.service]},
    "set_bot_limits": lambda h: {"agentId": h.things.agent, "daily": 500},
    "set_closing_receipts": lambda _: {"closedBy": "register"},
    "set_member_role": lambda h: {"email": h.member, "role": "manager"},
    "set_merchant": lambda _: MERCHANT,
    "set_notifications": lambda _: {"language": "ru"},
    "set_payment_terms": lambda h: {
        "serviceId": h.things.service,
        "depositPercent": 30,
        "refundUntilMin": 60,
    },
    "set_workspace": lambda _: {"name": "Renamed"},
    "sign_out_everywhere": lambda _: {},
    "start_top_up": lambda _: {"amount": 10_000},
    "unlink_telegram": lambda _: {},
    "prove_email": lambda h: {"token": h.proof_token},
    "request_proof": lambda _: {},
    "update_account": lambda _: {"name": "Ada", "language": "ru"},
    "update_webhook": lambda h: {"webhookId": h.webhook, "types": ["lead.created"]},
}
"""Examples of operations that are not for keys, too."""
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
    return ids.member_id if operation.name == "leave_workspace" else ids.account_id


def session_example(operation: Operation, ids: WorkspaceIds) -> dict[str, Any]:
    """Return the arguments of a valid call."""
    if operation.example is not None:
        return example(operation, ids.things)
    return SESSION_EXAMPLES[operation.name](ids)


def uses_workspace_ids(operation: Operation) -> bool:
    """Whether the operation's example contains an id of the workspace."""
    one, other = (session_example(operation, WorkspaceIds.unknown()) for _ in "ab")
    # The code of a second factor depends on the account, and names no record.
    return one != other and operation.name != "set_second_factor"


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
        and uses_workspace_ids(operation) is with_ids
    ]
