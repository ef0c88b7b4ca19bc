"""Change the prices of many services by one rule."""

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.domains.catalog.flows.price_batches import (
    PriceChanges,
    PriceResult,
    change_prices,
)
from chalicelib.domains.services.store.services import SERVICES


@operation(
    rest="POST /api/services/change-prices",
    scope=Scope.SERVICES_WRITE,
    title="Change prices of services",
    accepts_idempotency_key=True,
    example={"items": [{"id": "SERVICE_ID", "price": 0}], "amount": 350_000, "roundTo": 1000},
    role=Role.MANAGER,
)
def change_service_prices(ctx: Context, args: PriceChanges) -> PriceResult:
    """Change the prices of up to 100 services by a percentage or an amount, each separately.

    Call it with dryRun first, and send each price that it returns as ``before`` back with the
    item. A service whose price differs then fails with price_changed, so that a repeated call
    changes no price twice. Bookings keep their prices, and so do resourceOverrides. The exact
    result is rounded once, and is never below 0.
    """
    return change_prices(ctx, SERVICES, args)
