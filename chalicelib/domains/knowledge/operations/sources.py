"""Add, list and delete the sources of a bot's knowledge."""

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core.errors import ConflictError, FieldError, PayloadTooLargeError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.lists import ListResult, WholeListQuery
from chalicelib.core.wire.message_detail import MessageDetail
from chalicelib.core.wire.schema import (
    DeletedResult,
    Id,
    SearchText,
    Timestamp,
    Title,
    Wire,
    exactly_one,
    optional,
)
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.files.store.files import FILES
from chalicelib.domains.knowledge.flows import source_texts
from chalicelib.domains.knowledge.rules import passages, quotas
from chalicelib.domains.knowledge.rules.parsing import MAX_BYTES, PARSED_TYPES
from chalicelib.domains.knowledge.store import sources
from chalicelib.domains.knowledge.store.sources import SOURCES, SourceRow, stage_fetch
from chalicelib.engine import locks
from chalicelib.engine.listing.query import Query
from chalicelib.lib import public_urls

MAX_TEXT_BYTES = 200 * 1024  # of a sent source in UTF-8


MAX_FILES_LISTED = 100  # A search finds the other files.


def _public_url(url: str) -> str:
    try:
        parsed = public_urls.parse(url, allow_http=True)
    except ValueError as error:
        raise PydanticCustomError("public_url", "{reason}", {"reason": str(error)}) from None
    if parsed.is_private_address:
        raise PydanticCustomError("public_url", "expected a URL on the public internet")
    return str(parsed)


SourceText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_BYTES)]
SourceUrl = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=public_urls.MAX_LENGTH),
    AfterValidator(_public_url),
]


class KnowledgeAdd(Wire):
    """A new source of a bot's knowledge."""

    EXACTLY_ONE_OF = (("text", "url", "file_id"),)

    id: Id = Field(description="Bot id.")
    title: Title = Field(description="Title, which the search also reads.")
    text: SourceText | None = optional("Up to 200 KB; or give url or fileId.")
    url: SourceUrl | None = optional("Public URL of a page, a text or a PDF; read once a day.")
    file_id: Id | None = optional("File of the workspace: txt, md, html, csv or pdf, up to 10 MB.")

    @model_validator(mode="after")
    def _one_kind(self) -> "KnowledgeAdd":
        exactly_one(self)
        return self


class KnowledgeRef(Wire):
    """Ids of a bot and of one of its sources."""

    id: Id = Field(description="Bot id.")
    source_id: Id = Field(description="Source id.")


class BotRef(Wire):
    """Bot whose sources to list."""

    id: Id = Field(description="Bot id.")


class SourceOut(Wire):
    """A source of a bot's knowledge."""

    id: Id = Field(description="Source id.")
    title: str = Field(description="Title of the source.")
    kind: str = Field(description="text, url or file.")
    status: str = Field(
        description="pending: not read yet. ready: the bot answers from it within two minutes. "
        "failed: see error."
    )
    chars: int = Field(description="Characters of text that the bot answers from.")
    updated_at: Timestamp = Field(description="When it was last read or changed.")
    error: str | None = Field(description="What went wrong when it was last read, or null.")
    error_details: list[MessageDetail] | None = Field(
        description="The sentences of `error` with their codes and facts, or null."
    )


class SourceResult(Wire):
    """One source."""

    source: SourceOut = Field(description="The source.")


class SourceListQuery(WholeListQuery, BotRef):
    """Bot whose sources to list, page and order."""


class SourceList(ListResult):
    """All sources of a bot."""

    sources: list[SourceOut] = Field(description="The sources, oldest first.")


class ReadableFilesQuery(Wire):
    """Search of files that a bot can read."""

    q: SearchText | None = optional("Part of the name.")


class ReadableFile(Wire):
    """A file that a bot can read."""

    id: Id = Field(description="File id.")
    name: str = Field(description="File name.")
    size: int = Field(description="Size in bytes.")


class ReadableFiles(Wire):
    """Files that a bot can read."""

    files: list[ReadableFile] = Field(description="The files, newest first.")
    has_more: bool = Field(description="Whether older files were left out. Search for them.")
    total: int = Field(description="Files that match, of any type.")


