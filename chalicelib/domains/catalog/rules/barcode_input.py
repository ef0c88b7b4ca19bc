"""Read barcodes from requests."""

from chalicelib.core.errors import ValidationError
from chalicelib.lib import barcodes
from chalicelib.lib.barcodes import Barcode


class InvalidBarcodeError(ValidationError):
    """The text is not a barcode: wrong characters, length or check digit."""

    code = "invalid_barcode"


def read_barcode(text: str) -> Barcode:
    """Parse a barcode from the field ``barcode``, or raise InvalidBarcodeError."""
    try:
        return barcodes.parse(text)
    except barcodes.BarcodeError as error:
        raise InvalidBarcodeError.of("barcode", message=str(error), key="barcode") from None
