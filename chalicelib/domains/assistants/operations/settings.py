"""The owner's switch of the tools for assistants, and what assistants have done."""

from datetime import timedelta
from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, InTestWorkspaceError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import Id, NoInput, Patch, Wire, optional
from chalicelib.domains.booking_page.flows import directory_listing
from chalicelib.domains.booking_page.rules import prepared_links
from chalicelib.domains.booking_page.store import assistant_metrics, page_settings
from chalicelib.domains.booking_page.store.page_settings import AssistantsRow, BookingPageRow
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.leads.store.forms import FORMS
from chalicelib.engine import metrics
from chalicelib.engine.metrics import DayCounts
from chalicelib.engine.reading import Key, Rows

DAYS = 30  # Days of the statistics, including today.


class AssistantSettings(Wire):
    """The switch of the tools for assistants."""

    slug: str = Field(description="The workspace's slug, which the address contains.")
    is_on: bool = Field(description="Whether assistants may call the tools.")
    is_listed: bool = Field(
        description="Whether any assistant finds the business by name, town and trade."
    )
    page_is_on: bool = Field(description="Whether visitors can open the booking page.")
    order_form_id: Id | None = Field(description="Form for orders, or null: no orders.")
    knowledge_bot_id: Id | None = Field(description="Bot whose knowledge is searched, or null.")

    @classmethod
    def from_rows(cls, workspace_id: str, rows: Rows, row: AssistantsRow | None = None) -> Self:
        # ``row`` takes the place of the stored state.
        row = row or AssistantsRow.read(workspace_id, rows)
        return cls(
            slug=workspaces.get(workspace_id, rows).slug,
            is_on=row.is_on,
            is_listed=row.is_listed,
            page_is_on=BookingPageRow.read(workspace_id, rows).is_on,
            order_form_id=row.order_form_id,
            knowledge_bot_id=row.knowledge_bot_id,
        )


class ToolCalls(Wire):
    """Calls of a tool."""

    tool: str = Field(description="Name of the tool.")
    calls: int = Field(description="Number of calls.")


class AssistantDay(Wire):
    """What assistants did on a day."""

    day: str = Field(description="Day, YYYY-MM-DD.")
    calls: int = Field(description="Tool calls.")
    bookings: int = Field(description="Bookings that began with an assistant's link.")


class AssistantDetails(AssistantSettings):
    """The switch, and what assistants have done in 30 days."""

    calls: int = Field(description="Tool calls.")
    bookings: int = Field(description="Bookings that began with an assistant's link.")
    tools: list[ToolCalls] = Field(description="Called tools, the most called first.")
    days: list[AssistantDay] = Field(description="Days with calls or bookings, the latest first.")


class AssistantPatch(Patch):
    """Changes to the switch of the tools for assistants."""

    is_on: bool = optional("Whether assistants may call the tools.")
    is_listed: bool = optional(
        "Whether any assistant finds the business by name, town and trade. Only with isOn."
    )
    order_form_id: Id | None = optional("Form for orders; null: no orders.")
    knowledge_bot_id: Id | None = optional("Bot whose knowledge is searched; null: none.")


@operation(title="Get the tools for AI assistants", role=Role.MEMBER)
def get_assistants(ctx: Context, args: NoInput) -> AssistantDetails:
    """Return whether visitors' assistants may call the booking page's tools, and what they did."""
    rows = Rows()
    rows.read(_keys(ctx.workspace_id))
    workspace = workspaces.get(ctx.workspace_id, rows)
    today = clock.local_day(clock.now(), workspace.timezone)
    first = today - timedelta(days=DAYS - 1)
    # Calls are counted by the day in UTC, which may have begun before the workspace's.
    last = max(today, clock.now().date())
    days = metrics.read(ctx.workspace_id, subject=assistant_metrics.SUBJECT, first=first, last=last)
    total = metrics.total(days.values())
    return AssistantDetails(
        **AssistantSettings.from_rows(ctx.workspace_id, rows).model_dump(),
        calls=total.totals[assistant_metrics.CALLS],
        bookings=total.totals[assistant_metrics.BOOKINGS],
        tools=_tool_calls(total),
        days=[
            AssistantDay(
                day=day.isoformat(),
                calls=counts.totals[assistant_metrics.CALLS],
                bookings=counts.totals[assistant_metrics.BOOKINGS],
            )
            for day, counts in reversed(days.items())
            if counts.totals
        ],
    )


def _tool_calls(total: DayCounts) -> list[ToolCalls]:
    prefix = assistant_metrics.name_measure("")
    calls = {
        measure.removeprefix(prefix): number
        for measure, number in total.totals.most_common()
        if measure.startswith(prefix)
    }
    return [ToolCalls(tool=tool, calls=number) for tool, number in calls.items()]


@operation(
    title="Set up the tools for AI assistants",
    role=Role.MANAGER,
    idempotent=True,
    example={"isOn": True, "knowledgeBotId": "AGENT_ID"},
    errors=(ConflictError,),
)
def admit_assistants(ctx: Context, args: AssistantPatch) -> AssistantSettings:
    """Switch the tools of the booking page for visitors' assistants on or off.

    Omitted fields do not change. Switching them off also ends the links that they have prepared,
    and the listing of the business.
    """
    rows = Rows()
    rows.read(directory_listing.keys(ctx.workspace_id))
    row, changes = AssistantsRow.read(ctx.workspace_id, rows), args.changes
    if (form_id := changes.get("order_form_id")) is not None:
        FORMS.require(ctx.workspace_id, record_id=form_id)
    if (bot_id := changes.get("knowledge_bot_id")) is not None:
        AGENTS.require(ctx.workspace_id, record_id=bot_id)
    for name in ("order_form_id", "knowledge_bot_id"):
        if name in changes:
            setattr(row, name, changes[name])
    if "is_on" in changes and changes["is_on"] is not row.is_on:
        row.is_on = changes["is_on"]
        row.link_secret = prepared_links.new_secret() if changes["is_on"] else None
    row.is_listed = row.is_on and changes.get("is_listed", row.is_listed)
    if changes.get("is_listed") and not row.is_listed:
        raise ConflictError("Let assistants in first (isOn).", key="assistants_off")
    if row.is_listed and is_test(ctx.workspace_id):
        raise InTestWorkspaceError("A test workspace is not listed.", key="listing")
    ctx.unit.save(row)
    directory_listing.stage(ctx.unit, rows, assistants=row)
    ctx.unit.mention(f"workspace:{ctx.workspace_id}")
    return AssistantSettings.from_rows(ctx.workspace_id, rows, row)


def _keys(workspace_id: str) -> list[Key]:
    return [
        workspaces.key(workspace_id),
        page_settings.key(workspace_id),
        page_settings.assistants_key(workspace_id),
    ]
