"""Change prices by a percentage."""

from fractions import Fraction
from math import floor


def change_by_percent(kopecks: int, percent: float) -> int:
    """Return a price changed by a percentage, rounded half up to a kopeck, never below 0."""
    # The percentage is taken as its decimal text: 0.1 is exactly one tenth, not the nearest float.
    exact = kopecks * (100 + Fraction(str(percent))) / 100
    return max(0, floor(exact + Fraction(1, 2)))
