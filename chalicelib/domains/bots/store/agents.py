"""Bots (agents): what they are told, which model answers, and who may talk to them."""

from typing import Any

from pynamodb.attributes import BooleanAttribute, ListAttribute, UnicodeAttribute

from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import listed
from chalicelib.engine.tables import Record

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
        label="bot",
        listed_by="svc_list_agents",
        unavailable_message="There is no such bot, or it is switched off.",
        text=lambda agent: (agent.name,),
        sorts={"createdAt": "id"},
        presence=("is_active",),
        lookups=(lookups.by_id("AGENT"),),
    )
)
