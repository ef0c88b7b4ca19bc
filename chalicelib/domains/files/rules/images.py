"""Images from strangers: decoded and re-encoded, so that only their pixels remain.

Names, places (EXIF GPS), scripts behind the last byte and whatever a broken decoder might be fed
are gone after that. The originals are never served.

- JPEG, PNG and WebP stay what they are. AVIF becomes WebP (writing AVIF takes ten times as long),
  BMP and still GIF become PNG. GIF and WebP animations become animated WebP; of an animated PNG or
  AVIF the first frame remains.
- A JPEG never grows: it is written with its own quantisation tables where they are coarser than
  ours, and with coarser ones still if that is not enough.
- Everything else is refused: SVG and HTML can carry scripts, TIFF, PSD, EPS and the like have
  decoders with a long history of holes, and HEIC's decoder comes with an encoder under the GPL.
- Images are turned upright, converted to sRGB and made to fit ``MAX_SIDE``: full size would take
  longer than a request may.
- One image at a time: a Lambda of 1024 MB has less than one processor, so taking turns costs no
  time, and the memory needed is that of one.
"""

from collections.abc import Iterator
from functools import cache
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from chalicelib.domains.files.rules.file_types import sniff

if TYPE_CHECKING:
    from PIL import Image, ImageFile

MAX_PIXELS = 50_000_000
"""Security: the pixels an image may have."""
MAX_PIXELS_OF_FRAMES = 25_000_000
"""The same for WebP and AVIF, whose decoders hold four copies, and for all frames of an animation
together."""
MAX_FRAMES = 1000
MAX_SIDE = 4096
"""The longer side of a stored image, in pixels."""
THUMBNAIL_SIDE = 400

_MAX_SCANS = 64
"""Cameras and encoders write about ten. Each may cost a walk over all pixels for a few bytes."""
_MAX_PROFILE = 4 << 20
_LARGEST_BYTE = 255
_SHORTEST_FRAME, _USUAL_FRAME, _LONGEST_FRAME = 20, 100, 60_000
"""Milliseconds. Browsers show frames of less than the shortest for the usual time."""

_READERS = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
    "image/bmp": "BMP",
}
READ = frozenset(_READERS)
"""The types that are decoded and re-encoded."""
_NO_PHOTOS = frozenset({"image/svg+xml", "image/x-icon", "image/vnd.adobe.photoshop"})
"""Drawings, icons and working documents, which are stored as they come, as other documents are."""
_QUALITY = 88
_COARSER = (1.0, 1.0, 1.15, 1.4, 1.8, 2.5, 4.0, 8.0)
"""What a JPEG's tables are multiplied by, one after another, until it is no larger than it was."""
_PROGRESSIVE_FROM = 10_000
"""Bytes; a smaller JPEG, and one of the coarsest tables, is larger when it is progressive."""
_EXPECTED = "expected a JPEG, PNG, GIF, WebP, AVIF or BMP image"

_one_at_a_time = Lock()


