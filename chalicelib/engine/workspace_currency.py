"""The currency of a workspace, which stays once the workspace has a price.

The row of the workspace has both facts, so that a change of the currency and a first price exclude
each other: both write this row, and the second to commit reads it again.
"""

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.expressions.update import Action

from chalicelib.core.wire.money import RUBLES, MoneyUnit
from chalicelib.engine.tables import IdentityRow
from chalicelib.lib import currencies
from chalicelib.lib.currencies import RUB

if TYPE_CHECKING:
    from chalicelib.engine.unit import UnitOfWork

SORT_KEY = "workspace"
MAX_KNOWN = 10_000  # workspaces


class CurrencyRow(IdentityRow):
    """The part of a workspace's row with its currency."""

    version = NumberAttribute()
    currency = UnicodeAttribute(null=True)  # None, of older workspaces: RUB
    has_prices = BooleanAttribute(null=True)  # The currency does not change any more.
    # The provider that takes the payments accepts no other currency than rubles.
    takes_rubles_only = BooleanAttribute(null=True)


class Known(NamedTuple):
    """The currency of a workspace, and whether it stays."""

    currency: str
    is_fixed: bool


# Currencies that stay, by workspace. Others are read each time, so that no payment is opened in a
# currency that another process has changed.
_fixed: OrderedDict[str, Known] = OrderedDict()
_lock = Lock()


def currency_of(workspace_id: str) -> str:
    """Return the currency (ISO 4217) of a workspace's prices and payments."""
    return (_find_fixed(workspace_id) or _read(workspace_id)).currency


def _find_fixed(workspace_id: str) -> Known | None:
    with _lock:
        return _fixed.get(workspace_id)


def money_unit_of(workspace_id: str) -> MoneyUnit:
    """Return what amounts of money in requests to a workspace are counted in."""
    currency = currency_of(workspace_id)
    if currency == RUB:
        return RUBLES
    digits = currencies.DIGITS[currency]
    return MoneyUnit(currencies.minor_units(currency), currency, currency, digits)


def stage_price(unit: "UnitOfWork") -> None:
    """Stage that the workspace has a price, so that its currency stays.

    A unit of work calls it for each new price of a record (``Listing.price``). After the first one
    it costs nothing.
    """
    if _find_fixed(unit.workspace_id) is None:
        unit.stage_once("first price", _stage_first_price)


def _stage_first_price(unit: "UnitOfWork") -> None:
    known = _read(unit.workspace_id)
    if not known.is_fixed:
        _stage_change(unit, known.currency, CurrencyRow.has_prices.set(True))


def stage_provider(unit: "UnitOfWork", currency: str, *, takes_rubles_only: bool) -> None:
    """Stage which provider takes the payments of a workspace that has the currency."""
    _stage_change(unit, currency, CurrencyRow.takes_rubles_only.set(takes_rubles_only))


def _stage_change(unit: "UnitOfWork", currency: str, action: Action) -> None:
    # The currency must still be the one that this attempt has read. A writer that has read the row,
    # and saves all its fields, must conflict with this change.
    same = CurrencyRow.currency == currency
    if currency == RUB:
        same |= CurrencyRow.currency.does_not_exist()
    row = CurrencyRow(f"WORKSPACE#{unit.workspace_id}", SORT_KEY)
    unit.update(row, [action, CurrencyRow.version.add(1)], CurrencyRow.pk.exists() & same)


def _read(workspace_id: str) -> Known:
    row = CurrencyRow.find(f"WORKSPACE#{workspace_id}", SORT_KEY)
    # The platform is no workspace, and has rubles for good.
    if row is None:
        return Known(RUB, is_fixed=True)
    return learn(workspace_id, row.currency, has_prices=row.has_prices)


def learn(workspace_id: str, currency: str | None, *, has_prices: bool | None) -> Known:
    """Remember the currency of a workspace if it stays, as its row has just been read."""
    known = Known(currency or RUB, bool(has_prices))
    if known.is_fixed:
        with _lock:
            _fixed[workspace_id] = known
            _fixed.move_to_end(workspace_id)
            while len(_fixed) > MAX_KNOWN:
                _fixed.popitem(last=False)
    return known


def forget() -> None:
    """Forget what is known, as a new process does."""
    with _lock:
        _fixed.clear()
