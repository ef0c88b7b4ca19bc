"""The codes of VAT rates and tax systems on receipts, as YooKassa numbers them.

https://yookassa.ru/developers/payment-acceptance/receipts/54fz/other-services/parameters-values,
read on 2026-11-28. Since 2026-01-01 the general rate is 22 percent, with codes 11 and 12. The codes
4 and 6 stay for refunds of earlier payments.
"""

from types import MappingProxyType
from typing import Final, Literal, NamedTuple

Kind = Literal["none", "full", "calculated", "former"]


class VatRate(NamedTuple):
    """A VAT rate.

    A prepayment has a ``calculated`` rate, and the closing receipt a ``full`` one.
    """

    rate: str
    kind: Kind  # ``none`` suits both receipts, and ``former`` rates have ended


VAT_RATES: Final = MappingProxyType(
    {
        "1": VatRate("none", "none"),
        "2": VatRate("0%", "none"),
        "3": VatRate("10%", "full"),
        "4": VatRate("20%", "former"),
        "5": VatRate("10/110", "calculated"),
        "6": VatRate("20/120", "former"),
        "7": VatRate("5%", "full"),
        "8": VatRate("7%", "full"),
        "9": VatRate("5/105", "calculated"),
        "10": VatRate("7/107", "calculated"),
        "11": VatRate("22%", "full"),
        "12": VatRate("22/122", "calculated"),
    }
)
TAX_SYSTEMS: Final = ("1", "2", "3", "4", "5", "6")  # Their names are in the console's catalogue.
# Smallest payment in kopecks, by provider, if known. Stripe's depends on exchange rates.
MIN_AMOUNTS: Final = MappingProxyType({"yookassa": 100})


def prepayment_codes() -> list[str]:
    """Return the codes that a receipt of a prepayment may have."""
    return [code for code, rate in VAT_RATES.items() if rate.kind in {"none", "calculated"}]


def closing_codes() -> list[str]:
    """Return the codes that a closing receipt may have."""
    return [code for code, rate in VAT_RATES.items() if rate.kind in {"none", "full"}]
