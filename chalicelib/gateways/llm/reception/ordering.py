"""How the embedded model proposes an order of products."""

import json

from chalicelib.core.text import fold
from chalicelib.gateways.llm import facts
from chalicelib.gateways.llm.messages import ToolCall
from chalicelib.gateways.llm.reception import matching, wording
from chalicelib.gateways.llm.reception.dialog import Dialog
from chalicelib.gateways.llm.reception.matching import Items

PROPOSE = "propose_order"
MAX_PRODUCT = 200
"""Characters of a product's name that the tool accepts."""

_MORE = ("also", "add", "plus", "too", "еще", "также", "добав", "плюс")
"""Beginnings of words of a message that adds products to the order before it."""


def answer(dialog: Dialog) -> ToolCall | str | None:
    """Return the next step of an order, or None if there are no products."""
    if result := dialog.result(PROPOSE):
        if result.is_error:
            return wording.error_sentence(dialog.language, result.content)
        return f"{json.loads(result.content)['title']}. {dialog.sentence('check_order')}"
    if not dialog.can_call(PROPOSE) or not dialog.products:
        return None
    wanted = _items(dialog)
    if wanted.unclear:
        return dialog.sentence("which_of", names=", ".join(wanted.unclear[: facts.MAX_OFFERS]))
    if not wanted.items or not all(each.is_possible for each in wanted.items):
        return dialog.sentence("too_many" if wanted.items else "which_product")
    items = [
        {"product": each.product[:MAX_PRODUCT], "quantity": each.quantity} for each in wanted.items
    ]
    return dialog.call(PROPOSE, items=items, **dialog.person._asdict())


def _items(dialog: Dialog) -> Items:
    """Return the products of the newest message with products, and of those that it adds to.

    A number of pieces in the message after one product belongs to that product.
    """
    found: dict[str, int] = {}
    pieces = None
    for each in reversed(dialog.current):
        read = matching.items(each.text, dialog.products)
        if read.unclear:
            return read if not found else _as_items(found)
        if not read.items:
            pieces = pieces or matching.quantity(each.text)
            continue
        named = {item.product: item.quantity for item in read.items}
        if pieces and len(named) == 1:
            named = dict.fromkeys(named, pieces)
        found, pieces = named | found, None
        if not any(word.startswith(_MORE) for word in fold(each.text).split()):
            break
    return _as_items(found)


def _as_items(found: dict[str, int]) -> Items:
    return Items([matching.Item(*each) for each in found.items()][: matching.MAX_ITEMS])
