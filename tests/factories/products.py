"""Create and read products over the REST API."""

import io
from functools import cache
from typing import Any
from urllib.parse import urlencode

from PIL import Image

from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.engine.unit import UnitOfWork
from tests.conftest import Api, Owner
from tests.fakes.internet import Internet, Server, http_response

LIST, CREATE, UPDATE, DELETE, DUPLICATE, REORDER, BULK = (
    f"/api/products/{call}"
    for call in ("list", "create", "update", "delete", "duplicate", "reorder", "bulk")
)


IMAGE_SERVER = "https://images.example.com"
EAN = "4006381333931"


@cache
def png(number: int = 0) -> bytes:
    body = io.BytesIO()
    Image.new("RGB", (8 + number, 8), (number * 5 % 256, 80, 160)).save(body, "PNG")
    return body.getvalue()


def create(api: Api, name: str = "Loaf", price: int = 100, **fields: Any) -> Any:
    return api.post(CREATE, {"name": name, "price": price, **fields})["product"]


def update(api: Api, product: Any, **fields: Any) -> Any:
    return api.post(UPDATE, {"id": product["id"], **fields})["product"]


def read(api: Api, product: Any) -> Any:
    return api.get(f"/api/products/{product['id']}")["product"]


def list_products(api: Api, **query: Any) -> list[Any]:
    products: list[Any] = api.get(f"{LIST}?{urlencode({'size': 100, **query})}")["products"]
    return products


def names(api: Api, **query: Any) -> str:
    return " ".join(product["name"] for product in list_products(api, **query))


def create_category(api: Api, name: str = "Bread", **fields: Any) -> str:
    category_id: str = api.post("/api/categories/create", {"name": name, **fields})["category"][
        "id"
    ]
    return category_id


def refused_field(api: Api, path: str, body: Any) -> Any:
    """Send a value that must be refused for one field, and return that field's error."""
    answer = api.call_refused("POST", path, body)
    assert (answer.status, answer.data["code"]) == (400, "validation_error")
    return answer.data["errors"][0]


def refusal(api: Api, path: str, body: Any) -> tuple[int, str]:
    answer = api.call_refused("POST", path, body)
    return answer.status, answer.data["code"]


def image_files(api: Api) -> list[Any]:
    """Return the files in the folder of product images."""
    folders = {f["name"]: f["id"] for f in api.get("/api/file-folders")["folders"]}
    if "products" not in folders:
        return []
    files: list[Any] = api.get(f"/api/files/list?size=100&folderId={folders['products']}")["files"]
    return files


def create_many(owner: Owner, count: int, **fields: Any) -> list[str]:
    """Create products at 100 kopecks without using the API, and return their ids.

    A field may be a function of the product's number.
    """
    ids = []
    for start in range(0, count, 20):
        unit = UnitOfWork(owner.workspace.id, "test")
        for number in range(start, min(start + 20, count)):
            values = {"name": f"{number}", "price": 100, "status": "active", "sort_order": number}
            own_fields = {k: v(number) if callable(v) else v for k, v in fields.items()}
            product = PRODUCTS.new(owner.workspace.id, **values | own_fields)
            unit.create(product)
            ids.append(product.id)
        unit.commit()
    return ids


def serve_images(net: Internet) -> Server:
    """Serve ten images at ``IMAGE_SERVER``. Other paths there are not found."""
    server = net.serve(IMAGE_SERVER, http_response(b"no", "404 Not Found"))
    for number in range(10):
        server.pages[f"/{number}.png"] = http_response(png(number), content_type="image/png")
    return server
