"""The demo's bot, and what it knows beyond the catalogue."""

from chalicelib.domains.bots.rules.capabilities import CAPABILITIES, DEFAULT_CAPABILITIES
from infra.local.demo import bakery
from infra.local.demo.caller import Caller
from infra.local.demo.texts import Language


def make(do: Caller, language: Language) -> None:
    """Create the bot and its source, as far as they are missing."""
    shop = bakery.load(language)
    if not do("list_agents")["agents"]:
        do("create_agent", **shop.agent)
    agent_id = do("list_agents")["agents"][0]["id"]
    if not do("list_knowledge", id=agent_id)["sources"]:
        do("add_knowledge", id=agent_id, **shop.delivery)


def allow_actions(do: Caller, language: Language) -> None:
    """Let the bot do everything that bots can do, unless its capabilities were changed."""
    agent_id = do("list_agents")["agents"][0]["id"]
    if tuple(do("get_agent", id=agent_id)["agent"]["capabilities"]) != DEFAULT_CAPABILITIES:
        return
    order_form = bakery.load(language).order_form
    forms = {form["title"]: form for form in do("list_forms", size=100)["forms"]}
    form = forms.get(order_form["title"]) or do("create_form", **order_form)["form"]
    everything = list(CAPABILITIES)
    do("update_agent", id=agent_id, capabilities=everything, orderFormId=form["id"])
