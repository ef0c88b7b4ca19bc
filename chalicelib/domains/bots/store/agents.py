"""Bots (agents): what they are told, which model answers, and who may talk to them."""

from typing import Any

from pynamodb.attributes import BooleanAttribute, ListAttribute, UnicodeAttribute

from chalicelib.engine.claims import ClaimRow
from chalicelib.engine.listing.listing import Listing, listed
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.tables import Record

ID_CLAIM = "agent-id"
"""The platform-wide look-up from a bot's id, with which visitors come, to its workspace."""
LOCK = "agents"
"""The lock row (``engine.locks``) of adding bots."""


class AgentRow(Record):
    """A bot. One that is not active does not answer; a private one asks for a key of its own.

    ``allowed_origins`` are obeyed by the widget alone; none means all.
    """

    name = UnicodeAttribute()
    system_prompt = UnicodeAttribute()
    model = UnicodeAttribute()
    is_active = BooleanAttribute(default=True)
    is_private = BooleanAttribute(default=False)
    welcome_message = UnicodeAttribute(null=True)
    allowed_origins: ListAttribute[Any] = ListAttribute(default=list)


AGENTS = listed(
    Listing(
        row=AgentRow,
        noun="AGENT",
        text=lambda agent: (agent.name,),
        sorts={"createdAt": "id"},
        presence=("is_active",),
        lookups=(Lookup(ID_CLAIM, lambda agent: agent.id, platform_wide=True),),
    )
)


def workspace_of(agent_id: str) -> str | None:
    """Return the workspace that a bot is of, or None."""
    return ClaimRow.workspace_of(ID_CLAIM, agent_id)
