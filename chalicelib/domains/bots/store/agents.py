"""Store bots, which the API calls agents."""

from typing import Any

from pynamodb.attributes import BooleanAttribute, ListAttribute, UnicodeAttribute

from chalicelib.core.jobs import KNOWLEDGE_STALE
from chalicelib.domains.bots.rules.capabilities import DEFAULT_CAPABILITIES
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import Record

LOCK = "agents"  # name of the lock row (``engine.locks``) for the creation of bots


class AgentRow(Record):
    """A bot."""

    name = UnicodeAttribute()
    system_prompt = UnicodeAttribute()
    model = UnicodeAttribute()
    is_active = BooleanAttribute(default=True)  # An inactive bot does not answer.
    is_private = BooleanAttribute(default=False)  # A private bot requires one of its keys.
    welcome_message = UnicodeAttribute(null=True)
    # Empty: all. Only the widget enforces them.
    allowed_origins: ListAttribute[Any] = ListAttribute(default=list)
    capabilities: ListAttribute[Any] = ListAttribute(default=lambda: list(DEFAULT_CAPABILITIES))
    order_form_id = UnicodeAttribute(null=True)  # the form of orders
    privacy_url = UnicodeAttribute(null=True)  # the page that cards link to for consent


AGENTS = register_listing(
    Listing(
        row=AgentRow,
        noun="AGENT",
        label="bot",
        listed_by="svc_list_agents",
        unavailable_message="This bot does not exist, or it is switched off.",
        text=lambda agent: (agent.name,),
        sorts={"createdAt": "id"},
        presence=("is_active",),
        lookups=(lookups.id_lookup("AGENT"),),
        followed_by=KNOWLEDGE_STALE,
    )
)
