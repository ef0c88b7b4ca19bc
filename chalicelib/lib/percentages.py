"""Percentages of prices, exact to the kopeck."""

from fractions import Fraction
from math import floor


def changed_by(kopecks: int, percent: float) -> int:
    """Return a price changed by a percentage, rounded half up to a kopeck, never below 0.

    The percentage counts as it is written: 0.1 is a tenth, not its nearest binary fraction.
    """
    exact = kopecks * (100 + Fraction(str(percent))) / 100
    return max(0, floor(exact + Fraction(1, 2)))
