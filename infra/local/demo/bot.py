"""The demo's bot, and what it knows beyond the catalogue."""

from chalicelib.domains.bots.rules import capabilities
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
ORDER_FORM = {
    "title": "Заказ в чате",
    "fields": [
        {"name": "name", "label": "Как к вам обращаться", "required": True},
        {"name": "phone", "label": "Телефон", "type": "phone", "required": True},
        {
            "name": "pickup",
            "label": "Как получить",
            "type": "select",
            "options": ["Заберу сам", "Доставка"],
            "required": True,
        },
        {
            "name": "address",
            "label": "Адрес доставки или время самовывоза",
            "type": "textarea",
            "required": True,
        },
        {
            "name": "consent",
            "label": "Согласен на обработку персональных данных",
            "type": "consent",
            "required": True,
        },
    ],
    "successMessage": "Спасибо за заказ! Перезвоним, чтобы его подтвердить.",
}
"""The form that takes orders of the bot. It is on no page, so it belongs to no site."""


def make(do: Caller) -> None:
    """Create the bot and its source, as far as they are missing."""
    if not do("list_agents")["agents"]:
        do("create_agent", **bakery.AGENT)
    agent_id = do("list_agents")["agents"][0]["id"]
    if not do("list_knowledge", id=agent_id)["sources"]:
        do("add_knowledge", id=agent_id, **DELIVERY)


def allow_actions(do: Caller) -> None:
    """Let the bot do everything that bots can do, unless its capabilities were changed."""
    agent_id = do("list_agents")["agents"][0]["id"]
    if tuple(do("get_agent", id=agent_id)["agent"]["capabilities"]) != capabilities.DEFAULT:
        return
    forms = do("list_forms", size=100)["forms"]
    title = ORDER_FORM["title"]
    form = next((each for each in forms if each["title"] == title), None)
    form = form or do("create_form", **ORDER_FORM)["form"]
    everything = list(capabilities.CAPABILITIES)
    do("update_agent", id=agent_id, capabilities=everything, orderFormId=form["id"])
