"""A bot that may do everything, and another workspace that it must not touch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.conftest import Api, Owner, all_rows
from tests.factories.chat import Bot, new_bot
from tests.factories.salon import Salon

SECRET = "Zanzibar"
"""A word in all strings of the other workspace, and nowhere else."""
CAPABILITIES = ["catalog", "slots", "booking", "order", "handover"]


@dataclass(frozen=True)
class World:
    """The bot's workspace and another one. ``ids`` are ids of the other workspace."""

    bot: Bot
    api: Api
    other: Owner
    ids: Mapping[str, str]

    @classmethod
    def create(cls, api: Api, owner: Owner, new_owner: Callable[..., Owner]) -> "World":
        fields = [
            {"name": "name", "label": "Name", "type": "text", "required": True},
            {"name": "phone", "label": "Phone", "type": "phone", "required": True},
        ]
        form = {"title": "Order", "fields": fields}
        bot = new_bot(owner, capabilities=CAPABILITIES)
        form_id = api.post("/api/forms/create", form)["form"]["id"]
        api.call("PUT", f"/api/agents/{bot.id}", {"orderFormId": form_id})
        Salon.opened(api, [{"name": "Anna"}])
        api.post("/api/products/create", {"name": "Rye bread", "price": 12_000})
        other = new_owner(name=f"{SECRET} salon")
        there = Api(other.token())
        salon = Salon.opened(there, [{"name": f"{SECRET} Zoe"}], name=f"{SECRET} cut")
        there.post("/api/products/create", {"name": f"{SECRET} rye", "price": 1})
        ids = {
            "<service>": salon.service,
            "<slot>": salon.resource,
            "<form>": there.post("/api/forms/create", form)["form"]["id"],
            "<workspace>": other.workspace.id,
        }
        return cls(bot, api, other, ids)

    def others_rows(self) -> dict[str, Any]:
        """Return the rows of the other workspace."""
        workspace_id = self.other.workspace.id
        return {key: row for key, row in all_rows().items() if workspace_id in key}

    def carried_out(self) -> list[Any]:
        """Return what only a confirmation may create: bookings and leads of orders."""
        leads = self.api.get("/api/forms/collection-list")["collections"]
        return [
            *self.api.get("/api/bookings/list")["bookings"],
            *(lead for lead in leads if lead.get("formId")),
        ]
