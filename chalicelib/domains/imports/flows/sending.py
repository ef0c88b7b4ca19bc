"""Send the rows of a table to the operations that create and update records.

The operator's command, the job of an import and its preview do the same here. They differ in how
they call operations, and whether the calls change anything.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from chalicelib.application.batches import OK
from chalicelib.application.upserts import CREATED, UNCHANGED, UPDATED
from chalicelib.core.errors import AppError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.wire import parsing
from chalicelib.core.wire.batch_items import InvalidItem
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.domains.imports.flows.category_names import Call, Categories
from chalicelib.domains.imports.rules.nouns import CLIENTS, SERVICES, Noun
from chalicelib.domains.imports.rules.reasons import Reason, of_operation, of_warning
from chalicelib.domains.imports.rules.tables import spreadsheet_cells
from chalicelib.domains.imports.rules.tables.rows import Row
from chalicelib.domains.imports.rules.tables.table_errors import CellError

REFUSED = "refused"
OUTCOMES = (CREATED, UPDATED, UNCHANGED, REFUSED)


class Outcome(NamedTuple):
    """What happens to a row: one of ``OUTCOMES``, with the reason of a refusal."""

    row: Row
    code: str
    reason: Reason | None = None
    warnings: Sequence[Reason] = ()


class Sender(Protocol):
    """Creates and updates the records of rows."""

    def send(self, rows: Sequence[Row]) -> list[Outcome]:
        """Send at most 100 rows, and return their outcomes in the order of the rows."""


class _Prepared(NamedTuple):
    operation: str
    item: dict[str, Any]


class _Sender(ABC):
    def __init__(self, call: Call, *, dry_run: bool) -> None:
        self._call, self._dry_run = call, dry_run
        self.calls = 0

    def send(self, rows: Sequence[Row]) -> list[Outcome]:
        prepared: dict[str, list[tuple[Row, dict[str, Any]]]] = {}
        outcomes: dict[int, Outcome] = {}
        prepare = self._preparing(rows)
        for row in rows:
            try:
                if row.fault:
                    raise CellError(row.fault)  # noqa: TRY301  as a fault that is found here
                operation, item = prepare(row)
            except (AppError, CellError) as error:
                outcomes[row.number] = _refusal(row, error)
            else:
                prepared.setdefault(operation, []).append((row, item))
        for operation, pairs in prepared.items():
            items = [item for _, item in pairs]
            answer = self._call(operation, {"items": items, "dryRun": self._dry_run})
            self.calls += 1
            for (row, _), result in zip(pairs, answer["results"], strict=True):
                outcomes[row.number] = _outcome(row, result)
        return [outcomes[row.number] for row in rows]

    @abstractmethod
    def _preparing(self, rows: Sequence[Row]) -> Callable[[Row], _Prepared]:
        """Return what makes a call of a row, after one read for all rows."""


def _outcome(row: Row, result: Mapping[str, Any]) -> Outcome:
    warnings = (*row.notes, *map(of_warning, result["warningDetails"]))
    if result["status"] != OK:
        code = result["key"] or result["code"]
        reason = of_operation(code, result["message"], row.item)
        return Outcome(row, REFUSED, reason, warnings)
    return Outcome(row, result["code"], warnings=warnings)


def _refusal(row: Row, error: AppError | CellError) -> Outcome:
    if isinstance(error, AppError):
        keys = [each.key for each in error.errors if each.key]
        reason = of_operation(next(iter(keys), error.code), error.message, row.item)
    else:
        reason = error.reason
    return Outcome(row, REFUSED, reason, row.notes)


def _check(operation: str, item: Mapping[str, Any]) -> None:
    # A category is created only for an item that is valid.
    args: Any = parsing.parse(REGISTRY[operation].input, {"items": [item]})
    if isinstance(args.items[0], InvalidItem):
        raise args.items[0].error


class ProductSender(_Sender):
    """Products, by their ids, externalIds or SKUs."""

    def __init__(
        self, call: Call, workspace_id: str, categories: Categories, *, dry_run: bool
    ) -> None:
        super().__init__(call, dry_run=dry_run)
        self._workspace_id, self.categories = workspace_id, categories

    def _preparing(self, rows: Sequence[Row]) -> Callable[[Row], _Prepared]:
        ids = [row.item["id"] for row in rows if "id" in row.item]
        products = {product.id: product for product in PRODUCTS.fetch(self._workspace_id, ids)}
        return lambda row: self._prepare(row, products)

    def _prepare(self, row: Row, products: Mapping[str, ProductRow]) -> _Prepared:
        # The id of a row names a product of the workspace. Without such a product, as in another
        # workspace, the SKU names the product, and the id is for a product without an SKU.
        item = dict(row.item)
        if product := products.get(item.get("id", "")):
            texts = {name: getattr(product, name) for name in ("sku", "barcode", "description")}
            texts["externalId"] = product.external_id
            item = spreadsheet_cells.restore(item, texts)
        elif "sku" in item:
            item.pop("id", None)
        operation = "upsert_products_by_id" if "id" in item else "upsert_products"
        category, exported_id = item.pop("category", None), item.pop("categoryId", None)
        _check(operation, item)
        if exported_id is not None:
            category_id = self.categories.find_exported(exported_id, path=category or "")
        elif category is not None:
            category_id = self.categories.find(category)
        else:
            category_id = None
        return _Prepared(operation, item | ({"categoryId": category_id} if category_id else {}))


class ServiceSender(_Sender):
    """Services, by their externalIds or names."""

    OPERATION = "upsert_services_by_name"

    def __init__(self, call: Call, categories: Categories, *, dry_run: bool) -> None:
        super().__init__(call, dry_run=dry_run)
        self.categories = categories

    def _preparing(self, _: Sequence[Row]) -> Callable[[Row], _Prepared]:
        return self._prepare

    def _prepare(self, row: Row) -> _Prepared:
        item = dict(row.item)
        category = item.pop("category", None)
        _check(self.OPERATION, item)
        category_id = self.categories.find(category) if category else None
        more = {"categoryId": category_id} if category_id else {}
        return _Prepared(self.OPERATION, item | more)


class ClientSender(_Sender):
    """Clients, by their externalIds, e-mail addresses or phones."""

    def _preparing(self, _: Sequence[Row]) -> Callable[[Row], _Prepared]:
        return lambda row: _Prepared("upsert_clients_by_contact", dict(row.item))


def sender_of(noun: Noun, call: Call, workspace_id: str, *, dry_run: bool) -> Sender:
    """Return what sends the rows of a noun, and creates the categories that they name."""
    if noun == CLIENTS:
        return ClientSender(call, dry_run=dry_run)
    kind = "service" if noun == SERVICES else "product"
    categories = Categories(call, kind, creates=True, dry_run=dry_run)
    if noun == SERVICES:
        return ServiceSender(call, categories, dry_run=dry_run)
    return ProductSender(call, workspace_id, categories, dry_run=dry_run)
