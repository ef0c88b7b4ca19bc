"""Parsing of trade item barcodes (GS1 General Specifications)."""

import re
from typing import Literal, NamedTuple

from chalicelib.core.text import clean_digits

Format = Literal["EAN8", "UPCA", "EAN13", "GTIN14"]

# Number of digits -> format.
FORMATS: dict[int, Format] = {8: "EAN8", 12: "UPCA", 13: "EAN13", 14: "GTIN14"}
_UPC_E_LENGTH = 8
_SHORT_UPC_E_LENGTHS = frozenset({6, 7})
_SHOWN = 40

_SEPARATORS = re.compile(r"[ -]+")
_NO_DIGIT = re.compile(r"[^0-9]")

# Restricted circulation numbers as 14 digits: an indicator, then the GS1 prefix 02, 04 or 20-29.
# The prefixes 02 and 04 are the number systems 2 and 4 of UPC-A. Five zeros mark an EAN-8, whose
# prefixes for the same use begin with 0 and 2 (GS1 General Specifications, GS1 and GS1-8 prefixes).
_IN_STORE = re.compile(r".(?:0[24]|2|00000[02])")


class BarcodeError(ValueError):
    """The input is not a barcode. The message names the expected form and the received value."""


class Barcode(NamedTuple):
    """A barcode with a valid check digit."""

    digits: str  # without separators; of a UPC-E code, the digits of its UPC-A form
    format: Format
    gtin14: str  # the same for every form of an article's number: padded with zeros on the left

    @property
    def in_store(self) -> bool:
        """Whether a shop assigned the number itself. Elsewhere it is another article's, or none."""
        # Shops do so for goods that they weigh, for example.
        return _IN_STORE.match(self.gtin14) is not None


def check_digit(payload: str) -> str:
    """Return the check digit for the other digits: modulo 10, weights 3, 1, 3 … from the right."""
    total = sum(int(digit) * (1 if i % 2 else 3) for i, digit in enumerate(reversed(payload)))
    return str(-total % 10)


def parse(text: str) -> Barcode:
    """Parse a barcode, ignoring spaces, hyphens and invisible characters, or raise BarcodeError."""
    digits = _SEPARATORS.sub("", clean_digits(text))
    if wrong_character := _NO_DIGIT.search(digits):
        wrong = f'"{wrong_character[0]}" is not a digit'
        msg = f"expected 8, 12, 13 or 14 digits, received {_excerpt(text)}; {wrong}"
        raise BarcodeError(msg)
    if len(digits) not in FORMATS:
        msg = f"expected 8, 12, 13 or 14 digits, received {_excerpt(text)} ({len(digits)} digits)"
        if len(digits) in _SHORT_UPC_E_LENGTHS:
            msg += "; send all 8 digits of the UPC-E code, or the 12 digits of its UPC-A form"
        raise BarcodeError(msg)
    expected = check_digit(digits[:-1])
    # UPC-E exists only for numbers that begin with 0 (GS1 General Specifications, 5.2.2.4).
    # Eight digits are an EAN-8 if its check digit is right. Otherwise they may be a UPC-E code,
    # whose check digit equals that of its UPC-A form.
    if digits[-1] != expected and len(digits) == _UPC_E_LENGTH and digits[0] == "0":
        upc_a = _expanded(digits)
        if upc_a[-1] == check_digit(upc_a[:-1]):
            digits, expected = upc_a, upc_a[-1]
    if digits[-1] != expected:
        msg = (
            f'expected the check digit {expected} at the end of "{digits}", received '
            f"{digits[-1]}; check the digits"
        )
        raise BarcodeError(msg)
    return Barcode(digits, FORMATS[len(digits)], gtin14(digits))


def _expanded(upc_e: str) -> str:
    # The last digit but one says where the four or five zeros are that a UPC-E code leaves out (GS1
    # General Specifications, 5.2.2.4.2).
    system, body, last, check = upc_e[0], upc_e[1:6], upc_e[6], upc_e[7]
    if last in "012":
        digits = f"{body[:2]}{last}0000{body[2:]}"
    elif last in "34":
        prefix_length = int(last)
        digits = f"{body[:prefix_length]}00000{body[prefix_length:]}"
    else:
        digits = f"{body}0000{last}"
    return f"{system}{digits}{check}"


def gtin14(digits: str) -> str:
    """Return the digits of a barcode, padded with zeros on the left to 14 digits."""
    return digits.zfill(max(FORMATS))


def _excerpt(text: str) -> str:
    return f'"{text if len(text) <= _SHOWN else text[:_SHOWN] + "…"}"'
