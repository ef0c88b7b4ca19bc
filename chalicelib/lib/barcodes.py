"""Barcodes of trade items: EAN-8, UPC-A, EAN-13 and GTIN-14 (GS1 General Specifications)."""

import re
from typing import Literal, NamedTuple

Format = Literal["EAN8", "UPCA", "EAN13", "GTIN14"]

FORMATS: dict[int, Format] = {8: "EAN8", 12: "UPCA", 13: "EAN13", 14: "GTIN14"}
"""Number of digits -> format."""
_UPC_E_LENGTHS = frozenset({6, 7})
_SHOWN = 40

_SEPARATORS = re.compile(r"[\s-]+")
_DIGITS = re.compile(r"[0-9]+")

_IN_STORE = re.compile(r".(?:0[24]|2|00000[02])")
"""Restricted circulation numbers as 14 digits: an indicator, then the GS1 prefix 02, 04 or 20-29.

The prefixes 02 and 04 are the number systems 2 and 4 of UPC-A. Five zeros mark an EAN-8, whose
prefixes for the same use begin with 0 and 2 (GS1 General Specifications, GS1 and GS1-8 prefixes).
"""


class BarcodeError(ValueError):
    """The text is not a barcode. The message names the expected form and the received value."""


class Barcode(NamedTuple):
    """A barcode with a valid check digit.

    ``digits`` holds the received digits without separators. ``gtin14`` is the same for every form
    of an article's number: 14 digits, padded with zeros on the left.
    """

    digits: str
    format: Format
    gtin14: str

    @property
    def in_store(self) -> bool:
        """Whether a shop assigned the number itself, for example to goods that it weighs.

        In another shop the number identifies another article, or none.
        """
        return _IN_STORE.match(self.gtin14) is not None


def check_digit(payload: str) -> str:
    """Return the check digit for the other digits: modulo 10, weights 3, 1, 3 … from the right."""
    total = sum(int(digit) * (1 if i % 2 else 3) for i, digit in enumerate(reversed(payload)))
    return str(-total % 10)


def parse(text: str) -> Barcode:
    """Parse a barcode. Spaces and hyphens are ignored.

    Raises:
        BarcodeError: other characters, not 8, 12, 13 or 14 digits, or a wrong check digit.
    """
    digits = _SEPARATORS.sub("", text)
    only_digits = _DIGITS.fullmatch(digits)
    if not only_digits or len(digits) not in FORMATS:
        msg = f"expected 8, 12, 13 or 14 digits, received {_shown(text)}"
        if only_digits and len(digits) in _UPC_E_LENGTHS:
            msg += "; a UPC-E code is not taken, send the 12 digits of its UPC-A form"
        raise BarcodeError(msg)
    expected = check_digit(digits[:-1])
    if digits[-1] != expected:
        msg = (
            f'expected the check digit {expected} at the end of "{digits}", received {digits[-1]};'
            " one of the digits is mistyped"
        )
        raise BarcodeError(msg)
    return Barcode(digits, FORMATS[len(digits)], gtin14(digits))


def gtin14(digits: str) -> str:
    """Return the digits of a barcode, padded with zeros on the left to 14 digits."""
    return digits.zfill(max(FORMATS))


def _shown(text: str) -> str:
    digits = sum(character.isdigit() for character in text)
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return f'"{shown}" ({digits} digits)'
