"""Let ADMIN accounts read and change all posts, including drafts."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application import new_slugs
from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import NotFoundError, SlugTakenError
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.core.text import collapse_spaces
from chalicelib.core.wire.lists import ListResult, SortedListQuery
from chalicelib.core.wire.schema import (
    RECEIVED,
    DeletedResult,
    Id,
    Patch,
    Slug,
    Timestamp,
    Wire,
    optional,
    printable,
)
from chalicelib.domains.blog.operations import covers
from chalicelib.domains.blog.store import posts
from chalicelib.domains.blog.store.posts import POSTS, PUBLISHED, PostRow
from chalicelib.lib import slugs
from chalicelib.lib.contact_fields import PersonName, Tags
from chalicelib.lib.markup import markdown

MAX_CONTENT_BYTES = 200 * 1024
"""Size limit of a post's Markdown, in UTF-8. A DynamoDB item holds at most 400 KB."""
MAX_FORMER_SLUGS = 50
EXCERPT = 240
"""Characters of the text's beginning that lists show if a post has no description."""
RESERVED = frozenset({"list"})
"""Slugs that no post may have. ``GET /api/blog/list`` would hide a post with this slug."""


def _check_size(text: str) -> str:
    if (size := len(text.encode(errors="surrogatepass"))) > MAX_CONTENT_BYTES:
        message = f"expected at most {MAX_CONTENT_BYTES:,} bytes of UTF-8, received {size:,}"
        raise PydanticCustomError("too_large", "{message}", {"message": message, RECEIVED: True})
    return text


def _check_reserved(slug: str) -> str:
    if slug in RESERVED:
        raise PydanticCustomError(
            "reserved", "expected a slug that is not reserved", {"advice": "choose another slug"}
        )
    return slug


PostTitle = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=300),
    AfterValidator(printable),
]
PostSlug = Annotated[Slug, AfterValidator(_check_reserved)]
MetaDescription = Annotated[
    str,
    StringConstraints(max_length=500),
    AfterValidator(collapse_spaces),
    AfterValidator(printable),
]
Content = Annotated[
    str, StringConstraints(max_length=MAX_CONTENT_BYTES), AfterValidator(_check_size)
]
Category = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100),
    AfterValidator(printable),
]
CoverUrl = Annotated[str, StringConstraints(max_length=2048)]
Status = Literal["draft", "published"]


class PostRef(Wire):
    """Reference to a post."""

    id: Id = Field(description="Post id.")


class PostSummary(PostRef):
    """A post without its text."""

    title: str = Field(description="Title.")
    slug: str = Field(description="Part of its URL.")
    description: str | None = Field(description="Meta description, or null.")
    tags: list[str] = Field(description="Tags.")
    category: str | None = Field(description="Category, or null.")
    author: str | None = Field(description="Author's name, or null.")
    status: str = Field(description="draft or published.")
    cover_image: str | None = Field(description="URL of the cover, or null.")
    created_at: Timestamp = Field(description="When it was created.")
    updated_at: Timestamp = Field(description="When it was last changed.")
    published_at: Timestamp | None = Field(description="When it was first published, or null.")
    url: str = Field(description="URL for readers, once the post is published.")

    @classmethod
    def from_record(cls, post: PostRow, **derived: Any) -> Self:  # noqa: ANN401  fields of any type
        """Return the wire form of a stored post."""
        return cls.from_row(post.values, cover_image=post.cover_url, url=url_of(post), **derived)


class PostOut(PostSummary):
    """A post."""

    content: str = Field(description="Content in Markdown.")


class PostResult(Wire):
    """One post without its text."""

    post: PostSummary = Field(description="The post. Only svc_get_blog_post returns its text.")


class FullPostResult(Wire):
    """One post."""

    post: PostOut = Field(description="The post.")


class PostListQuery(SortedListQuery):
    """Filters for listing posts."""

    size: int = Field(default=20, ge=1, le=100, description="Posts per page.")
    status: Literal["draft", "published", "all"] = Field(default="all", description="Status.")


class PostList(ListResult):
    """One page of posts."""

    posts: list[PostSummary] = Field(description="The posts of this page, without their text.")


class PostSlugRef(Wire):
    """Reference to a post by its slug."""

    slug: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(
        description="Slug of the post."
    )


class PostCreate(Wire):
    """A new post."""

    title: PostTitle = Field(description="Title.")
    slug: PostSlug | None = optional("Made from the title if omitted.")
    description: MetaDescription | None = optional("Meta description.")
    content: Content | None = optional("Markdown without HTML.")
    tags: Tags | None = optional("Tags.")
    category: Category | None = optional("Category.")
    author: PersonName | None = optional("Author.")
    status: Status = Field(default="draft", description="draft: visible to nobody.")
    cover_image: CoverUrl | None = optional("https URL; copied.")


class PostPatch(Patch, PostCreate, PostRef):
    """Changes to a post."""

    slug: PostSlug = optional("Old URLs redirect.")
    content: Content = optional("Markdown without HTML.")
    tags: Tags = optional("Replaces all.")
    status: Status = optional("draft hides it.")
    cover_image: CoverUrl | None = optional("https URL.")


class PostDelete(PostRef):
    """Arguments of a post's deletion."""

    dry_run: bool = Field(default=False, description="Only report.")


def url_of(post: PostRow) -> str:
    """Return the URL at which readers find a post."""
    return f"{settings().public_url}/blog/{post.slug}"


@operation(
    tool=True,
    rest="GET /api/admin/blog/list",
    scope=Scope.BLOG_READ,
    platform=True,
    example={"status": "draft", "size": 5},
    role=Role.ACCOUNT,
)
def list_blog_posts(ctx: Context, args: PostListQuery) -> PostList:
    """List the blog's posts, drafts included, newest first."""
    page = POSTS.page(ctx.workspace_id, POSTS.query(args))
    return PostList(
        posts=[PostSummary.from_record(post) for post in page.records],
        **args.counted(page.total),
    )


