"""Show to which advertising a client has agreed, and withdraw it for the client (ADR 140).

Only the client can agree, so no operation grants anything.
"""

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import ApiKeyPrincipal, Role
from chalicelib.core.scopes import Scope
from chalicelib.domains.clients.flows.advertising_models import AdvertisingConsents
from chalicelib.domains.clients.flows.client_models import ClientRef
from chalicelib.domains.clients.store import advertising_consents
from chalicelib.domains.clients.store.clients import CLIENTS


@operation(
    rest="GET /api/clients/{id}/advertising",
    title="Read consents to advertising",
    scope=Scope.CRM_READ,
    example={"id": "CLIENT_ID"},
    role=Role.MEMBER,
)
def get_advertising_consents(ctx: Context, args: ClientRef) -> AdvertisingConsents:
    """Return to which advertising a client has agreed, with the text, its version and the time."""
    CLIENTS.require(ctx.workspace_id, record_id=args.id)
    entries = advertising_consents.read(ctx.workspace_id, client_id=args.id)
    return AdvertisingConsents.from_entries(entries)


@operation(
    rest="POST /api/clients/withdraw-advertising",
    title="Withdraw a consent to advertising",
    scope=Scope.CRM_WRITE,
    idempotent=True,
    example={"id": "CLIENT_ID"},
    role=Role.MEMBER,
)
def withdraw_advertising_consent(ctx: Context, args: ClientRef) -> AdvertisingConsents:
    """Withdraw a client's consent to e-mail that advertises, at the client's wish.

    Only the client can agree again. Repeating the call has no effect.
    """
    CLIENTS.require(ctx.workspace_id, record_id=args.id)
    is_key = isinstance(ctx.principal, ApiKeyPrincipal)
    ctx.unit.mention(f"client:{args.id}")
    entries = advertising_consents.stage_withdrawal(
        ctx.unit,
        client_id=args.id,
        by=ctx.principal.audit_actor,
        source="key" if is_key else "console",
    )
    return AdvertisingConsents.from_entries(entries)
