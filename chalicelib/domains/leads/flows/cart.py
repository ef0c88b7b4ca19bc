"""Read the products of an order from a submission, with names and prices from the catalogue."""

from typing import Any, TypeGuard

from pydantic_core import from_json

from chalicelib.core.errors import FieldError
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.leads.rules.form_fields import CART
from chalicelib.domains.leads.rules.form_texts import form_text

MAX_LINES = 50
MAX_QUANTITY = 10_000


def read_cart(
    workspace_id: str, submitted: object, language: str
) -> tuple[list[dict[str, Any]], list[FieldError]]:
    """Return the lines of an order with current names and prices, and the errors.

    ``submitted`` is a list of objects with ``productId`` and ``quantity``, or such a list as JSON
    text. All products are read in one request.
    """

    def field_error(path: str, *, key: str) -> FieldError:
        message = form_text(language, f"cart_{key}", lines=MAX_LINES, quantity=MAX_QUANTITY)
        return FieldError(f"{CART}{path}", message, f"cart_{key}")

    if submitted in (None, "", []):
        return [], []
    lines = _parse_lines(submitted)
    if lines is None:
        return [], [field_error("", key="list")]
    if len(lines) > MAX_LINES:
        return [], [field_error("", key="many")]
    ids = [line.get("productId") for line in lines]
    product_rows = PRODUCTS.fetch(
        # A set, because an order may have a product on several lines.
        workspace_id,
        {product_id for product_id in ids if _is_id(product_id)},
    )
    products = {product.id: product for product in product_rows if product.status == "active"}
    items: list[dict[str, Any]] = []
    errors: list[FieldError] = []
    for number, line in enumerate(lines):
        product = products.get(str(line.get("productId")))
        quantity = _parse_quantity(line.get("quantity", 1))
        if product is None:
            errors.append(field_error(f".{number}.productId", key="product"))
        elif quantity is None:
            errors.append(field_error(f".{number}.quantity", key="quantity"))
        else:
            items.append(
                {
                    "productId": product.id,
                    "name": product.name,
                    "quantity": quantity,
                    "price": int(product.price),
                }
            )
    return items, errors


def _parse_lines(submitted: object) -> list[dict[str, Any]] | None:
    if isinstance(submitted, str):
        try:
            submitted = from_json(submitted)
        except ValueError:
            return None
    if not isinstance(submitted, list) or not all(isinstance(line, dict) for line in submitted):
        return None
    return submitted


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= 64  # noqa: PLR2004  schema.Id


def _parse_quantity(value: object) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= 6:  # noqa: PLR2004  digits
        value = int(value)
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_integer and 1 <= value <= MAX_QUANTITY else None  # type: ignore[operator,call-overload]  # it is an int
