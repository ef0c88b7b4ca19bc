"""The nouns whose records a table can bring."""

from typing import Literal

Noun = Literal["products", "services", "clients"]
PRODUCTS: Noun = "products"
SERVICES: Noun = "services"
CLIENTS: Noun = "clients"
