"""Images from which tests make others, and why an image is refused."""

import io
import struct
import zlib
from functools import cache
from typing import Any

import pytest
from PIL import Image

from chalicelib.domains.files.rules.images import ImageError, sanitize

PAYLOAD = b"<script>alert('payload')</script>"
STAYS = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
BECOMES = {"GIF": "image/png", "BMP": "image/png", "AVIF": "image/webp"}
FORMATS = STAYS | BECOMES


def drawn(mode: str = "RGB", size: tuple[int, int] = (60, 40)) -> Image.Image:
    """Draw an image whose left half is red and whose right half is blue."""
    image = Image.new("RGB", size, "red")
    image.paste("blue", (size[0] // 2, 0, *size))
    return image.convert(mode)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    body = io.BytesIO()
    image.save(body, kind, **options)
    return body.getvalue()


@cache
def sample(kind: str) -> bytes:
    return saved(Image.effect_noise((64, 48), 90).convert("RGB"), kind)


def opened(body: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(body))
    image.load()
    return image


def is_red(image: Image.Image, place: tuple[int, int]) -> bool:
    pixel = image.convert("RGB").getpixel(place)
    assert isinstance(pixel, tuple)
    return pixel[0] > 180 and pixel[2] < 80


def chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


def png(width: int, height: int, *extra: bytes, pixels: bytes = b"") -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + body


def gif(width: int, height: int, *frames: tuple[int, int]) -> bytes:
    body = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    for size in frames:
        body += b"\x2c" + struct.pack("<HHHHB", 0, 0, *size, 0) + b"\x02\x02\x44\x01\x00"
    return body + b";"


def riff(*chunks: bytes) -> bytes:
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def animation(kind: str, count: int = 3) -> bytes:
    frames = [Image.new("RGB", (30, 20), color) for color in ("red", "green", "blue") * count]
    return saved(
        frames[0], kind, save_all=True, append_images=frames[1:count], duration=[100, 200, 300]
    )


def reason(body: bytes) -> str:
    return refused_image(body).reason


def refused_image(body: bytes) -> ImageError:
    with pytest.raises(ImageError) as caught:
        sanitize(body)
    assert str(caught.value) == caught.value.reason
    return caught.value
