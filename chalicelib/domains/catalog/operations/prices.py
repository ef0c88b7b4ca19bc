"""Change the prices of many products by one rule."""

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.domains.catalog.flows.price_batches import (
    PriceChanges,
    PriceResult,
    change_prices,
)
from chalicelib.domains.catalog.store.products import PRODUCTS


@operation(
    rest="POST /api/products/change-prices",
    scope=Scope.PRODUCTS_WRITE,
    title="Change prices of products",
    accepts_idempotency_key=True,
    example={"items": [{"id": "PRODUCT_ID", "price": 9900}], "percent": 10, "roundTo": 500},
    role=Role.MANAGER,
)
def change_product_prices(ctx: Context, args: PriceChanges) -> PriceResult:
    """Change the prices of up to 100 products by a percentage or an amount, each separately.

    Call it with dryRun first, and send each price that it returns as ``before`` back with the
    item. A product whose price differs then fails with price_changed, so that a repeated call
    changes no price twice. The exact result is rounded once, and is never below 0.
    """
    return change_prices(ctx, PRODUCTS, args)
