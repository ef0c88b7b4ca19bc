"""Open Food Facts and its sister databases, with the responses of their API v2."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.gateways import barcodes
from tests.fakes import JsonServer, ReceivedRequest

NUTELLA = "3017624010701"


class OpenFacts(JsonServer):
    """One of the databases.

    ``products`` are keyed by the stored code, with or without leading zeros.
    """

    def __init__(self) -> None:
        super().__init__()
        self.products: dict[str, dict[str, Any]] = {}

    @property
    def codes(self) -> list[str]:
        """The codes in the received requests."""
        prefix, suffix = "/api/v2/product/", ".json"
        return [request.path.removeprefix(prefix).removesuffix(suffix) for request in self.requests]

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:
        code = self.codes[-1]
        product = self.products.get(code)
        if product is None:
            return 404, {"code": code, "status": 0, "status_verbose": "product not found"}
        fields = request.query["fields"].split(",")
        shown_fields = {name: product[name] for name in fields if name in product}
        return 200, {
            "code": code,
            "product": shown_fields,
            "status": 1,
            "status_verbose": "product found",
        }


def nutella() -> dict[str, Any]:
    """Return a product as the database stores it, in several languages."""
    return {
        "code": NUTELLA,
        "lang": "fr",
        "product_name": "Nutella pâte à tartiner",
        "product_name_en": "Nutella spread",
        "product_name_ru": "Нутелла",
        "generic_name": "Pâte à tartiner aux noisettes",
        "generic_name_ru": "Ореховая паста с какао",
        "generic_name_en": "Hazelnut spread",
        "brands": "Ferrero,Nutella",
        "categories": "Petit-déjeuners,Produits à tartiner,fr:Pâtes à tartiner",
        "categories_tags": ["en:breakfasts", "en:spreads", "en:hazelnut-spreads"],
        "categories_tags_en": ["Breakfasts", "Spreads", "Hazelnut spreads"],
        "categories_tags_ru": ["Завтраки", "Спреды", "en:Hazelnut spreads"],
        "image_front_url": "https://images.openfoodfacts.org/images/products/front_ru.400.jpg",
        "nutriments": {"energy-kcal_100g": 539},
    }


@pytest.fixture
def open_facts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[OpenFacts]]:
    """Fake Open Food, Beauty and Products Facts, in the order in which the service queries them."""
    names = ("openfoodfacts", "openbeautyfacts", "openproductsfacts")
    with OpenFacts() as food, OpenFacts() as beauty, OpenFacts() as products:
        servers = [food, beauty, products]
        places = zip(names, servers, strict=True)
        configured = replace(
            barcodes.settings(),
            barcode_sources=" ".join(f"{name}={server.url}" for name, server in places),
        )
        monkeypatch.setattr(barcodes, "settings", lambda: configured)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield servers
