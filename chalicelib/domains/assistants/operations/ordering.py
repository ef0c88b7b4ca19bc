"""The tool that prepares an order, and the tool that searches the business's pages."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import ConflictError
from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.assistants.flows import prepared_orders, visits
from chalicelib.domains.assistants.flows.visits import FindVisit, PageRef, visitor_tool
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.knowledge.flows import search
from chalicelib.domains.leads.store.forms import FORMS

MAX_PASSAGES = 5


class ProductQuantity(Wire):
    """A product of an order."""

    product_id: Id = Field(description="Product id, from search_catalog.")
    quantity: int = Field(default=1, ge=1, le=1_000, description="Number of pieces.")


class OrderToPrepare(PageRef):
    """An order for the visitor to confirm."""

    items: list[ProductQuantity] = Field(
        min_length=1, max_length=prepared_orders.MAX_LINES, description="Products and quantities."
    )


class PreparedLine(Wire):
    """A line of an order."""

    product_id: Id = Field(description="Product id.")
    name: str = Field(description="Name of the product.")
    quantity: int = Field(description="Number of pieces.")
    price: int = Field(description="Price of a piece in minor units of the currency.")


class PreparedOrder(Wire):
    """An order that only the visitor can place."""

    url: str = Field(description="Form with the order filled in, for the visitor to open.")
    expires_at: Timestamp = Field(description="When the link ends.")
    lines: list[PreparedLine] = Field(description="Products with their present prices.")
    total: int = Field(description="Sum in minor units of the currency.")
    what_next: str = Field(description="What to tell the visitor.")


@visitor_tool("Prepare an order")
def prepare_order(ctx: Context, args: OrderToPrepare, find_visit: FindVisit) -> PreparedOrder:
    """Check products and stock, and return a link to the order form, where these are filled in.

    Nothing is ordered: only the visitor can confirm, on that page. Pass no names and no contacts.
    """
    row = find_visit().assistants
    form = row.order_form_id and FORMS.find(ctx.workspace_id, record_id=row.order_form_id)
    if not form:
        raise ConflictError(
            "This business takes no orders here. Tell the visitor how to reach it.", key="no_orders"
        )
    quantities: dict[str, int] = {}
    for line in args.items:
        quantities[line.product_id] = quantities.get(line.product_id, 0) + line.quantity
    lines = prepared_orders.read(ctx.workspace_id, quantities)
    url, ends_at = prepared_orders.link(row, form.id, lines)
    return PreparedOrder(
        url=url,
        expires_at=ends_at,
        lines=[PreparedLine(**line._asdict()) for line in lines],
        total=sum(line.price * line.quantity for line in lines),
        what_next=visits.NOTHING_DONE,
    )


class PagesQuery(PageRef):
    """A search in what the business has written."""

    query: str = Field(min_length=1, max_length=300, description="The question, in its own words.")


class FoundPassage(Wire):
    """A passage of a page or of other knowledge."""

    title: str = Field(description="Title of the page.")
    text: str = Field(description="The passage: the business's own words.")
    url: str | None = Field(description="URL of the page, or null.")


class FoundPassages(Wire):
    """Passages that fit a question."""

    passages: list[FoundPassage] = Field(description="Passages, the best first; or none.")


@visitor_tool("Search the pages")
def search_pages(ctx: Context, args: PagesQuery, find_visit: FindVisit) -> FoundPassages:
    """Search published pages and public knowledge of the business for passages on a question."""
    row = find_visit().assistants
    bot = (
        AGENTS.find(ctx.workspace_id, record_id=row.knowledge_bot_id)
        if row.knowledge_bot_id
        else None
    )
    # What a bot knows is public if every visitor may ask the bot.
    if bot is None or not bot.is_active or bot.is_private:
        return FoundPassages(passages=[])
    passages = search.find(ctx.workspace_id, bot_id=bot.id, question=args.query, limit=MAX_PASSAGES)
    return FoundPassages(
        passages=[
            FoundPassage(title=passage.title, text=passage.text, url=passage.url or None)
            for passage in passages
        ]
    )
