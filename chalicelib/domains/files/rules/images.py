"""Re-encode untrusted images, so that only their pixels remain.

Re-encoding removes names, places (EXIF GPS), scripts behind the last byte, and data that could
attack a decoder. The original bytes are never served.

- JPEG, PNG and WebP keep their format. AVIF becomes WebP, because writing AVIF takes ten times as
  long. BMP and still GIF become PNG. GIF and WebP animations become animated WebP. Only the first
  frame of an animated PNG or AVIF remains.
- A JPEG never grows. It is written with its own quantisation tables where they are coarser than
  ours, and with even coarser tables if that is not enough.
- Other formats are rejected. SVG and HTML can carry scripts. The decoders of TIFF, PSD and EPS have
  a long history of security holes. HEIC's decoder comes with an encoder under the GPL.
- Images are turned upright, converted to sRGB and reduced to ``MAX_SIDE``. At full size, this would
  take longer than a request may.
- One image is processed at a time. A Lambda function of 1024 MB has less than one processor, so
  parallel work would save no time and need more memory.
- A JPEG may lack its end marker, but none of its scans (ITU-T T.81), the passes over its pixels.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from io import BytesIO
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from chalicelib.domains.files.rules.file_types import sniff

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE_FRAMES = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_SCAN = 0xDA
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")  # the beginning of a segment after pixel data


def has_all_scans(body: bytes) -> bool:
    """Return whether a JPEG ends within its last scan (ITU-T T.81, B.2 and G.1)."""
    # A progressive JPEG has scans for each range of coefficients, down to the lowest bit.
    position, is_progressive = 2, False
    missing: dict[int, set[int]] = {}
    while len(segment := body[position + 4 : position + 2 + _length(body, position)]) > 0:
        marker, position = body[position + 1], position + 2 + _length(body, position)
        if position > len(body):
            return False
        if marker in _FRAMES:
            is_progressive = marker in _PROGRESSIVE_FRAMES
            missing = {number: set(range(64)) for number in segment[6::3]}
        if marker == _SCAN:
            numbers = segment[1 : 1 + 2 * segment[0] : 2]
            first, last, bits = segment[-3:] if is_progressive else (0, 63, 0)
            for number in numbers if bits % 16 == 0 else ():
                missing.get(number, set()).difference_update(range(first, last + 1))
            following = _MARKER.search(body, position)
            if following is None:
                return not any(missing.values())
            position = following.start()
    return False


def _length(body: bytes, position: int) -> int:
    return int.from_bytes(body[position + 2 : position + 4])


if TYPE_CHECKING:
    from PIL import Image, ImageFile

MAX_PIXELS = 50_000_000  # in an image, for security
# In WebP, AVIF, and all frames of an animation, for security. The decoders of WebP and AVIF hold
# four copies of an image.
MAX_PIXELS_OF_FRAMES = 25_000_000
MAX_FRAMES = 1000
MAX_IMAGES = 10  # of a product or another record
MAX_SIDE = 4096  # pixels of the longer side of a stored image
THUMBNAIL_SIDE = 400

# Cameras and encoders write about ten scans into a JPEG. A scan of a few bytes can cost a pass over
# all pixels.
_MAX_SCANS = 64
_MAX_PROFILE = 4 << 20
_LARGEST_BYTE = 255
# Place of the flags in an extended WebP, and the flag of transparency (RFC 9649, 2.7).
_FLAGS, _ALPHA = 20, 0x10
# Milliseconds. Browsers show a frame below the shortest duration for the usual one.
_SHORTEST_FRAME, _USUAL_FRAME, _LONGEST_FRAME = 20, 100, 60_000

_READERS = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
    "image/bmp": "BMP",
}
READ = frozenset(_READERS)  # types that are decoded and re-encoded
# Drawings, icons and working documents. They are stored unchanged, like other documents.
_NO_PHOTOS = frozenset({"image/svg+xml", "image/x-icon", "image/vnd.adobe.photoshop"})
_QUALITY = 88
_LOSSLESS = {"format": "WEBP", "lossless": True, "quality": 0, "method": 0}
_LOSSY = {"format": "WEBP", "quality": 85, "method": 1}
_ANIMATED = {"format": "WEBP", "quality": 80, "method": 0, "save_all": True}
_PNG = {"format": "PNG", "compress_level": 4}
_THUMBNAIL = {"quality": 80}
# An image is first reduced quickly to this multiple of its new size, then well.
_REDUCING_GAP = 2.0
# Factors for a JPEG's tables, tried in order until the JPEG is not larger than the original.
_TABLE_FACTORS = (1.0, 1.0, 1.15, 1.4, 1.8, 2.5, 4.0, 8.0)
# Size in bytes from which a JPEG is written as progressive. A smaller one would grow.
_PROGRESSIVE_FROM = 10_000
_EXPECTED = "expected a JPEG, PNG, GIF, WebP, AVIF or BMP image"

_JPEG_END = b"\xff\xd9"
# Two endings of pixel data that differ in every bit, without markers.
_JPEG_ENDINGS = (bytes(range(1, 128)) * 4, bytes(range(0xFE, 0x7F, -1)) * 4)
_one_at_a_time = Lock()


class ImageError(Exception):
    """An image that cannot be re-encoded. ``reason`` gives the cause and a fix in one sentence.

    ``key`` is the kind of the fault, such as ``damaged_image``.
    """

    def __init__(self, reason: str, *, key: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.key = key


class CleanImage(NamedTuple):
    """A re-encoded image, with sizes in pixels."""

    body: bytes
    mime_type: str
    width: int
    height: int
    thumbnail: bytes  # at most ``THUMBNAIL_SIDE`` on its longer side
    thumbnail_type: str  # JPEG, or WebP if the image is transparent


def sanitize(body: bytes) -> CleanImage:
    """Decode an image and re-encode it.

    Raises:
        ImageError: the image has an unsupported format, is damaged or incomplete, or has too many
            pixels (``MAX_PIXELS``, ``MAX_PIXELS_OF_FRAMES``), frames (``MAX_FRAMES``) or JPEG
            scans.
    """
    mime_type = sniff(body)
    if mime_type not in _READERS:
        raise ImageError(_unsupported_message(mime_type), key="unsupported_image")
    if mime_type == "image/jpeg" and body.count(b"\xff\xda") > _MAX_SCANS:
        msg = (
            f"expected a JPEG of at most {_MAX_SCANS} scans; save the image again with fewer scans"
        )
        raise ImageError(msg, key="too_many_scans")
    from PIL import Image

    # Pillow warns above this limit and raises an error above twice this limit, during all decoding.
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    try:
        with _one_at_a_time:
            return _encode(*_decode_complete(body, _READERS[mime_type]), len(body))
    except ImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageError(_too_large_message(MAX_PIXELS), key="too_many_pixels") from None
    except Exception as error:  # decoders raise any exception for malicious bytes
        msg = (
            f"{_EXPECTED}, received a damaged or incomplete {_READERS[mime_type]}; save the "
            "image again"
        )
        raise ImageError(msg, key="damaged_image") from error


def check_storable(mime_type: str) -> None:
    """Raise ImageError for photos that cannot be re-encoded, whose metadata would be kept."""
    if mime_type.startswith("image/") and mime_type not in READ | _NO_PHOTOS:
        raise ImageError(_unsupported_message(mime_type), key="unsupported_image")


def _unsupported_message(mime_type: str) -> str:
    if mime_type == "image/svg+xml":
        why = "received SVG, which can contain scripts; export the image as PNG"
    elif mime_type == "text/html":
        why = "received a web page; send the URL of the image itself"
    elif mime_type in {"image/heic", "image/heif"}:
        why = (
            "received HEIC; save the image as JPEG (on an iPhone: Settings, Camera, Formats, "
            "Most Compatible)"
        )
    elif mime_type.startswith("image/"):
        why = f"received {mime_type}; save the image as JPEG or PNG"
    else:
        why = f"received {mime_type}"
    return f"{_EXPECTED}, {why}"


def _too_large_message(limit: int) -> str:
    return f"expected at most {limit // 1_000_000} megapixels; make the image smaller"


def _decode_complete(body: bytes, kind: str) -> "tuple[Image.Image, dict[str, Any]]":
    # The decoder makes up the pixels that are missing, from whatever follows. So they are missing
    # if two endings give two images.
    try:
        return _decode(body, kind)
    except OSError:
        if kind != "JPEG" or body.rstrip(b"\0").endswith(_JPEG_END):
            raise
    if has_all_scans(body):
        with suppress(OSError):
            start = body.rstrip(b"\xff")
            image, other = (_decode(start + ending + _JPEG_END, kind) for ending in _JPEG_ENDINGS)
            if image[0] == other[0]:
                return image
    msg = f"{_EXPECTED}, received a JPEG without its end; send the whole file"
    raise ImageError(msg, key="incomplete_image")


def _decode(body: bytes, kind: str) -> "tuple[Image.Image, dict[str, Any]]":
    # The size in the header is checked before any pixel is decoded. The decoder and its copies of
    # the image are freed on return.
    from PIL import Image

    with Image.open(BytesIO(body), formats=[kind]) as source:
        limit = MAX_PIXELS_OF_FRAMES if kind in {"WEBP", "AVIF"} else MAX_PIXELS
        if source.width * source.height > limit:
            raise ImageError(_too_large_message(limit), key="too_many_pixels")
        if kind in {"GIF", "WEBP"} and getattr(source, "is_animated", False):
            return _animation(source)
        tables = _tables(source) if kind == "JPEG" else []
        image = _upright_srgb(source)
    if kind == "WEBP" and body.startswith(b"VP8L", 12):
        return image, _LOSSLESS
    if kind in {"WEBP", "AVIF"}:
        return image, _LOSSY
    if kind == "JPEG":
        return image, {"format": "JPEG", "optimize": True, "qtables": tables}
    return image, _PNG


def _upright_srgb(source: "ImageFile.ImageFile") -> "Image.Image":
    # Only the pixels, upright, in sRGB with 8 bits a channel, within ``MAX_SIDE``.
    _read_transparent_colour(source)  # before anything decodes the pixels
    orientation, profile = _orientation(source), source.info.get("icc_profile")
    image: Image.Image = source
    fits = max(image.size) <= MAX_SIDE
    if image.mode != "P" or not fits or profile:
        image = _eight_bits(image)
    # A JPEG is decoded at a fraction of its size here, if that is enough.
    _reduce(image, MAX_SIDE)
    image = image.copy() if image is source else image
    if profile:
        image = _to_srgb(image, profile)
    if image.mode == "CMYK":
        image = image.convert("RGB")
    if orientation is not None:
        image = image.transpose(orientation)
    # Writers copy comments, profiles and more from here.
    image.info = {key: value for key, value in image.info.items() if key == "transparency"}
    if image.mode in {"RGBA", "LA"} and _lowest_alpha(image) == _LARGEST_BYTE:
        image = image.convert(image.mode[:-1])
    return image


def _reduce(image: "Image.Image", side: int) -> None:
    image.thumbnail((side, side), reducing_gap=_REDUCING_GAP)


def _lowest_alpha(image: "Image.Image") -> int:
    lowest, _ = image.getchannel("A").getextrema()
    return int(lowest)  # type: ignore[arg-type]  # a pair for several bands, a number for one


def _eight_bits(image: "Image.Image") -> "Image.Image":
    if image.mode.startswith("I"):
        image = _from_16_bits(image)
    if image.has_transparency_data:
        return image if image.mode in {"LA", "RGBA"} else image.convert("RGBA")
    if image.mode in {"L", "RGB", "CMYK"}:
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def _from_16_bits(image: "Image.Image") -> "Image.Image":
    # A transparent grey remains transparent.
    from PIL import Image, ImageChops

    small = image.point(lambda value: value * (1 / 257)).convert("L")
    transparent = image.info.get("transparency")
    if not isinstance(transparent, int) or image.mode != "I;16":
        return small
    # Many greys become one of 8 bits, and only pixels of exactly one grey are transparent. Each
    # pixel has a low and a high byte, which are compared apart.
    halves = Image.frombuffer("LA", image.size, image.tobytes(), "raw", "LA", 0, 1).split()
    low, high = (
        half.point([_LARGEST_BYTE * (value == byte) for value in range(256)])
        for half, byte in zip(halves, transparent.to_bytes(2, "little"), strict=True)
    )
    small.putalpha(ImageChops.invert(ImageChops.darker(low, high)))
    return small


def _read_transparent_colour(source: "ImageFile.ImageFile") -> None:
    # The transparent colour of a PNG of 16 bits gets 8 bits, as its pixels have after decoding.
    colour = source.info.get("transparency")
    if isinstance(colour, tuple) and source.tile and str(source.tile[0].args).endswith("16B"):
        source.info["transparency"] = tuple(value >> 8 for value in colour)


def _orientation(source: "ImageFile.ImageFile") -> "Image.Transpose | None":
    # EXIF 2.32, tag 0x0112
    from PIL import Image

    turn = Image.Transpose
    try:
        tag = int(source.getexif()[0x0112])
    except Exception:  # noqa: BLE001  missing or damaged EXIF data of any kind is ignored
        return None
    return {
        2: turn.FLIP_LEFT_RIGHT,
        3: turn.ROTATE_180,
        4: turn.FLIP_TOP_BOTTOM,
        5: turn.TRANSPOSE,
        6: turn.ROTATE_270,
        7: turn.TRANSVERSE,
        8: turn.ROTATE_90,
    }.get(tag)


def _to_srgb(image: "Image.Image", profile: bytes) -> "Image.Image":
    # Phones use Display P3, which looks dull without a conversion.
    from PIL import ImageCms  # needed for images with a profile only

    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    if len(profile) > _MAX_PROFILE or image.mode in {"L", "LA"}:
        return image
    try:
        converted = ImageCms.profileToProfile(
            image,
            ImageCms.ImageCmsProfile(BytesIO(profile)),
            ImageCms.createProfile("sRGB"),
            outputMode=mode,
        )
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return image  # a damaged profile, or one for other colours, is ignored
    return converted or image


def _animation(source: "ImageFile.ImageFile") -> "tuple[Image.Image, dict[str, Any]]":
    durations: list[int] = []
    frames = list(_frames(source, durations))
    loop = source.info.get("loop", 1)  # Only a GIF may have none. It is shown once.
    options = {"duration": durations, "loop": loop, "append_images": frames[1:]}
    return frames[0], _ANIMATED | options


def _frames(source: "ImageFile.ImageFile", durations: list[int]) -> Iterator["Image.Image"]:
    # The frames come one by one, so that too many are rejected before they are decoded.
    pixels = 0
    for number in count():
        try:
            source.seek(number)
        except EOFError:
            return
        pixels += source.width * source.height
        if pixels > MAX_PIXELS_OF_FRAMES or number == MAX_FRAMES:
            million = MAX_PIXELS_OF_FRAMES // 1_000_000
            msg = (
                f"expected an animation of at most {million} megapixels in all its frames and "
                f"{MAX_FRAMES} frames; make it smaller or shorter"
            )
            raise ImageError(msg, key="too_long_animation")
        frame = source.convert("RGBA")
        _reduce(frame, MAX_SIDE)
        frame.info = {}
        length = int(source.info.get("duration", 0))
        durations.append(min(length, _LONGEST_FRAME) if length >= _SHORTEST_FRAME else _USUAL_FRAME)
        yield frame


@cache
def _our_tables() -> list[list[int]]:
    from PIL import Image

    body = BytesIO()
    Image.new("RGB", (1, 1)).save(body, "JPEG", quality=_QUALITY)
    sample: Any = Image.open(body, formats=["JPEG"])
    return [list(sample.quantization[number]) for number in (0, 1)]


def _tables(source: "ImageFile.ImageFile") -> list[list[int]]:
    # A table is ours, or the image's own where that is coarser. A finer table would only preserve
    # flaws.
    jpeg: Any = source
    numbers = [component[3] for component in jpeg.layer]
    original_tables = [jpeg.quantization[number] for number in (numbers * 2)[:2]]
    return [
        [max(pair) for pair in zip(own_table, table, strict=True)]
        for own_table, table in zip(_our_tables(), original_tables, strict=True)
    ]


def _encode_jpeg(image: "Image.Image", options: dict[str, Any], limit: int) -> bytes:
    # Tiny CMYK images can exceed the limit: our headers need a hundred bytes more than theirs.
    tables, smallest = options["qtables"], b""
    for number, factor in enumerate(_TABLE_FACTORS):
        scaled = [[min(_LARGEST_BYTE, round(q * factor)) for q in table] for table in tables]
        body = BytesIO()
        progressive = number == 0 and limit >= _PROGRESSIVE_FROM
        image.save(body, **options | {"qtables": scaled, "progressive": progressive})
        smallest = min(smallest or body.getvalue(), body.getvalue(), key=len)
        if len(smallest) <= limit:
            break
    return smallest


def _mark_transparent(body: BytesIO, frames: "list[Image.Image]") -> None:
    # libwebp crops opaque parts out of transparent frames and does not set the flag. Without it,
    # readers show the rest of the canvas as black.
    view = body.getbuffer()
    if bytes(view[12:16]) == b"VP8X" and any(
        _lowest_alpha(frame) < _LARGEST_BYTE for frame in frames
    ):
        view[_FLAGS] |= _ALPHA


def _encode(image: "Image.Image", options: dict[str, Any], limit: int) -> CleanImage:
    # A JPEG has at most ``limit`` bytes. The thumbnail is of the first frame.
    body, thumbnail = BytesIO(), BytesIO()
    if options["format"] == "JPEG":
        body.write(_encode_jpeg(image, options, limit))
    else:
        image.save(body, **options)
    if options["format"] == "WEBP" and options.get("append_images"):
        _mark_transparent(body, [image, *options["append_images"]])
    small = _eight_bits(image).copy()
    _reduce(small, THUMBNAIL_SIDE)
    kind = "WEBP" if small.has_transparency_data else "JPEG"
    small.save(thumbnail, kind, **_THUMBNAIL)
    return CleanImage(
        body=body.getvalue(),
        mime_type=f"image/{options['format'].lower()}",
        width=image.width,
        height=image.height,
        thumbnail=thumbnail.getvalue(),
        thumbnail_type=f"image/{kind.lower()}",
    )
