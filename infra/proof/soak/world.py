"""The workspaces of the soak, each with an account, a bot, a form, a service and a webhook."""

from contextlib import suppress
from typing import NamedTuple

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.identity.store import accounts
from infra.local.demo.caller import Caller
from infra.operator.operation_commands import call
from infra.proof.soak.others import MODEL

BALANCE = 10**8
"""Kopecks of the first top-up."""
STAFF = 2


class World(NamedTuple):
    """Ids of a workspace and of what its clients use."""

    name: str
    account_id: str
    workspace_id: str
    key: str
    agent_id: str
    form_id: str
    service_id: str
    resource_ids: tuple[str, ...]


def email_of(name: str) -> str:
    """Return the address of a workspace's owner."""
    return f"{name}@example.com"


def top_up(name: str, number: int, *, kopecks: int) -> int:
    """Credit a workspace's owner, as the operator does. Returns the kopecks.

    The wallet may be busy with charges, so the call is repeated with its idempotency key.
    """
    about = {"reason": "Top-up", "idempotencyKey": f"{name}-{number}"}
    while True:
        with suppress(UnavailableError):
            call("credit", {"account": email_of(name), "kopecks": kopecks, **about})
            return kopecks


def make(name: str, *, hook_url: str) -> World:
    """Create a workspace."""
    password = "not-a-secret-of-the-soak"  # noqa: S105  the database lives as long as the soak
    call("create_account", {"email": email_of(name), "password": password})
    created = call("create_workspace", {"owner": email_of(name), "name": name, "plan": "business"})
    workspace = created["workspaceId"]
    scopes = ["*:read", "*:write"]
    key = call("create_key", {"workspaceId": workspace, "name": name, "scopes": scopes})["token"]
    call("create_webhook", {"workspaceId": workspace, "url": hook_url})
    do = Caller(key)
    service = do(
        "create_service", name="Haircut", durationMin=30, horizonDays=200, unverifiedPerHour=1000
    )["service"]["id"]
    staff = tuple(
        do("create_resource", name=f"Staff {number}", serviceIds=[service])["resource"]["id"]
        for number in range(STAFF)
    )
    week = {"weekdays": list(range(7)), "start": "08:00", "end": "20:00"}
    for member in staff:
        do("set_availability", resourceId=member, rules=[week])
    fields = [
        {"name": "name", "label": "Name", "required": True},
        {"name": "email", "label": "E-mail", "type": "email"},
        {"name": "message", "label": "Message", "type": "textarea"},
    ]
    agent = do("create_agent", name="Bot", systemPrompt="You sell bread.", model=MODEL)["agent"]
    # All clients have one address, so as one visitor they would soon have spent their share.
    call("set_bot_limits", {"agentId": agent["id"], "daily": None})
    return World(
        name,
        accounts.require_by_email(email_of(name)).id,
        workspace,
        key,
        agent["id"],
        do("create_form", title="Contact", fields=fields)["form"]["id"],
        service,
        staff,
    )
