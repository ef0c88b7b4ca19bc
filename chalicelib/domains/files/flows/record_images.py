"""Import the images of a record, and define their wire models."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.schema import Id, Wire, exactly_one, optional
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.flows.rehosting import ImportedImage
from chalicelib.domains.files.rules.images import MAX_IMAGES
from chalicelib.domains.files.store.files import FILES, ImageMap, is_image


class ImageIn(Wire):
    """An image to show: one on another server, which is copied, or a file of the workspace."""

    EXACTLY_ONE_OF = (("url", "file_id"),)

    url: Annotated[str, StringConstraints(max_length=2048)] = optional("https URL to copy.")
    file_id: Id = optional("Or the id of a file.")

    @model_validator(mode="after")
    def _check_one_source(self) -> Self:
        exactly_one(self)
        return self


Images = Annotated[list[ImageIn], Field(max_length=MAX_IMAGES)]


class ImageOut(Wire):
    """An image of a record."""

    file_id: Id = Field(description="Id of its file.")
    url: str = Field(description="Public URL of the image.")
    width: int = Field(description="Width in pixels.")
    height: int = Field(description="Height in pixels.")


def weight(images: Sequence[ImageIn] | None) -> int:
    """Return the cost of images in heavy calls, which is 1 if any image must be fetched, else 0."""
    return int(any(image.url and not rehosting.is_own_url(image.url) for image in images or ()))


def weight_of(args: Wire) -> int:
    """Return the cost in heavy calls of an input with ``images``."""
    return weight(args.provided().get("images"))


def import_record_images(
    ctx: Context,
    requested: Sequence[ImageIn],
    folder: str,
    *,
    old_images: Sequence[ImageMap] = (),
    field: str = "images.{}",
) -> list[ImageMap]:
    """Return the images of a record, with those from other servers as new files in a folder.

    An image that cannot be imported adds a warning. If none can be imported, the record keeps the
    ``old_images``. An operation calls this function at most once, like ``rehosting.rehost``.
    ``field`` is the path of an image in the input, with ``{}`` for its index.

    Raises:
        NotFoundError: a ``fileId`` is not of the workspace. This is raised before any fetch.
        ValidationError: a ``fileId`` is of a file that is not an image.
    """
    own_images = _own_images(ctx, requested, field)
    urls = [image.url for image in requested if image.url is not None]
    remote_images = (
        dict(zip(urls, rehosting.rehost(ctx, urls, folder), strict=True)) if urls else {}
    )
    record_images = [
        own_images.get(image.file_id) or remote_images.get(image.url) for image in requested
    ]
    imported = [_image_map(image) for image in record_images if image is not None]
    # A mistake in the new list must not remove the images that visitors see.
    if requested and old_images and not imported:
        ctx.warn(
            "None of the new images could be imported, so the old images are kept.",
            code=WarningCode.IMAGES_KEPT,
        )
        return list(old_images)
    return imported


def existing_images(ctx: Context, images: Sequence[ImageMap]) -> list[ImageMap]:
    """Return the images whose files still exist, for a copy of the record that shows them."""
    files = FILES.fetch(ctx.workspace_id, [image.file_id for image in images]) if images else []
    ids = {file.id for file in files}
    return [image for image in images if image.file_id in ids]


def _own_images(ctx: Context, requested: Sequence[ImageIn], field: str) -> dict[str, ImportedImage]:
    ids = [image.file_id for image in requested if image.file_id is not None]
    files = {file.id: file for file in FILES.fetch(ctx.workspace_id, ids)} if ids else {}
    for number, image in enumerate(requested):
        if image.file_id is None:
            continue
        if image.file_id not in files:
            raise FILES.not_found()
        if not is_image(files[image.file_id]):
            kind = files[image.file_id].mime_type
            message = f"expected the id of an image, received the id of a file of type {kind}"
            place = field.format(number) + ".fileId"
            raise ValidationError.of(place, message=message, key="no_image")
    return {file_id: rehosting.to_image(file) for file_id, file in files.items()}


def _image_map(image: ImportedImage) -> ImageMap:
    return ImageMap(  # type: ignore[no-untyped-call]  # PynamoDB's __init__
        file_id=image.file_id, url=image.url, width=image.width, height=image.height
    )