@operation(
    rest="POST /api/agents/{id}/knowledge",
    scope=Scope.AGENTS_WRITE,
    role=Role.MANAGER,
    title="Add a source to a bot's knowledge",
    example={
        "id": "AGENT_ID",
        "title": "Delivery",
        "text": "We deliver bread on weekdays from 9 to 18.",
    },
    errors=(ConflictError,),
)
def add_knowledge(ctx: Context, args: KnowledgeAdd) -> SourceResult:
    """Add a text, a web page or a file that a bot answers from; exactly one of them.

    A text is ready at once. A page or a file is pending until a job has read it. The bot finds what
    is ready within two minutes. A bot has up to 100 sources with 3 MB of text.
    """
    lock = locks.lock_row(ctx.workspace_id, what=sources.lock_name(args.id))
    agent = AGENTS.require(ctx.workspace_id, record_id=args.id)
    there = sources.read_all(ctx.workspace_id, agent_id=agent.id)
    if len(there) >= quotas.MAX_SOURCES:
        msg = f"The bot has {len(there)} sources, which is the maximum. Delete a source first."
        raise ConflictError(msg, key="too_many_sources", details={"maximum": quotas.MAX_SOURCES})
    source = SourceRow(
        SOURCES.partition(ctx.workspace_id),
        ctx.unit.run_side_effect_once("source id", new_id),
        agent_id=agent.id,
        title=args.title,
        status=sources.PENDING,
    )
    if args.text is not None:
        _stage_text(ctx, source, args.text, quotas.used(there))
    elif args.url is not None:
        source.kind, source.url = sources.URL, args.url
        stage_fetch(ctx.unit, source)
    else:
        source.kind, source.file_id = sources.FILE, _readable_file(ctx, str(args.file_id))
        stage_fetch(ctx.unit, source)
    ctx.unit.save(lock)
    ctx.unit.create(source)
    return SourceResult(source=SourceOut.from_row(source.values))


def _stage_text(ctx: Context, source: SourceRow, text: str, used: int) -> None:
    size = len(text.encode(errors="replace"))
    if size > MAX_TEXT_BYTES:
        message = f"expected at most {MAX_TEXT_BYTES:,} bytes of UTF-8, received {size:,}"
        msg = f"text: {message}"
        raise PayloadTooLargeError(
            msg, errors=[FieldError("text", message, "too_large")], key="field"
        )
    full_text = passages.normal_form(text)
    if not full_text:
        raise ValidationError.of(
            "text", message="expected a text, received only white space", key="blank"
        )
    if too_much := quotas.problem(used, full_text):
        msg = f"{too_much.message} Delete a source first."
        raise ConflictError(msg, key="too_much_text")
    source.kind, source.status = sources.TEXT, sources.READY
    source_texts.store_in_unit(ctx.unit, source, full_text)


def _readable_file(ctx: Context, file_id: str) -> str:
    file = FILES.require(ctx.workspace_id, record_id=file_id)
    if file.mime_type not in PARSED_TYPES:
        message = f"expected a txt, md, html, csv or pdf file, received {file.mime_type}"
        raise ValidationError.of("fileId", message=message, key="unreadable_type")
    if file.bytes > MAX_BYTES:
        message = f"expected a file of at most {MAX_BYTES:,} bytes, received {file.bytes:,}"
        raise ValidationError.of("fileId", message=message, key="too_large")
    return str(file.id)


@operation(
    rest="GET /api/agents/{id}/knowledge",
    scope=Scope.AGENTS_READ,
    role=Role.MANAGER,
    title="List a bot's knowledge",
    example={"id": "AGENT_ID"},
)
def list_knowledge(ctx: Context, args: SourceListQuery) -> SourceList:
    """List all sources of a bot's knowledge with their states, oldest first."""
    agent = AGENTS.require(ctx.workspace_id, record_id=args.id)
    bot_sources = sources.read_all(ctx.workspace_id, agent_id=agent.id)
    page, total = SOURCES.select(bot_sources, args)
    shown = [SourceOut.from_row(source.values) for source in page]
    return SourceList(sources=shown, **args.counted(total))


@operation(
    rest="DELETE /api/agents/{id}/knowledge/{sourceId}",
    scope=Scope.AGENTS_WRITE,
    role=Role.MANAGER,
    title="Delete a source of a bot's knowledge",
    example={"id": "AGENT_ID", "sourceId": "SOURCE_ID"},
)
def delete_knowledge(ctx: Context, args: KnowledgeRef) -> DeletedResult:
    """Delete a source. The bot no longer answers from it, from the next question on.

    The file of a source stays in the workspace.
    """
    source = SOURCES.require(ctx.workspace_id, record_id=args.source_id)
    if source.agent_id != args.id:
        raise SOURCES.not_found()
    ctx.unit.delete(source)
    if source.text_key:
        ctx.unit.create_job(source_texts.removal_job(ctx.workspace_id, source))
    return DeletedResult(id=source.id, deleted=True)


@operation(role=Role.MANAGER, title="List files that a bot can read", example={"q": "price"})
def list_readable_files(ctx: Context, args: ReadableFilesQuery) -> ReadableFiles:
    """List the files of all folders that can be a source, among the 100 newest that match q."""
    query = Query(
        page=1,
        size=MAX_FILES_LISTED,
        sort="createdAt",
        descending=True,
        search=args.q,
        charge=ctx.charge,
    )
    page = FILES.page(ctx.workspace_id, query)
    readable = [
        ReadableFile(id=file.id, name=file.name, size=int(file.bytes))
        for file in page.records
        if file.mime_type in PARSED_TYPES and file.bytes <= MAX_BYTES
    ]
    return ReadableFiles(files=readable, has_more=page.total > len(page.records), total=page.total)
