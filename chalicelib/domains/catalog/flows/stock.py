"""Changes of a product's stock by a number of pieces."""

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError
from chalicelib.domains.catalog.store import products
from chalicelib.domains.catalog.store.products import InsufficientStockError, ProductRow

MAX_STOCK = 10**9
EXACT_TRIES = 8
"""How often a change of the stock insists on the stock it read, to tell exactly what became of it.

After that it adds to whatever is there: many sellers of one product must not starve each other.
"""


def check_change(product: ProductRow, delta: int) -> None:
    """Refuse a change of the stock that the product, as it was read, does not allow."""
    if product.stock is None:
        raise ConflictError(
            "The stock of this product is not tracked. Set stock to a number first."
        )
    after = product.stock + delta
    if after < 0:
        msg = f"Only {product.stock} in stock; {-delta} cannot be taken."
        raise InsufficientStockError(msg, stock=product.stock)
    if after > MAX_STOCK:
        msg = f"{product.stock} in stock and {delta} more would pass the limit of {MAX_STOCK:,}."
        raise ConflictError(msg)


def stage_change(ctx: Context, product: ProductRow, delta: int) -> None:
    """Stage a change of the stock alone, and show what it makes of the stock that was read."""
    stock = int(product.stock or 0)
    tries: list[int] = ctx.unit.run_side_effect_once("tries", list)
    tries.append(stock)
    least = most = stock
    if len(tries) > EXACT_TRIES:
        least, most = max(0, -delta), min(MAX_STOCK, MAX_STOCK - delta)
        ctx.warn("Others change this stock right now; get the product for what it is in the end.")
    products.add_stock(ctx.unit, product, delta, least=least, most=most)
    product.stock, product.updated_at = stock + delta, clock.now()
