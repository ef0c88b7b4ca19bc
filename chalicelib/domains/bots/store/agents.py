"""Store bots, which the API calls agents."""

from typing import Any

from pynamodb.attributes import BooleanAttribute, ListAttribute, UnicodeAttribute

from chalicelib.core.jobs import KNOWLEDGE_STALE
from chalicelib.domains.bots.rules.capabilities import DEFAULT_CAPABILITIES
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import Record

LOCK = "agents"
"""Name of the lock row (``engine.locks``) that serializes the creation of bots."""


class AgentRow(Record):
    """A bot. An inactive bot does not answer; a private bot requires one of its keys.

    Only the widget enforces ``allowed_origins``. An empty list allows all origins. ``capabilities``
    are listed in ``domains.bots.rules.capabilities``. ``order_form_id`` is the form of orders, and
    ``privacy_url`` the page that cards link to for consent.
    """

    name = UnicodeAttribute()
    system_prompt = UnicodeAttribute()
    model = UnicodeAttribute()
    is_active = BooleanAttribute(default=True)
    is_private = BooleanAttribute(default=False)
    welcome_message = UnicodeAttribute(null=True)
    allowed_origins: ListAttribute[Any] = ListAttribute(default=list)
    capabilities: ListAttribute[Any] = ListAttribute(default=lambda: list(DEFAULT_CAPABILITIES))
    order_form_id = UnicodeAttribute(null=True)
    privacy_url = UnicodeAttribute(null=True)


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
