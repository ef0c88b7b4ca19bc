"""List, create and delete keys of private bots."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import MANAGED, operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Timestamp, Wire, printable
from chalicelib.domains.bots.store import bot_keys
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.engine import locks
from chalicelib.lib import tokens

MAX_KEYS = 5  # of one bot


class BotKeyCreate(Wire):
    """A new key of a bot."""

    agent_id: Id = Field(description="Bot id.")
    name: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
        AfterValidator(printable),
    ] = Field(description="Purpose of the key.")


class BotKeyCreated(Wire):
    """A new key with its token. The token is returned only once."""

    key_id: Id = Field(description="Key id.")
    token: str | None = Field(description="Token. It cannot be shown again.")


class BotKeyRef(Wire):
    """Ids of a bot and of one of its keys."""

    agent_id: Id = Field(description="Bot id.")
    key_id: Id = Field(description="Key id.")


class BotKeyDeleted(Wire):
    """Result of the deletion of a key."""

    key_id: Id = Field(description="Key id.")


class BotKeyOut(Wire):
    """A key of a bot. Its token is not stored."""

    id: Id = Field(description="Key id.")
    name: str = Field(description="Purpose of the key.")
    masked: str = Field(description="Masked token: prefix and last four characters.")
    created_at: Timestamp = Field(description="When it was created.")


class BotKeyListQuery(Wire):
    """Bot whose keys to list."""

    agent_id: Id = Field(description="Bot id.")


class BotKeyList(Wire):
    """All keys of a bot."""

    keys: list[BotKeyOut] = Field(description="Keys, newest first.")
    most: int = Field(description="Maximum number of keys of a bot.")


@operation(
    title="List a bot's keys",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: AGENTS.found(AGENTS.workspace_of(args.agent_id)),
    example={"agentId": "AGENT_ID"},
)
def list_bot_keys(ctx: Context, args: BotKeyListQuery) -> BotKeyList:
    """List the keys of a bot, newest first. Tokens are masked."""
    agent = AGENTS.require(ctx.workspace_id, record_id=args.agent_id)
    rows = bot_keys.read_all(ctx.workspace_id, agent_id=agent.id)[::-1]
    keys = [BotKeyOut.from_row(row.attribute_values, id=row.key_id) for row in rows]
    return BotKeyList(keys=keys, most=MAX_KEYS)


@operation(
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: AGENTS.found(AGENTS.workspace_of(args.agent_id)),
    secret="token",  # noqa: S106  the name of the field
    example={"agentId": "AGENT_ID", "name": "App"},
)
def create_bot_key(ctx: Context, args: BotKeyCreate) -> BotKeyCreated:
    """Create a key of a bot. Its token is shown only once. A private bot requires a key."""
    lock = locks.lock_row(ctx.workspace_id, what=bot_keys.lock_name(args.agent_id))
    agent = AGENTS.require(ctx.workspace_id, record_id=args.agent_id)
    if len(bot_keys.read_all(ctx.workspace_id, agent_id=agent.id)) >= MAX_KEYS:
        msg = f"The bot has {MAX_KEYS} keys, which is the maximum. Delete a key first."
        raise ConflictError(msg, key="too_many_bot_keys", details={"maximum": MAX_KEYS})
    token = ctx.unit.run_side_effect_once("token", lambda: tokens.generate(tokens.BOT_PREFIX))
    key = bot_keys.row(
        token,
        key_id=new_id(),
        name=args.name,
        workspace_id=ctx.workspace_id,
        agent_id=agent.id,
        created_at=clock.now(),
    )
    ctx.unit.save(lock)
    ctx.unit.require(agent)
    ctx.unit.create(key)
    ctx.unit.create(bot_keys.lookup(key))
    ctx.unit.mention(f"bot-key:{key.key_id}")
    return BotKeyCreated(key_id=key.key_id, token=token)


@operation(
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: AGENTS.found(AGENTS.workspace_of(args.agent_id)),
    example={"agentId": "AGENT_ID", "keyId": "BOT_KEY_ID"},
)
def delete_bot_key(ctx: Context, args: BotKeyRef) -> BotKeyDeleted:
    """Delete a key of a bot. Requests with this key are refused from now on."""
    lock = locks.lock_row(ctx.workspace_id, what=bot_keys.lock_name(args.agent_id))
    agent = AGENTS.require(ctx.workspace_id, record_id=args.agent_id)
    key = bot_keys.get(ctx.workspace_id, agent_id=agent.id, key_id=args.key_id)
    ctx.unit.save(lock)
    ctx.unit.delete(key)
    ctx.unit.delete(bot_keys.lookup(key))
    ctx.unit.mention(f"bot-key:{key.key_id}")
    return BotKeyDeleted(key_id=key.key_id)
