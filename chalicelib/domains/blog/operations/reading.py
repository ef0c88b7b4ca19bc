"""Published posts, as readers see them."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, NamedTuple, Self

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.errors import ForbiddenError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, ServedAs, operation
from chalicelib.core.principals import PLATFORM
from chalicelib.core.wire.lists import ListResult, SortedListQuery
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.blog.operations.posts import url_of
from chalicelib.domains.blog.store import posts
from chalicelib.domains.blog.store.posts import POSTS, PUBLISHED, PostRow
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.rules import images
from chalicelib.domains.files.store.files import FILES
from chalicelib.engine.listing.query import ResultPage

LIST_LIMIT = Limit(
    "blog", "reads per minute of the blog's list", 120, timedelta(minutes=1), fails_open=True
)
"""Rate limit for one visitor."""


class PublishedPost(Wire):
    """A published post without its text."""

    title: str = Field(description="Title.")
    slug: str = Field(description="Part of its URL.")
    url: str = Field(description="URL of its page.")
    description: str | None = Field(
        description="Meta description, else the start of the text, or null."
    )
    tags: list[str] = Field(description="Tags.")
    category: str | None = Field(description="Category, or null.")
    author: str | None = Field(description="Author's name, or null.")
    cover_image: str | None = Field(description="URL of the cover, or null.")
    published_at: Timestamp = Field(description="When it was published.")
    minutes: int = Field(description="Reading time in minutes.")
    updated_at: Timestamp = Field(description="When it was last changed.")
    id: Id = Field(description="Post id, which stays the same when the slug changes.")

    @classmethod
    def from_record(cls, post: PostRow) -> Self:
        """Return the wire form of a stored post."""
        return cls.from_row(
            post.values,
            url=url_of(post),
            description=post.description or post.excerpt,
            cover_image=post.cover_url,
        )


class PublishedListQuery(SortedListQuery):
    """Filters for listing published posts."""

    size: int = Field(default=20, ge=1, le=50, description="Posts per page.")
    tag: Annotated[str, StringConstraints(max_length=50)] | None = optional("With this tag.")


class PublishedList(ListResult):
    """One page of published posts."""

    posts: list[PublishedPost] = Field(description="The posts of this page, without their text.")


class Moved(NamedTuple):
    """New location of a post whose slug has changed."""

    slug: str


class Thumbnail(NamedTuple):
    """Small version of a cover, whose width is in pixels."""

    url: str
    width: int


@operation(
    rest="GET /api/blog/list",
    title="List published blog posts",
    audience=PUBLIC,
    limit=LIST_LIMIT,
    platform=True,
    served_as=ServedAs.WITHOUT_KEY,
    example={"size": 5},
    errors=(ForbiddenError,),
)
def list_published_posts(ctx: Context, args: PublishedListQuery) -> PublishedList:
    """List the published posts of the platform's blog for readers, latest first."""
    page = _published(args)
    return PublishedList(
        posts=[PublishedPost.from_record(post) for post in page.records],
        **args.counted(page.total),
    )


def published(page: int, *, size: int, tag: str | None = None) -> ResultPage[PostRow]:
    """Return one page of the published posts, latest first. ``tag`` selects posts that have it."""
    return _published(PublishedListQuery.model_construct(page=page, size=size, tag=tag))


def _published(args: PublishedListQuery) -> ResultPage[PostRow]:
    filters = {"status": PUBLISHED, "tags": args.tag}
    query = POSTS.query(args, sort="publishedAt", descending=True, filters=filters)
    return POSTS.page(PLATFORM, query)


def thumbnails(rows: Iterable[PostRow]) -> dict[str, Thumbnail]:
    """Return the small versions of the posts' covers, by post id."""
    post_ids = {row.cover.file_id: row.id for row in rows if row.cover}
    files = FILES.fetch(PLATFORM, post_ids) if post_ids else []
    return {
        post_ids[file.id]: Thumbnail(
            rehosting.public_url(file.thumbnail_key),
            round(images.THUMBNAIL_SIDE * min(1, file.width / file.height)),
        )
        for file in files
        if file.thumbnail_key and file.width and file.height
    }


def find(slug: str) -> tuple[PostRow, str] | Moved | None:
    """Return a published post with its Markdown, its new location if the slug changed, or None."""
    post_id = posts.find_id(slug)
    if post_id is None:
        current_post = posts.find_former(slug)
        return (
            Moved(current_post.slug) if current_post and current_post.status == PUBLISHED else None
        )
    post = posts.read(post_id)
    return post if post and post[0].status == PUBLISHED else None
