"""Let the owner choose the channels by which clients are told of their bookings."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field

from chalicelib.application.context import Context
from chalicelib.core.errors import ForbiddenError
from chalicelib.core.messengers import MESSENGERS
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import NoInput, Patch, Wire, optional
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.notifications.flows.client_cascade import CHANNELS
from chalicelib.domains.notifications.rules import client_channels
from chalicelib.domains.notifications.rules.client_channels import Channel, order_of
from chalicelib.gateways import mail, messengers, sms


def _unique(channels: list[Channel]) -> list[Channel]:
    return list(dict.fromkeys(channels))


Order = Annotated[
    list[Channel],
    Field(min_length=1, max_length=len(client_channels.CHANNELS)),
    AfterValidator(_unique),
]


class ClientChannels(Wire):
    """The channels of messages to clients."""

    channels: list[Channel] = Field(
        description="telegram, max, sms or mail: those in use, the first to try first. A message "
        "that is not delivered by one goes to the next."
    )
    available: list[Channel] = Field(description="Channels that the operator has set up.")

    @classmethod
    def from_record(cls, workspace: WorkspaceRow) -> Self:
        return cls(
            channels=list(order_of("confirmed", workspace.client_channels)),
            available=[name for name in client_channels.CHANNELS if _is_available(name)],
        )


class ClientChannelsPatch(Patch):
    """Changes to the channels of messages to clients."""

    channels: Order = optional("The channels in use, in their order.")


@operation(
    title="Get the channels of clients' messages",
    rest="GET /api/client-channels",
    scope=Scope.SETTINGS_READ,
    role=Role.MEMBER,
    example={},
)
def get_client_channels(ctx: Context, args: NoInput) -> ClientChannels:
    """Return the channels by which clients are told of their bookings, in their order."""
    return ClientChannels.from_record(workspaces.get(ctx.workspace_id))


@operation(
    title="Set the channels of clients' messages",
    rest="POST /api/client-channels/update",
    scope=Scope.SETTINGS_WRITE,
    role=Role.MANAGER,
    idempotent=True,
    example={"channels": ["max", "mail"]},
    errors=(ForbiddenError,),
)
def set_client_channels(ctx: Context, args: ClientChannelsPatch) -> ClientChannels:
    """Choose the channels by which clients are told of their bookings, and their order.

    The first channel that leads to the client gets a message. Messages about refunds go by mail
    first. SMS cost money, so only the owner switches them on, in the console.
    """
    workspace = workspaces.get(ctx.workspace_id)
    if "channels" in args.changes:
        if "sms" in args.channels and "sms" not in (workspace.client_channels or ()):
            _require_owner(ctx)
        workspace.client_channels = list(args.channels)
        ctx.unit.save(workspace)
        ctx.unit.mention(f"workspace:{ctx.workspace_id}")
    return ClientChannels.from_record(workspace)


def _require_owner(ctx: Context) -> None:
    principal = ctx.principal
    if isinstance(principal, SessionPrincipal) and principal.membership is Role.OWNER:
        return
    msg = (
        "SMS are paid from the owner's balance. Ask the owner to switch them on in the console, or"
        " send channels without sms."
    )
    raise ForbiddenError(msg, key="role_required", details={"role": Role.OWNER})


def _is_available(channel: Channel) -> bool:
    if channel == "mail":
        return mail.is_on()
    if channel in MESSENGERS:
        return messengers.is_ready(channel)
    return channel in CHANNELS and sms.is_on()
