"""The demo's bot, and what it knows beyond the catalogue."""

from chalicelib.domains.bots.rules import capabilities
from infra.local.demo import bakery
from infra.local.demo.caller import Caller


def make(do: Caller) -> None:
    """Create the bot and its source, as far as they are missing."""
    if not do("list_agents")["agents"]:
        do("create_agent", **bakery.AGENT)
    agent_id = do("list_agents")["agents"][0]["id"]
    if not do("list_knowledge", id=agent_id)["sources"]:
        do("add_knowledge", id=agent_id, **bakery.DELIVERY)


def allow_actions(do: Caller) -> None:
    """Let the bot do everything that bots can do, unless its capabilities were changed."""
    agent_id = do("list_agents")["agents"][0]["id"]
    if tuple(do("get_agent", id=agent_id)["agent"]["capabilities"]) != capabilities.DEFAULT:
        return
    forms = do("list_forms", size=100)["forms"]
    title = bakery.ORDER_FORM["title"]
    form = next((each for each in forms if each["title"] == title), None)
    form = form or do("create_form", **bakery.ORDER_FORM)["form"]
    everything = list(capabilities.CAPABILITIES)
    do("update_agent", id=agent_id, capabilities=everything, orderFormId=form["id"])
