"""Search for free stock photos that illustrate cards."""

from typing import Annotated

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.wire.lists import ListResult, PageQuery
from chalicelib.core.wire.schema import Title, optional
from chalicelib.domains.files.flows import photos
from chalicelib.domains.files.flows.photos import PhotoOut
from chalicelib.gateways.photos import MAX_PAGE, MAX_SIZE, Orientation


class CardImageQuery(PageQuery):
    """Search terms and paging of a photo search."""

    query: Title = Field(description="Search terms; English finds most.")
    page: Annotated[int, Field(ge=1, le=MAX_PAGE)] = Field(default=1, description="Page, from 1.")
    size: Annotated[int, Field(ge=1, le=MAX_SIZE)] = Field(
        default=MAX_SIZE, description="Photos per page."
    )
    orientation: Orientation | None = optional("Orientation.")


class PhotoList(ListResult):
    """One page of photos."""

    images: list[PhotoOut] = Field(
        description="The photos of this page. There are fewer than size if some cannot be used."
    )
    page: int = Field(description="The page returned.")
    size: int = Field(description="The page size used.")
    total: int = Field(description="Number of matching photos. At most 20 pages can be read.")
    has_more: bool = Field(description="Whether there is a next page.")


@operation(
    tool=True,
    rest="GET /api/card-images/search",
    scope=None,
    title="Search stock photos",
    open_world=True,
    limit=HEAVY,
    example={"query": "bread", "page": 2, "size": 2},
)
def search_card_images(ctx: Context, args: CardImageQuery) -> PhotoList:
    """Search free stock photos for cards. Send a photo's url as an image's url.

    Show its attribution, as licences require.
    """
    photo_page = photos.search(
        ctx.workspace_id,
        query=args.query,
        page=args.page,
        size=args.size,
        orientation=args.orientation,
    )
    return PhotoList(
        images=[PhotoOut.model_validate(photo) for photo in photo_page.photos],
        page=photo_page.page,
        size=photo_page.size,
        **args.counted(photo_page.total),
        has_more=photo_page.has_more,
    )
