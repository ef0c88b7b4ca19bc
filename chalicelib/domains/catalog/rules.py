"""Parse barcodes, and change prices by a percentage."""

from fractions import Fraction
from math import floor

from chalicelib.core.errors import ValidationError
from chalicelib.lib import barcodes
from chalicelib.lib.barcodes import Barcode


class InvalidBarcodeError(ValidationError):
    """The text is not a barcode: wrong characters, length or check digit."""

    code = "invalid_barcode"


def read_barcode(text: str) -> Barcode:
    """Parse a barcode from the field ``barcode``.

    Raises:
        InvalidBarcodeError: the string is not a barcode.
    """
    try:
        return barcodes.parse(text)
    except barcodes.BarcodeError as error:
        raise InvalidBarcodeError.of("barcode", str(error)) from None


def change_by_percent(kopecks: int, percent: float) -> int:
    """Return a price changed by a percentage, rounded half up to a kopeck, never below 0.

    The percentage is taken as its decimal text: 0.1 is exactly one tenth, not the nearest float.
    """
    exact = kopecks * (100 + Fraction(str(percent))) / 100
    return max(0, floor(exact + Fraction(1, 2)))
