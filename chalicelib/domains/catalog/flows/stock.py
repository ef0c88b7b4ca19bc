"""Changes of a product's stock by a number of pieces."""

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ConflictError
from chalicelib.domains.catalog.store import products
from chalicelib.domains.catalog.store.products import InsufficientStockError, ProductRow
from chalicelib.engine.events.outbox import Event

MAX_STOCK = 10**9
# Maximum number of attempts that require the stock to be as it was read. These attempts return the
# exact stock. Later attempts add to the current stock instead, because concurrent sales of one
# product could otherwise block each other.
MAX_EXACT_ATTEMPTS = 8


def check_change(product: ProductRow, delta: int) -> None:
    """Raise an error if the stock, as it was read, does not allow this change."""
    if product.stock is None:
        raise ConflictError(
            "The stock of this product is not tracked. Set stock to a number first.",
            key="stock_not_tracked",
        )
    new_stock = product.stock + delta
    if new_stock < 0:
        msg = (
            f"stockDelta: expected at least -{product.stock}, because {product.stock} are in "
            f"stock, received -{-delta}."
        )
        raise InsufficientStockError(msg, stock=product.stock)
    if new_stock > MAX_STOCK:
        msg = f"{product.stock} in stock and {delta} more would exceed the limit of {MAX_STOCK:,}."
        raise ConflictError(msg, key="stock_too_large")


def stage_change(ctx: Context, product: ProductRow, delta: int) -> None:
    """Stage a change of the stock and of nothing else. The product then shows the new stock."""
    stock = int(product.stock or 0)
    attempts: list[int] = ctx.unit.run_side_effect_once("tries", list)
    attempts.append(stock)
    min_stock = max_stock = stock
    if len(attempts) > MAX_EXACT_ATTEMPTS:
        min_stock, max_stock = max(0, -delta), min(MAX_STOCK, MAX_STOCK - delta)
        ctx.warn(
            "Other calls changed this stock at the same time. Get the product to read its "
            "current stock.",
            code=WarningCode.STOCK_CHANGED,
            id=product.id,
        )
    bounds = _bounds_of_event(stock, delta=delta)
    products.add_stock(
        ctx.unit,
        product,
        delta,
        min_stock=max(min_stock, bounds.start),
        max_stock=min(max_stock, bounds.stop - 1),
    )
    if products.runs_low(stock, stock_after=stock + delta):
        ctx.unit.outbox.emit(Event(products.LOW_STOCK_EVENT, product.id))
    product.stock, product.updated_at = stock + delta, clock.now()


def _bounds_of_event(stock: int, *, delta: int) -> range:
    # The stocks for which the change makes the stock low, or does not, as for this one.
    low = products.LOW_STOCK + 1
    high = max(low, low - delta)  # From here on, the stock remains above the mark.
    if stock < low:
        return range(low)
    return range(low, high) if stock < high else range(high, MAX_STOCK + 1)
