"""Link a member's Telegram chat, return its state, and unlink it.

A member of any role may change the own link, so the changes are declared as changes of an account
(``platform``).
"""

from datetime import timedelta
from secrets import token_urlsafe

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ForbiddenError, UpstreamFailedError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import operation
from chalicelib.core.own_part import OWN_ACCOUNT
from chalicelib.core.principals import PLATFORM, Role
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import NoInput, Timestamp, Wire
from chalicelib.domains.notifications.store import telegram_links
from chalicelib.gateways import telegram
from chalicelib.gateways.messenger_errors import MessengerError

CODE_BYTES = 16
NEW_CODES = Limit("telegram-codes", "codes for Telegram within an hour", 20, timedelta(hours=1))


class TelegramCode(Wire):
    """A code that links the chat in which it is sent."""

    code: str = Field(description="The code. Send it to the bot as /start and the code.")
    bot: str = Field(description="User name of the bot, without @.")
    url: str = Field(description="URL that opens the bot and sends the code.")
    expires_at: Timestamp = Field(description="When the code expires. It is valid once.")


class TelegramState(Wire):
    """The Telegram chat of the caller in the workspace."""

    is_configured: bool = Field(description="Whether the operator has set up a bot.")
    is_linked: bool = Field(description="Whether the caller has linked a chat.")
    name: str | None = Field(description="Name of the person in Telegram, or null.")
    linked_at: Timestamp | None = Field(description="When the chat was linked, or null.")


class TelegramUnlinked(Wire):
    """Result of unlinking."""

    was_linked: bool = Field(description="Whether there was a link.")


@operation(title="Get one's own Telegram chat", role=Role.MEMBER, own=OWN_ACCOUNT)
def get_telegram(ctx: Context, args: NoInput) -> TelegramState:
    """Return whether the caller receives messages about the workspace by Telegram."""
    try:
        configured = telegram.is_configured()
    except MessengerError as error:
        raise UpstreamFailedError(_reason(error), key="telegram") from error
    link = telegram_links.find(_workspace(ctx), account_id=ctx.principal.account_id)
    return TelegramState(
        is_configured=configured,
        is_linked=link is not None,
        name=link.name if link else None,
        linked_at=link.linked_at if link else None,
    )


@operation(
    title="Link one's own Telegram chat",
    role=Role.MEMBER,
    own=OWN_ACCOUNT,
    platform=True,
    limit=NEW_CODES,
    accepts_idempotency_key=False,
)
def link_telegram(ctx: Context, args: NoInput) -> TelegramCode:
    """Create a code for 10 minutes. The chat that sends it to the bot is linked.

    The link replaces the caller's former link in the workspace.
    """
    workspace_id = _workspace(ctx)
    try:
        bot = ctx.unit.run_side_effect_once("bot", telegram.bot_name)
    except MessengerError as error:
        raise UpstreamFailedError(_reason(error), key="telegram") from error
    code = ctx.unit.run_side_effect_once("code", lambda: token_urlsafe(CODE_BYTES))
    row = telegram_links.code_row(
        code, workspace_id=workspace_id, account_id=ctx.principal.account_id
    )
    ctx.unit.create(row)
    url = f"{settings().telegram_links}/{bot}?start={code}"
    return TelegramCode(code=code, bot=bot, url=url, expires_at=row.expires or clock.now())


@operation(
    title="Unlink one's own Telegram chat",
    platform=True,
    idempotent=True,
    role=Role.MEMBER,
    own=OWN_ACCOUNT,
)
def unlink_telegram(ctx: Context, args: NoInput) -> TelegramUnlinked:
    """End the caller's link in the workspace. The chat receives no more messages about it."""
    link = telegram_links.find(_workspace(ctx), account_id=ctx.principal.account_id)
    if link is not None:
        telegram_links.stage_end(ctx.unit, link)
    return TelegramUnlinked(was_linked=link is not None)


def _workspace(ctx: Context) -> str:
    workspace_id = ctx.principal.workspace_id
    if workspace_id == PLATFORM:
        raise ForbiddenError("Choose a workspace first.", key="no_workspace")
    return workspace_id


def _reason(error: MessengerError) -> str:
    return f"Telegram cannot be used now: {error}. Try again later."