class ImageError(Exception):
    """An image that cannot be made safe; ``reason`` says why and what to do, in one sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CleanImage(NamedTuple):
    """An image of our own making. Sizes are in pixels."""

    body: bytes
    mime_type: str
    width: int
    height: int
    thumbnail: bytes
    """At most ``THUMBNAIL_SIDE`` on its longer side."""
    thumbnail_type: str
    """JPEG, or WebP when the image is see-through."""


def sanitize(body: bytes) -> CleanImage:
    """Decode an image and re-encode it.

    Raises:
        ImageError: if it is none of the formats named above, is damaged or cut short, or has more
            pixels than ``MAX_PIXELS`` or ``MAX_PIXELS_OF_FRAMES``, more than ``MAX_FRAMES`` frames
            or a JPEG's scans beyond all use.
    """
    mime_type = sniff(body)
    if mime_type not in _READERS:
        raise ImageError(_refusal(mime_type))
    if mime_type == "image/jpeg" and body.count(b"\xff\xda") > _MAX_SCANS:
        msg = f"expected a JPEG of at most {_MAX_SCANS} scans; save it again and send that"
        raise ImageError(msg)
    from PIL import Image  # noqa: PLC0415  takes a twentieth of a second to load

    # Pillow warns above this and refuses above twice this, wherever a size turns up while decoding.
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    try:
        with _one_at_a_time:
            return _written(*_decoded(body, _READERS[mime_type]), len(body))
    except ImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageError(_too_large(MAX_PIXELS)) from None
    except Exception as error:  # decoders raise anything when fed hostile bytes
        msg = f"{_EXPECTED}, but this {_READERS[mime_type]} is damaged or incomplete; save it again"
        raise ImageError(msg) from error


def check_storable(mime_type: str) -> None:
    """Refuse photos in a format that cannot be re-encoded: nobody expects their metadata to stay.

    Raises:
        ImageError: saying what to do.
    """
    if mime_type.startswith("image/") and mime_type not in READ | _NO_PHOTOS:
        raise ImageError(_refusal(mime_type))


def _refusal(mime_type: str) -> str:
    if mime_type == "image/svg+xml":
        why = "SVG can carry scripts; export it as PNG"
    elif mime_type == "text/html":
        why = "this is a web page; give the URL of the image itself"
    elif mime_type in {"image/heic", "image/heif"}:
        why = (
            "HEIC is not supported; save it as JPEG (an iPhone takes JPEGs with Settings, Camera, "
            "Formats, Most Compatible)"
        )
    elif mime_type.startswith("image/"):
        why = f"{mime_type} is not supported; save it as JPEG or PNG"
    else:
        why = f"this is {mime_type}"
    return f"{_EXPECTED}, but {why}"


def _too_large(limit: int) -> str:
    return f"expected at most {limit // 1_000_000} megapixels; make the image smaller"


def _decoded(body: bytes, kind: str) -> "tuple[Image.Image, dict[str, Any]]":
    """Return the pixels and how to write them.

    The size that the header gives is checked before any pixel is decoded. The decoder and its
    copies of the image are gone on return.
    """
    from PIL import Image  # noqa: PLC0415  loaded already when this runs

    with Image.open(BytesIO(body), formats=[kind]) as source:
        limit = MAX_PIXELS_OF_FRAMES if kind in {"WEBP", "AVIF"} else MAX_PIXELS
        if source.width * source.height > limit:
            raise ImageError(_too_large(limit))
        if kind in {"GIF", "WEBP"} and getattr(source, "is_animated", False):
            return _animation(source)
        tables = _tables(source) if kind == "JPEG" else []
        image = _upright_srgb(source)
    if kind == "WEBP" and body.startswith(b"VP8L", 12):
        return image, {"format": "WEBP", "lossless": True, "quality": 0, "method": 0}
    if kind in {"WEBP", "AVIF"}:
        return image, {"format": "WEBP", "quality": 85, "method": 1}
    if kind == "JPEG":
        return image, {"format": "JPEG", "optimize": True, "qtables": tables}
    return image, {"format": "PNG", "compress_level": 4}


def _upright_srgb(source: "ImageFile.ImageFile") -> "Image.Image":
    """Return the pixels: eight bits a channel, in sRGB, upright, fitting ``MAX_SIDE``, bare."""
    orientation, profile = _orientation(source), source.info.get("icc_profile")
    image: Image.Image = source
    fits = max(image.size) <= MAX_SIDE
    if image.mode != "P" or not fits or profile:
        image = _eight_bits(image)
    if not fits:
        # A JPEG is decoded at a fraction of its size here, if that is enough.
        image.thumbnail((MAX_SIDE, MAX_SIDE), reducing_gap=2.0)
    image = image.copy() if image is source else image
    if profile:
        image = _to_srgb(image, profile)
    if image.mode == "CMYK":
        image = image.convert("RGB")
    if orientation is not None:
        image = image.transpose(orientation)
    # Writers copy comments, profiles and more from here.
    image.info = {key: value for key, value in image.info.items() if key == "transparency"}
    if image.mode in {"RGBA", "LA"} and _least_alpha(image) == _LARGEST_BYTE:
        image = image.convert(image.mode[:-1])
    return image


def _least_alpha(image: "Image.Image") -> int:
    lowest, _ = image.getchannel("A").getextrema()
    return int(lowest)  # type: ignore[arg-type]  # a pair for several bands, a number for one


def _eight_bits(image: "Image.Image") -> "Image.Image":
    """Return an image as L, LA, RGB, RGBA or CMYK, the one with the least in it."""
    if image.mode.startswith("I"):
        return image.point(lambda value: value * (1 / 257)).convert("L")
    if image.has_transparency_data:
        return image if image.mode in {"LA", "RGBA"} else image.convert("RGBA")
    if image.mode in {"L", "RGB", "CMYK"}:
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def _orientation(source: "ImageFile.ImageFile") -> "Image.Transpose | None":
    """Return what turns an image upright (EXIF 2.32, tag 0x0112), None if it stands as it is."""
    from PIL import Image  # noqa: PLC0415  loaded already when this runs

    turn = Image.Transpose
    try:
        tag = int(source.getexif().get(0x0112, 1))
    except Exception:  # noqa: BLE001  damaged EXIF data, of any kind, is not missed
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
    """Convert by the colour profile: phones take images in Display P3, which looks dull else."""
    from PIL import ImageCms  # noqa: PLC0415  needed for images with a profile only

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
        return image  # a damaged profile, or one for other colours, is as good as none
    return converted or image


def _animation(source: "ImageFile.ImageFile") -> "tuple[Image.Image, dict[str, Any]]":
    durations: list[int] = []
    frames = list(_frames(source, durations))
    loop = source.info.get("loop", 1 if source.format == "GIF" else 0)
    options = {"format": "WEBP", "quality": 80, "method": 0, "duration": durations, "loop": loop}
    options |= {"save_all": True, "append_images": frames[1:]}
    return frames[0], options


def _frames(source: "ImageFile.ImageFile", durations: list[int]) -> Iterator["Image.Image"]:
    """Yield the frames one by one, so that too many are noticed before they are decoded."""
    pixels = 0
    for number in range(MAX_FRAMES + 1):
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
            raise ImageError(msg)
        frame = source.convert("RGBA")
        frame.thumbnail((MAX_SIDE, MAX_SIDE), reducing_gap=2.0)
        frame.info = {}
        length = int(source.info.get("duration", 0))
        durations.append(min(length, _LONGEST_FRAME) if length >= _SHORTEST_FRAME else _USUAL_FRAME)
        yield frame


@cache
def _our_tables() -> list[list[int]]:
    """Return the tables of our own quality."""
    from PIL import Image  # noqa: PLC0415  loaded already when this runs

    body = BytesIO()
    Image.new("RGB", (1, 1)).save(body, "JPEG", quality=_QUALITY)
    written: Any = Image.open(body, formats=["JPEG"])
    return [list(written.quantization[number]) for number in (0, 1)]


def _tables(source: "ImageFile.ImageFile") -> list[list[int]]:
    """Return the tables to write a JPEG with, of brightness and of colour.

    Ours, or its own where they are coarser: finer ones would only keep its flaws more exactly.
    """
    own: Any = source
    numbers = [component[3] for component in own.layer[:2]]
    theirs = [own.quantization[number] for number in (numbers * 2)[:2]]
    return [
        [max(pair) for pair in zip(ours, table, strict=True)]
        for ours, table in zip(_our_tables(), theirs, strict=True)
    ]


def _jpeg(image: "Image.Image", options: dict[str, Any], limit: int) -> bytes:
    """Write a JPEG in at most ``limit`` bytes.

    Only CMYK ones of a few pixels lack the hundred bytes of headers that ours have.
    """
    tables, smallest = options["qtables"], b""
    for number, factor in enumerate(_COARSER):
        scaled = [[min(_LARGEST_BYTE, round(q * factor)) for q in table] for table in tables]
        body = BytesIO()
        progressive = number == 0 and limit > _PROGRESSIVE_FROM
        image.save(body, **options | {"qtables": scaled, "progressive": progressive})
        smallest = min(smallest or body.getvalue(), body.getvalue(), key=len)
        if len(smallest) <= limit:
            break
    return smallest


def _written(image: "Image.Image", options: dict[str, Any], limit: int) -> CleanImage:
    """Write an image, a JPEG in at most ``limit`` bytes, and the thumbnail of its first frame."""
    body, thumbnail = BytesIO(), BytesIO()
    if options["format"] == "JPEG":
        body.write(_jpeg(image, options, limit))
    else:
        image.save(body, **options)
    small = _eight_bits(image).copy()
    small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE), reducing_gap=2.0)
    kind = "WEBP" if small.has_transparency_data else "JPEG"
    small.save(thumbnail, kind, quality=80)
    return CleanImage(
        body=body.getvalue(),
        mime_type=f"image/{options['format'].lower()}",
        width=image.width,
        height=image.height,
        thumbnail=thumbnail.getvalue(),
        thumbnail_type=f"image/{kind.lower()}",
    )