@operation(
    tool=True,
    rest="GET /api/blog/{slug}",
    scope=Scope.BLOG_READ,
    platform=True,
    example={"slug": "POST_SLUG"},
    role=Role.ACCOUNT,
)
def get_blog_post(ctx: Context, args: PostSlugRef) -> FullPostResult:
    """Return a post with its Markdown by slug, drafts included."""
    post_id = posts.find_id(args.slug)
    post_row = posts.read(post_id) if post_id else None
    if post_row is None and (current_post := posts.find_former(args.slug)):
        msg = f'The slug of this post has changed to "{current_post.slug}". Use the new slug.'
        raise NotFoundError(msg, key="post_moved")
    post, content = POSTS.found(post_row)
    return FullPostResult(post=PostOut.from_record(post, content=content))


@operation(
    tool=True,
    rest="POST /api/admin/blog/create",
    scope=Scope.BLOG_WRITE,
    open_world=True,
    limit=HEAVY.weighed(lambda args: covers.weight(args.cover_image)),
    platform=True,
    example={"title": "News", "content": "# Fresh bread", "tags": ["news"]},
    errors=(SlugTakenError,),
    role=Role.ACCOUNT,
)
def create_blog_post(ctx: Context, args: PostCreate) -> PostResult:
    """Create a post. If its cover cannot be imported, the result has a warning."""
    slug = args.slug
    if slug is None:
        options = list(slugs.candidates(slugs.slugify(args.title, fallback="post")))
        taken_slugs = POSTS.find_unique(ctx.workspace_id, lookup="slug", values=options)
        slug = new_slugs.choose(ctx, options, taken_slugs, reserved=RESERVED)
    values = args.provided("slug", "content", "cover_image")
    if args.cover_image is not None:
        values["cover"], values["cover_link"] = covers.import_cover(ctx, args.cover_image)
    post = POSTS.new(
        ctx.workspace_id,
        **{name: value for name, value in values.items() if value is not None}
        | {"slug": slug, "status": args.status, "account_id": ctx.principal.account_id},
    )
    _set_content(ctx, post, args.content or "")
    _set_published_at(post)
    posts.claim_slug(ctx.unit, slug)
    ctx.unit.create(post, claim_errors={"slug": _slug_taken_error(slug)} if args.slug else {})
    return PostResult(post=PostSummary.from_record(post))


@operation(
    tool=True,
    rest="PUT /api/admin/blog/{id}",
    scope=Scope.BLOG_WRITE,
    idempotent=True,
    open_world=True,
    limit=HEAVY.weighed(lambda args: covers.weight(args.cover_image)),
    platform=True,
    example={"id": "POST_ID", "title": "How we bake rye", "status": "published"},
    errors=(SlugTakenError,),
    role=Role.ACCOUNT,
)
def update_blog_post(ctx: Context, args: PostPatch) -> PostResult:
    """Change a post. Omitted fields stay unchanged."""
    post = POSTS.require(ctx.workspace_id, record_id=args.id)
    changes = args.changes
    former = post.slug
    if "cover_image" in changes:
        _change_cover(ctx, post, changes.pop("cover_image"))
    if "content" in changes:
        _set_content(ctx, post, changes.pop("content"))
    for name, value in changes.items():
        setattr(post, name, value)
    if post.slug != former:
        posts.claim_slug(ctx.unit, post.slug)
        if post.published_at is not None:
            posts.keep_former_slug(ctx.unit, post, former, MAX_FORMER_SLUGS)
    _set_published_at(post)
    ctx.unit.save(post, claim_errors={"slug": _slug_taken_error(post.slug)})
    return PostResult(post=PostSummary.from_record(post))


@operation(
    tool=True,
    rest="DELETE /api/admin/blog/{id}",
    scope=Scope.BLOG_WRITE,
    platform=True,
    example={"id": "POST_ID"},
    role=Role.ACCOUNT,
)
def delete_blog_post(ctx: Context, args: PostDelete) -> DeletedResult:
    """Delete a blog post permanently, with its cover."""
    post = POSTS.require(ctx.workspace_id, record_id=args.id)
    posts.delete(ctx.unit, post)
    covers.drop_cover(ctx.unit, post)
    return DeletedResult(id=args.id, deleted=not args.dry_run)


def _slug_taken_error(slug: str) -> SlugTakenError:
    return SlugTakenError(f'Another post has the slug "{slug}". Choose another slug.')


def _set_content(ctx: Context, post: PostRow, content: str) -> None:
    posts.set_content(ctx.unit, post, content)
    derived: Mapping[str, Any] = ctx.unit.run_side_effect_once(
        "words",
        lambda: {
            "excerpt": markdown.summary(markdown.to_text(content), EXCERPT) or None,
            "minutes": markdown.reading_minutes(content),
        },
    )
    post.excerpt, post.minutes = derived["excerpt"], derived["minutes"]


def _change_cover(ctx: Context, post: PostRow, url: str | None) -> None:
    if post.cover is not None and url == post.cover.url:
        return
    cover, link = covers.import_cover(ctx, url) if url is not None else (None, None)
    if url is not None and cover is None and link is None:
        ctx.warn("The post keeps its current cover.", code=WarningCode.COVER_KEPT, url=url)
        return
    covers.drop_cover(ctx.unit, post)
    post.cover, post.cover_link = cover, link


def _set_published_at(post: PostRow) -> None:
    # Publishing the post again does not change the time.
    if post.status == PUBLISHED and post.published_at is None:
        post.published_at = clock.now()
