"""The demo's bot, and what it knows beyond the catalogue."""

from infra.local.demo import bakery
from infra.local.demo.caller import Caller

DELIVERY = {
    "title": "Доставка и самовывоз",
    "text": (
        "Доставляем по городу ежедневно с 9:00 до 20:00. Доставка стоит 250 ₽, а от 2 500 ₽ она"
        " бесплатна. Курьер звонит за полчаса до приезда. Забрать заказ самому можно в любой день"
        " в часы работы пекарни. Неполученный заказ храним до закрытия.\n\n"
        "Оплатить можно картой, по QR-коду или наличными при получении. Возвращаем деньги за"
        " выпечку, если она испорчена: пришлите фотографию в день покупки."
    ),
}


def make(do: Caller) -> None:
    """Create the bot and its source, as far as they are missing."""
    if not do("list_agents")["agents"]:
        do("create_agent", **bakery.AGENT)
    agent_id = do("list_agents")["agents"][0]["id"]
    if not do("list_knowledge", id=agent_id)["sources"]:
        do("add_knowledge", id=agent_id, **DELIVERY)
