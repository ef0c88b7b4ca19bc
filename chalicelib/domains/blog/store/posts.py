"""Store the posts of the platform's blog, with the Markdown in separate rows."""

from collections.abc import Iterator, Sequence
from typing import Any

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.core.errors import ConcurrentUpdateError, call
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.files.store.files import ImageMap
from chalicelib.engine.claims import name_hash
from chalicelib.engine.file_uses import ShownFiles
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import SORT_KEY, Lookup
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.tables import ContentRow, Record
from chalicelib.engine.unit import UnitOfWork, split_batches

DRAFT = "draft"
PUBLISHED = "published"
READ_BATCH = 100
"""DynamoDB returns at most this many items for one BatchGetItem request."""


class PostRow(Record):
    """A post.

    ``account_id`` is the account that created it. ``published_at`` is the time of first
    publication. ``former_slugs`` are the slugs that the post had while it was published.
    ``excerpt`` and ``minutes`` are computed from the text, which was written at revision
    ``content_revision``; only ``read`` loads the text. ``cover`` is the platform's copy of the
    cover. ``cover_link`` is the URL of a cover that could not be copied.
    """

    title = UnicodeAttribute()
    slug = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    tags: ListAttribute[Any] = ListAttribute(default=list)
    category = UnicodeAttribute(null=True)
    author = UnicodeAttribute(null=True)
    status = UnicodeAttribute()
    cover = ImageMap(null=True)  # type: ignore[no-untyped-call]  # PynamoDB's __init__
    cover_link = UnicodeAttribute(null=True)
    account_id = UnicodeAttribute()
    published_at = UTCDateTimeAttribute(null=True)
    former_slugs: ListAttribute[Any] = ListAttribute(default=list)
    excerpt = UnicodeAttribute(null=True)
    minutes = NumberAttribute(default=1)
    content_revision = NumberAttribute()

    @property
    def cover_url(self) -> str | None:
        """URL of the platform's copy of the cover, or else of the original."""
        return self.cover.url if self.cover else self.cover_link


POSTS = register_listing(
    Listing(
        row=PostRow,
        noun="POST",
        listed_by="svc_list_blog_posts",
        not_found_message=(
            f"No post has this id or slug. List the posts ({call('svc_list_blog_posts')}) to "
            "find valid ids and slugs."
        ),
        text=lambda post: (post.title,),
        status="status",
        tags=("tags",),
        numbers=("published_at",),
        sorts={"createdAt": "id", "publishedAt": "n1"},
        indexes=(SortIndex("publishedAt", partition_by="status"),),
        lookups=(Lookup("slug", lambda post: post.slug, unique=True),),
        files=ShownFiles(lambda post: [post.cover.file_id] if post.cover else ()),
    )
)


class ContentTextRow(ContentRow):
    """Markdown of a post, and the revision of the post that it was written with."""

    content = UnicodeAttribute()
    revision = NumberAttribute()


class FormerSlugRow(ContentRow):
    """Redirect from a former slug of a published post, until another post claims the slug."""

    target = UnicodeAttribute()


def _text_key(post_id: str) -> Key:
    return Key(ContentTextRow, f"W#{PLATFORM}#POST#CONTENT", post_id)


def _redirect_key(slug: str) -> Key:
    return Key(FormerSlugRow, f"W#{PLATFORM}#POST#FORMER#{name_hash(slug)}", SORT_KEY)


def set_content(unit: UnitOfWork, post: PostRow, content: str) -> None:
    """Set the content of a post. The caller stages the creation or update of the post."""
    # The number is the revision after the commit, by which ``read`` notices a torn read.
    post.content_revision = int(post.version or 0) + 1
    key = _text_key(post.id)
    unit.save(ContentTextRow(key.pk, key.sk, content=content, revision=int(post.content_revision)))


def read(post_id: str) -> tuple[PostRow, str] | None:
    """Return a post with its Markdown, in one round trip, or None.

    Raises:
        ConcurrentUpdateError: a change of the post happened between the reads of its two rows.
    """
    rows = {
        type(row): row
        for row in fetch([POSTS.key(PLATFORM, record_id=post_id), _text_key(post_id)])
    }
    post, text = rows.get(PostRow), rows.get(ContentTextRow)
    if not isinstance(post, PostRow):
        return None
    # The two rows are read in one request, but BatchGetItem is not a snapshot.
    if not isinstance(text, ContentTextRow) or text.revision != post.content_revision:
        raise ConcurrentUpdateError
    return post, str(text.content)


def find_id(slug: str) -> str | None:
    """Return the id of the post with a slug, or None."""
    return POSTS.find_unique(PLATFORM, lookup="slug", values=[slug]).get(slug)


def find_former(slug: str) -> PostRow | None:
    """Return the post that had a slug while it was published, or None if no such post exists."""
    rows = fetch([_redirect_key(slug)])
    target_id = next((row.target for row in rows if isinstance(row, FormerSlugRow)), None)
    return POSTS.find(PLATFORM, record_id=target_id) if target_id else None


def claim_slug(unit: UnitOfWork, slug: str) -> None:
    """Stage the removal of a redirect from a slug that a post now has."""
    key = _redirect_key(slug)
    unit.delete(FormerSlugRow(key.pk, key.sk))


def keep_former_slug(unit: UnitOfWork, post: PostRow, slug: str, max_slugs: int) -> None:
    """Stage a redirect from a post's former slug. Beyond ``max_slugs``, the oldest is removed."""
    former = [
        *(former_slug for former_slug in post.former_slugs if former_slug not in {slug, post.slug}),
        slug,
    ]
    _delete_redirects(unit, post, former[:-max_slugs])
    post.former_slugs = former[-max_slugs:]
    key = _redirect_key(slug)
    unit.save(FormerSlugRow(key.pk, key.sk, target=post.id))


def delete(unit: UnitOfWork, post: PostRow) -> None:
    """Stage the deletion of a post with its text and redirects."""
    unit.delete(post)
    key = _text_key(post.id)
    unit.delete(ContentTextRow(key.pk, key.sk))
    _delete_redirects(unit, post, post.former_slugs)


def _delete_redirects(unit: UnitOfWork, post: PostRow, slugs: Sequence[str]) -> None:
    """Stage the removal of redirects from slugs, unless they lead to another post by now."""
    rows = fetch(map(_redirect_key, slugs)) if slugs else []
    for row in rows:
        if isinstance(row, FormerSlugRow) and row.target == post.id:
            unit.delete(row)


def every_published() -> Iterator[PostRow]:
    """Yield the published posts, latest first."""
    entries = POSTS.entries(PLATFORM, status=PUBLISHED)
    latest_first = sorted(entries, key=lambda entry: (entry.numbers[0], entry.id), reverse=True)
    for batch in split_batches((entry.id for entry in latest_first), READ_BATCH):
        yield from POSTS.fetch(PLATFORM, batch)
