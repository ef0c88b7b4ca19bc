"""Images that records show, as their rows store them."""

from typing import Any

from pynamodb.attributes import MapAttribute, NumberAttribute, UnicodeAttribute

from chalicelib.domains.files.store.files import FileRow
from chalicelib.engine.file_uses import ShownFiles


class ImageMap(MapAttribute[str, Any]):
    """An image that a record shows: its file, public URL, and size in pixels."""

    file_id = UnicodeAttribute()
    url = UnicodeAttribute()
    width = NumberAttribute()
    height = NumberAttribute()


def _remove_image(record: Any, file_id: str) -> None:  # noqa: ANN401  a record of any noun with images
    record.images = [image for image in record.images if image.file_id != file_id]


SHOWN_IMAGES: ShownFiles[Any] = ShownFiles(
    lambda r: [image.file_id for image in r.images], _remove_image
)
"""Access to the files of a record with a list of ``images``, for its noun's listing."""


def is_image(file: FileRow) -> bool:
    """Return whether a record can show a file. Only a re-encoded image has a known size."""
    return bool(file.width)
