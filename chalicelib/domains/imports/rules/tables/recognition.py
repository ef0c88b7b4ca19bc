"""Recognize whose table it is by its header, and what its columns mean."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chalicelib.domains.imports.rules.tables.headers import normalised
from chalicelib.domains.imports.rules.tables.shops import OTHER, SHOPS, Role, Shop

_CERTAIN = 1000  # More than the columns of any table, so that a shop's header wins over other rows.


@dataclass(frozen=True, slots=True, eq=False)
class Dialects:
    """The programs whose tables of a noun are recognized, and ``other`` for tables of people."""

    shops: Sequence[Shop]
    other: Shop

    def shop_of(self, names: Sequence[str]) -> Shop:
        """Return the program whose table has these headers, or ``other``."""
        bare = {normalised(name) for name in names}
        bare |= {_numbered(name) for name in bare}
        found = (shop for shop in self.shops if any(mark <= bare for mark in shop.marks))
        return next(found, self.other)

    def recognized(self, names: Sequence[str]) -> int:
        """Return how certainly a row is the header of a table: the number of its known columns."""
        shop = self.shop_of(names)
        known = sum(role_of(shop, name) is not None for name in names)
        return known if shop is self.other else known + _CERTAIN


PRODUCTS = Dialects(SHOPS, OTHER)


def role_of(shop: Shop, name: str) -> Role | None:
    """Return the role of a header, or None if it has no meaning here."""
    bare = normalised(name)
    for header in (bare, _numbered(bare)):
        if header in shop.columns:
            return shop.columns[header]
    prefixes = [header[:-1] for header in shop.columns if header.endswith("*")]
    prefix = next((each for each in prefixes if bare.startswith(each) and bare != each), None)
    return None if prefix is None else shop.columns[f"{prefix}*"]


def roles_of(shop: Shop, names: Sequence[str]) -> dict[Role, list[int]]:
    """Return the indexes of the columns of each role."""
    columns: dict[Role, list[int]] = {}
    for index, name in enumerate(names):
        if (role := role_of(shop, name)) is not None:
            columns.setdefault(role, []).append(index)
    return columns


def _numbered(header: str) -> str:
    return re.sub(r"\d+", "#", header)
