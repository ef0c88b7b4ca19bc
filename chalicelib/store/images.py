"""The images that records show, as their rows keep them."""

from typing import Any

from pynamodb.attributes import MapAttribute, NumberAttribute, UnicodeAttribute

from chalicelib.store.files import FileRow


class ImageMap(MapAttribute[str, Any]):
    """An image that a record shows: its file, public URL, and size in pixels."""

    file_id = UnicodeAttribute()
    url = UnicodeAttribute()
    width = NumberAttribute()
    height = NumberAttribute()


def is_image(file: FileRow) -> bool:
    """Whether a record can show a file: it was decoded and re-encoded, so its size is known."""
    return bool(file.width)
