"""Change prices by a percentage or an amount, exactly, with one stated rounding."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Literal

Rounding = Literal["nearest", "up", "down"]


@dataclass(frozen=True, slots=True)
class PriceRule:
    """A change of prices: either a percentage or an amount, then one rounding.

    >>> PriceRule(percent=10, step=1000).apply(14_999)
    16000
    """

    percent: float | None = None
    amount: int | None = None
    step: int = 1  # The new price is a multiple.
    rounding: Rounding = "nearest"

    def apply(self, price: int) -> int:
        """Return the new price in minor units, never below 0. A half is rounded up."""
        if self.percent is None:
            exact = Fraction(price + (self.amount or 0))
        else:
            # The percentage is taken as its decimal text: 0.1 is exactly one tenth, not the
            # nearest float.
            exact = price * (100 + Fraction(str(self.percent))) / 100
        steps = max(Fraction(0), exact) / self.step
        match self.rounding:
            case "up":
                return ceil(steps) * self.step
            case "down":
                return floor(steps) * self.step
            case "nearest":
                return floor(steps + Fraction(1, 2)) * self.step


def change_by_percent(price: int, percent: float) -> int:
    """Return a price changed by a percentage, rounded half up to a minor unit, never below 0."""
    return PriceRule(percent=percent).apply(price)
