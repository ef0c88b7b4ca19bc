"""Pages of products. Orders of products are leads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chalicelib.core.errors import AppError
from chalicelib.domains.catalog.store.products import InsufficientStockError, SkuTakenError
from chalicelib.transports.console.categories import category_names
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.deletion import deletion
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import (
    Field,
    Images,
    Price,
    Record,
    Typed,
    number,
    status_switch,
)
from chalicelib.transports.console.image_warnings import image_warnings
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.console.many import Column, Many
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web.control_limits import ControlLimits, control_limits

PAGE_SIZE = 20
FILTERS = {"q": "q", "status": "status", "category": "categoryId"}
SEPARATOR = " / "  # Stands between the names of a category and of its parent.
Product = dict[str, Any]


class NewCategory(str):
    """The name of a category that does not exist yet."""

    __slots__ = ()


def _names(request: ConsoleRequest) -> dict[str, str]:
    return category_names(request, "product")


@dataclass(frozen=True)
class CategoryField(Field):
    """A category by its name. A name that no category has is a ``NewCategory``."""

    def read_form(self, request: ConsoleRequest) -> Typed:
        name = " ".join(request.form_value(self.name).split())
        names = _names(request) if name else {}
        ids = [key for key, known in names.items() if known.casefold() == name.casefold()]
        category = next(iter(ids), NewCategory(name)) if name else None
        return {self.name: name, f"{self.name}Found": category}

    def fill_controls(self, request: ConsoleRequest, record: Record, /) -> Typed:
        category_id = self.stored_value(record)
        name = _names(request).get(category_id, "") if category_id else ""
        return {self.name: name, f"{self.name}Found": category_id}

    def value(self, form_values: Typed) -> str | None:
        category: str | None = form_values[f"{self.name}Found"]
        return category

    def limits(self, _: str) -> ControlLimits:
        return control_limits("create_category", "name").optional


def _create_category(request: ConsoleRequest, arguments: dict[str, Any]) -> dict[str, Any]:
    name = arguments.get("categoryId")
    if not isinstance(name, NewCategory):
        return arguments
    ids = {path: category_id for category_id, path in _names(request).items()}
    parent, _, last = name.rpartition(SEPARATOR)
    inside = {"name": last, "parentId": ids[parent]} if parent in ids else {"name": str(name)}
    response = request.call_once("create_category", kind="product", **inside)
    return {**arguments, "categoryId": response["category"]["id"]}


def _problems(request: ConsoleRequest, error: AppError) -> Problem | None:
    if error.code == SkuTakenError.code:
        return Problem(request.translate("wrong_fields"), {"sku": request.translate("sku_taken")})
    if error.code == InsufficientStockError.code:
        text = request.translate("wrong_stock")
        return Problem(request.translate("wrong_fields"), {"stock": text})
    return None


_PRICE = Price("price", "price", required="expected an amount")
_STOCK = number("stock", label="stock")
_NAME = Field("name", "product_name", empty="")
MANY = Many(
    "product",
    "products",
    "change_product_prices",
    Form(_NAME, _PRICE, _STOCK, changes="update_product", problems=_problems),
    (
        Column("name", "product_name"),
        Column("price", "price", "decimal"),
        Column("stock", "stock", "numeric"),
    ),
    _names,
)
many, save_many = MANY.index, MANY.submit
# The form in each row of the list.
QUICK = Form(_PRICE, _STOCK, changes="update_product", problems=_problems)
FORM = Form(
    _NAME,
    _PRICE,
    CategoryField("categoryId", "category", names=_names),
    _STOCK,
    Field("description"),
    Images("images"),
    status_switch("product_active", new="active"),
    Field("sku", "sku", rare=True),
    Field("barcode", "barcode", rare=True),
    creates="create_product",
    changes="update_product",
    problems=_problems,
    prepare=_create_category,
)


def _list_path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/products"


def _path(request: ConsoleRequest, product: Record) -> str:
    return f"{_list_path(request)}/{product['id']}"


def _list_values(request: ConsoleRequest, response: dict[str, Any]) -> dict[str, Any]:
    products = [
        {**product, "typed": QUICK.page_values(request, product, STORED)["typed"]}
        for product in response["products"]
    ]
    return {
        "products": products,
        "categories": _names(request),
        "limits": QUICK.limits,
    }


def _find(request: ConsoleRequest) -> Product:
    product: Product = request.call("get_product", id=request.http.path["product"])["product"]
    return product


def _deleted(request: ConsoleRequest) -> dict[str, Any]:
    product = _find(request)
    return {"product": product, "path": _path(request, product)}


def _created(request: ConsoleRequest, answer: dict[str, Any]) -> HttpResponse:
    return _show_product(request, answer, "product_created")


def _saved(request: ConsoleRequest, product: Record, answer: dict[str, Any]) -> HttpResponse:
    return _show_product(request, {"product": product, **answer}, "product_saved")


def _show_product(request: ConsoleRequest, answer: dict[str, Any], notice: str) -> HttpResponse:
    product: Product = answer["product"]
    if lost := image_warnings(answer):
        return _form_page(request, product, State(notice=notice), lost)
    return redirect(f"{_path(request, product)}?done={notice}")


def _saved_in_list(request: ConsoleRequest, _: Record, __: dict[str, Any]) -> HttpResponse:
    return redirect(f"{_list_path(request)}{request.query_with(done='product_saved')}")


def _form_page(
    request: ConsoleRequest,
    product: Product | None,
    state: State = STORED,
    lost: Sequence[tuple[str, str]] = (),
) -> HttpResponse:
    return request.page(
        "product",
        product=product,
        path=_path(request, product) if product else None,
        categories=_names(request).values(),
        public_url=_find_public_url(request, product) if product else None,
        lost=lost,
        **FORM.page_values(request, product, state),
    )


def _find_public_url(request: ConsoleRequest, product: Product) -> str | None:
    if product["status"] != "active" or not request.current_membership.may("list_sites"):
        return None
    # The oldest site that shows products is the one to which the API and the tools link.
    oldest_first = request.call("list_sites", status="active", sortDir="asc", size=100)["projects"]
    urls = (site["productsUrl"] for site in oldest_first if site["productsUrl"])
    return next((f"{url}/{product['id']}" for url in urls), None)


def _refused_in_list(request: ConsoleRequest, product: Product, state: State) -> HttpResponse:
    form_values = FORM.page_values(request, product, STORED)["typed"]
    seen = {"seen": FORM.seen(product)}
    return _form_page(
        request,
        product,
        state._replace(form_values={**form_values, **(state.form_values or {}), **seen}),
    )


def save(request: ConsoleRequest) -> HttpResponse:
    """Save a product from its page, or its price and stock from a row of the list."""
    return (_save_row if request.form_value("row") else _save)(request)


new_product_page, create = FORM.creation(_form_page, _created)
show, _save = FORM.editing(_find, _form_page, _saved)
_, _save_row = QUICK.editing(_find, _refused_in_list, _saved_in_list)
confirm_delete, delete = deletion(
    "product_delete", _deleted, "delete_product", notice="product_deleted", id="product"
)
index = ListPage("products", "list_products", PAGE_SIZE, FILTERS, _list_values).index
