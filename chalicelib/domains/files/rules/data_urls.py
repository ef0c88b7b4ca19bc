"""Images inside of a page: ``data:`` URLs (RFC 2397)."""

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

# Types that are re-encoded. Others, such as SVG, stay in the page.
_IMAGE = re.compile(r"\s*data:image/(?:avif|bmp|gif|jpe?g|png|webp)[;,]", re.IGNORECASE)
_START = 80  # characters of a URL that have the size of a PNG or GIF


def is_inline(url: str) -> bool:
    """Return whether a URL has an image in itself."""
    return _IMAGE.match(url) is not None


def decode(url: str) -> bytes | None:
    """Return the bytes of a ``data:`` URL, or None if it is damaged."""
    about, comma, data = url.partition(",")
    if not comma:
        return None
    body = unquote_to_bytes(data)
    if not about.rstrip().lower().endswith(";base64"):
        return body
    packed = b"".join(body.split()).rstrip(b"=")
    try:
        return base64.b64decode(packed + b"=" * (-len(packed) % 4), validate=True)
    except binascii.Error:
        return None


def is_one_pixel(url: str) -> bool:
    """Return whether an inline PNG or GIF has one pixel, which stands for an image to come."""
    about, _, data = url.partition(",")
    start = decode(f"{about},{data[:_START]}") or b""
    if start.startswith(b"GIF8"):
        return start[6:10] == b"\x01\0\x01\0"
    return start.startswith(b"\x89PNG") and start[16:24] == b"\0\0\0\x01\0\0\0\x01"
