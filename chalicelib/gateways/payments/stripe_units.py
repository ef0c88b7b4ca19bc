"""The units in which Stripe counts amounts (https://docs.stripe.com/currencies, read 2026-11-29).

They are those of ISO 4217 with exceptions:

- MGA has no decimals at Stripe.
- ISK and UGX have none, but are written as if they had two, which must be 00.
- BHD, JOD, KWD, OMR and TND have three, of which the last must be 0.
- HUF and TWD are charged with two decimals. Only payouts, which this service does not make, are of
  whole units.
"""

from chalicelib.lib import currencies

# UGX is not among them, although the page lists it: its special case says what applies.
_NO_DECIMALS = frozenset(
    {
        *("BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV"),
        *("XAF", "XOF", "XPF"),
    }
)
_ENDS_WITH_ZERO = frozenset({"BHD", "JOD", "KWD", "OMR", "TND"})
# Currencies with three decimals that Stripe does not take, and whose units there are not known.
NOT_TAKEN = frozenset({"IQD", "LYD"})


def step(currency: str) -> int:
    """Return the minor units of which each payment in a currency must be a multiple.

    >>> step("GBP"), step("KWD"), step("MGA"), step("UGX")
    (1, 10, 100, 1)
    """
    if currency in _ENDS_WITH_ZERO:
        return 10
    return int(max(1, 10 ** (currencies.DIGITS[currency] - _digits(currency))))


def to_stripe(amount: int, currency: str) -> int | None:
    """Return an amount in Stripe's units, or None if Stripe cannot take it.

    >>> to_stripe(500, "JPY"), to_stripe(500, "UGX"), to_stripe(1505, "KWD")
    (500, 50000, None)
    """
    if currency in NOT_TAKEN or amount % step(currency):
        return None
    their_step: int = 10 ** _digits(currency)
    return amount * their_step // currencies.step(currency)


def from_stripe(amount: int, currency: str) -> int | None:
    """Return an amount of Stripe in minor units, or None for a part of one.

    >>> from_stripe(50000, "UGX"), from_stripe(50050, "UGX")
    (500, None)
    """
    if currency not in currencies.DIGITS or currency in NOT_TAKEN:
        return None
    their_step: int = 10 ** _digits(currency)
    units, rest = divmod(amount * currencies.step(currency), their_step)
    return None if rest else units


def _digits(currency: str) -> int:
    if currency in _NO_DECIMALS:
        return 0
    return 3 if currency in _ENDS_WITH_ZERO else 2
