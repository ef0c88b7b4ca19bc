"""Faults of DynamoDB, and calls that must act once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from chalicelib.core import retry
from tests.conftest import Answer, Api


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "sleep", lambda _: None)


@dataclass
class Change:
    """A call that must act once, and the number of times it has acted."""

    api: Api
    path: str
    body: dict[str, Any]
    count_effects: Callable[[], int]

    def send(self, key: str | None = "order-1") -> Answer:
        headers = {"Idempotency-Key": key} if key else {}
        return self.api.call("POST", self.path, self.body, headers)


def count(api: Api, path: str, what: str) -> Callable[[], int]:
    return lambda: len(api.get(path)[what])


def create_site(api: Api) -> Change:
    sites = count(api, "/api/projects/list", "projects")
    return Change(api, "/api/projects/create", {"title": "Bakery"}, sites)


def create_product(api: Api) -> Change:
    body = {"name": "Loaf", "price": 100}
    products = count(api, "/api/products/list", "products")
    return Change(api, "/api/products/create", body, products)


def import_page(api: Api) -> Change:
    site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
    body = {"projectId": site, "html": "<title>T</title><p>Hi</p>"}
    pages = count(api, f"/api/pages/list?projectId={site}", "pages")
    return Change(api, "/api/pages/import-html", body, pages)


def upload_file(api: Api) -> Change:
    body = {"name": "a.txt", "content": "aGVsbG8="}
    return Change(api, "/api/files/upload", body, count(api, "/api/files/list", "files"))


def loaf(api: Api) -> tuple[str, Callable[[], Any]]:
    body = {"name": "Loaf", "price": 100, "stock": 100}
    product = api.post("/api/products/create", body)["product"]["id"]
    return product, lambda: api.get(f"/api/products/{product}")["product"]


def raise_prices(api: Api) -> Change:
    product, now = loaf(api)
    body = {"ids": [product], "action": "changePricePercent", "value": 10}
    raised = {100: 0, 110: 1, 121: 2, 133: 3}
    return Change(api, "/api/products/bulk", body, lambda: raised[now()["price"]])
