"""List, read, create and update bots, and set their access for the operator."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ConflictError
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.text import is_visible
from chalicelib.core.wire.lists import ListResult, WholeListQuery
from chalicelib.core.wire.schema import (
    RECEIVED,
    Id,
    Patch,
    Timestamp,
    Wire,
    optional,
    printable,
)
from chalicelib.domains.billing.rules.spending_windows import first_daily_limit
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.domains.bots.rules.capabilities import (
    CAPABILITIES,
    DEFAULT_CAPABILITIES,
    Capability,
    normalize_capabilities,
)
from chalicelib.domains.bots.store import agents, bot_keys
from chalicelib.domains.bots.store.agents import AGENTS, AgentRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine import locks
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.registry import listing_of
from chalicelib.gateways import llm
from chalicelib.gateways.llm import models
from chalicelib.lib import origins, public_urls

MAX_AGENTS = 100  # in a workspace. By default, the list returns all bots.
MAX_PROMPT = 20_000
MAX_WELCOME = 1000
MAX_ORIGINS = 20
MAX_ORIGIN = 300


def _visible(text: str) -> str:
    if not is_visible(text):
        raise PydanticCustomError("invisible", "expected at least one visible character")
    return text


def _model(name: str) -> str:
    if models.is_arn(name):
        raise PydanticCustomError(
            "model_arn", "expected the name of a model, received an ARN", {RECEIVED: True}
        )
    return printable(name)


def _origin(text: str) -> str:
    try:
        return origins.normalize_origin(text)
    except ValueError as error:
        raise PydanticCustomError("origin", "{reason}", {"reason": str(error)}) from None


def _https_url(text: str) -> str:
    try:
        return str(public_urls.parse(text))
    except ValueError as error:
        raise PydanticCustomError("url", "{reason}", {"reason": str(error)}) from None


def _unique(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))


AgentName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100),
    AfterValidator(printable),
]
Prompt = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_PROMPT), AfterValidator(_visible)
]
ModelName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100),
    AfterValidator(_model),
]
Capabilities = Annotated[
    list[Capability],
    Field(max_length=len(CAPABILITIES)),
    AfterValidator(normalize_capabilities),
]
PrivacyUrl = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=public_urls.MAX_LENGTH),
    AfterValidator(_https_url),
]
Welcome = Annotated[str, StringConstraints(max_length=MAX_WELCOME)]
Origins = Annotated[
    list[Annotated[str, StringConstraints(max_length=MAX_ORIGIN), AfterValidator(_origin)]],
    Field(max_length=MAX_ORIGINS),
    AfterValidator(_unique),
]


class AgentRef(Wire):
    """Id of a bot."""

    id: Id = Field(description="Bot id.")


class AgentSummary(AgentRef):
    """A bot in a list, without its prompt."""

    name: str = Field(description="Name of the bot.")
    model: str = Field(description="Model that answers.")
    is_active: bool = Field(description="Whether it answers visitors.")
    is_private: bool = Field(description="Whether it requires a bot key.")
    welcome_message: str | None = Field(description="First message in the widget, or null.")
    allowed_origins: list[str] = Field(description="Origins the widget works on; empty: all.")
    created_at: Timestamp = Field(description="When it was created.")
    updated_at: Timestamp = Field(description="When it was last changed.")


class AgentOut(AgentSummary):
    """A bot."""

    system_prompt: str = Field(description="Instructions for the model. Visitors can extract them.")
    capabilities: list[Capability] = Field(description="What it may look up and propose.")
    order_form_id: Id | None = Field(description="Form that takes its orders, or null.")
    privacy_url: str | None = Field(description="Privacy policy on its cards, or null.")


class AgentResult(Wire):
    """One bot."""

    agent: AgentOut = Field(description="The bot.")


class AgentWithKeys(AgentResult):
    """One bot with its masked keys."""

    keys: list[str] = Field(description="Masked keys: prefix and last four characters.")


class AgentListQuery(WholeListQuery):
    """Page and order of the bots."""


class AgentList(ListResult):
    """All bots."""

    agents: list[AgentSummary] = Field(description="The bots, newest first.")


class AgentCreate(Wire):
    """A new bot."""

    name: AgentName = Field(description="Name.")
    system_prompt: Prompt = Field(description="Instructions; visitors can extract them.")
    model: ModelName = Field(description='Any model name; "demo" needs no provider.')
    is_active: bool = Field(default=True, description="Whether it answers visitors.")
    is_private: bool = Field(default=False, description="Whether it requires a bot key.")
    welcome_message: Welcome | None = optional("First message in the widget.")
    allowed_origins: Origins = Field(
        default_factory=list, description="Origins where the widget works; []: all."
    )


class AgentPatch(Patch, AgentCreate, AgentRef):
    """Changes to a bot."""

    model: ModelName = optional("Any model name.")
    welcome_message: Welcome | None = optional("First message in the widget.")
    allowed_origins: Origins = optional("Replaces all; []: all origins.")
    capabilities: Capabilities = optional(
        "Replaces all. catalog: reads products; slots: finds times; booking, order: "
        "proposes; handover: calls staff."
    )
    order_form_id: Id | None = optional("Form for orders.")
    privacy_url: PrivacyUrl | None = optional("Privacy policy.")


class AgentAccess(Patch, AgentRef):
    """Changes to the access settings of a bot."""

    is_active: bool = optional("Whether it answers visitors.")
    is_private: bool = optional("Whether it requires a bot key.")


class AgentAccessResult(Wire):
    """Access settings of a bot."""

    agent_id: Id = Field(description="Bot id.")
    is_active: bool = Field(description="Whether it answers visitors.")
    is_private: bool = Field(description="Whether it requires a bot key.")


def _check_model(ctx: Context, name: str) -> None:
    # The name is passed to the provider unchanged.
    if not llm.is_known(name, tenant=ctx.workspace_id):
        suggestions = models.similar_names(name)
        hint = f" Did you mean {' or '.join(suggestions)}?" if suggestions else ""
        ctx.warn(
            f'The model "{name}" is not in the catalogue. The name is sent to the provider '
            "unchanged, and answers are charged at the highest price. The provider may not have "
            f"this model.{hint}",
            code=WarningCode.UNKNOWN_MODEL,
            model=name,
            suggestions=suggestions,
        )


def _check_capabilities(ctx: Context, agent: AgentRow) -> None:
    needed = [
        capability for capability in agent.capabilities if capability not in DEFAULT_CAPABILITIES
    ]
    if needed and not llm.takes_tools(agent.model, tenant=ctx.workspace_id):
        ctx.warn(
            f'The model "{agent.model}" cannot call tools, so these capabilities do not work with '
            f"it: {', '.join(needed)}. Choose another model.",
            code=WarningCode.MODEL_WITHOUT_TOOLS,
            model=agent.model,
            capabilities=needed,
        )


@operation(
    tool=True,
    rest="GET /api/agents/list",
    scope=Scope.AGENTS_READ,
    role=Role.MEMBER,
    title="List bots",
    example={},
)
def list_agents(ctx: Context, args: AgentListQuery) -> AgentList:
    """List all bots, newest first, without their prompts."""
    page = AGENTS.page(ctx.workspace_id, AGENTS.query(args))
    agents = [AgentSummary.from_row(agent.values) for agent in page.records]
    return AgentList(agents=agents, **args.counted(page.total))


@operation(
    tool=True,
    rest="GET /api/agents/{id}",
    scope=Scope.AGENTS_READ,
    role=Role.MANAGER,
    title="Get a bot",
    example={"id": "AGENT_ID"},
)
def get_agent(ctx: Context, args: AgentRef) -> AgentWithKeys:
    """Return one bot with its prompt, and its keys masked."""
    agent = AGENTS.require(ctx.workspace_id, record_id=args.id)
    keys = bot_keys.read_all(ctx.workspace_id, agent_id=agent.id)
    return AgentWithKeys(agent=AgentOut.from_row(agent.values), keys=[key.masked for key in keys])


@operation(
    tool=True,
    rest="POST /api/agents/create",
    scope=Scope.AGENTS_WRITE,
    role=Role.MANAGER,
    title="Create a bot",
    example={
        "name": "Baker",
        "systemPrompt": "You sell bread.",
        "model": "demo",
        "allowedOrigins": ["https://bakery.example"],
    },
    errors=(ConflictError,),
)
def create_agent(ctx: Context, args: AgentCreate) -> AgentResult:
    """Create a chat bot. Treat systemPrompt as public.

    The bot may spend 100 rubles a day, or a tenth of the balance if that is more. Spending limits
    and bot keys are set in the console.
    """
    lock = locks.lock_row(ctx.workspace_id, what=agents.LOCK)
    count = counters.read(ctx.workspace_id, noun=AGENTS.noun)["total"]
    if count >= MAX_AGENTS:
        msg = f"The workspace has {count} bots, which is the maximum. Change an unused bot instead."
        raise ConflictError(msg, key="too_many_agents", details={"maximum": MAX_AGENTS})
    _check_model(ctx, args.model)
    agent = AGENTS.new(ctx.workspace_id, **dict(args))
    ctx.unit.save(lock)
    ctx.unit.create(agent)
    wallet = ledger.wallet(workspaces.get(ctx.workspace_id).owner_id)
    daily = first_daily_limit(int(wallet.available + wallet.reserved))
    budgets.set_limits(ctx.unit, budgets.new(ctx.workspace_id, agent_id=agent.id), {"daily": daily})
    return AgentResult(agent=AgentOut.from_row(agent.values))


@operation(
    tool=True,
    rest="PUT /api/agents/{id}",
    scope=Scope.AGENTS_WRITE,
    role=Role.MANAGER,
    title="Update a bot",
    idempotent=True,
    example={"id": "AGENT_ID", "name": "Miller", "welcomeMessage": None},
)
def update_agent(ctx: Context, args: AgentPatch) -> AgentResult:
    """Change a bot; omitted fields stay unchanged. Treat systemPrompt as public."""
    agent = AGENTS.require(ctx.workspace_id, record_id=args.id)
    for name, value in args.changes.items():
        setattr(agent, name, value)
    if "model" in args.changes:
        _check_model(ctx, agent.model)
    if {"model", "capabilities"} & args.changes.keys():
        _check_capabilities(ctx, agent)
    if args.changes.get("order_form_id") is not None:
        listing_of("FORM").require(ctx.workspace_id, record_id=agent.order_form_id)
    ctx.unit.save(agent)
    return AgentResult(agent=AgentOut.from_row(agent.values))


@operation(
    title="Set whether a bot answers",
    audience=OPERATOR,
    resolve=lambda args: AGENTS.found(AGENTS.workspace_of(args.id)),
    idempotent=True,
    example={"id": "AGENT_ID", "isActive": False},
)
def set_bot(ctx: Context, args: AgentAccess) -> AgentAccessResult:
    """Set whether a bot answers visitors, and whether it requires a bot key."""
    agent = AGENTS.require(ctx.workspace_id, record_id=args.id)
    for name, value in args.changes.items():
        setattr(agent, name, value)
    ctx.unit.save(agent)
    return AgentAccessResult.from_row(agent.values, agent_id=agent.id)
