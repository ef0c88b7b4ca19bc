"""Import products, services and clients from a file, and read how far an import is."""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import Field, StringConstraints

from chalicelib.application.batches import MAX_ITEMS
from chalicelib.application.context import Context
from chalicelib.application.upserts import CREATED, UNCHANGED, UPDATED
from chalicelib.core import clock, deadline
from chalicelib.core.errors import InsufficientScopeError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.principals import ApiKeyPrincipal, Principal, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES, FileRow, UploadRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.imports.flows import rows_store
from chalicelib.domains.imports.flows.calls import PreviewCalls
from chalicelib.domains.imports.flows.reading import read_table
from chalicelib.domains.imports.flows.sending import REFUSED, Outcome, sender_of
from chalicelib.domains.imports.rules.job_kinds import IMPORT, IMPORT_EXPIRED
from chalicelib.domains.imports.rules.nouns import CLIENTS, PRODUCTS, SERVICES, Noun
from chalicelib.domains.imports.rules.reasons import Form, Reason
from chalicelib.domains.imports.rules.tables import client_table, product_table, service_table
from chalicelib.domains.imports.rules.tables.client_table import ClientField
from chalicelib.domains.imports.rules.tables.product_table import ProductField
from chalicelib.domains.imports.rules.tables.rows import Table
from chalicelib.domains.imports.rules.tables.service_table import ServiceField
from chalicelib.domains.imports.rules.tables.table_errors import TableError
from chalicelib.domains.imports.store.imports import (
    IMPORTS,
    KEPT_FOR,
    RUNNING,
    ImportRow,
    ImportState,
)
from chalicelib.engine import jobs
from chalicelib.engine.unit import split_batches
from chalicelib.gateways.object_store import object_store
from chalicelib.lib.localized import Language

PREVIEW_ROWS = 10
PREVIEW_SECONDS = 10.0
"""The time in which a preview looks up what the rows would change."""
URL_SECONDS = 900
WRITE_SCOPES: Mapping[Noun, Scope] = {
    "products": Scope.PRODUCTS_WRITE,
    "services": Scope.SERVICES_WRITE,
    "clients": Scope.CRM_WRITE,
}
FIELDS: Mapping[Noun, tuple[str, ...]] = {
    "products": product_table.FIELDS,
    "services": service_table.FIELDS,
    "clients": client_table.FIELDS,
}
F = TypeVar("F", bound=str)
ColumnName = Annotated[str, StringConstraints(max_length=2000)]


class ImportStart(Wire, Generic[F]):
    """A file whose records are imported, into fields of one noun."""

    file_id: Id = Field(
        description="Id of the file: CSV, XLSX, ODS or XLS; or of an upload whose bytes were sent, "
        "which needs no completion. An upload has no public URL, and is deleted when the import "
        "starts."
    )
    columns: Annotated[dict[ColumnName, F | None], Field(max_length=2000)] = Field(
        default_factory=dict,
        description="Field of a column, by its name in columns of the result; null: not read. "
        "Other columns are read by their headers.",
    )
    delete_file: bool = Field(
        default=False, description="Delete the file when all rows are imported."
    )
    dry_run: bool = Field(default=False, description="Only report what would happen.")
    language: Language | None = optional(
        "Language of the sentences in the result. Without it they are in English, for programs."
    )


class ProductsImport(ImportStart[ProductField]):
    """A file whose products are imported."""


class ServicesImport(ImportStart[ServiceField]):
    """A file whose services are imported."""


class ClientsImport(ImportStart[ClientField]):
    """A file whose clients are imported."""


class ImportColumn(Wire):
    """A column of the file."""

    name: str = Field(description="Header, which no other column of the result has.")
    field: str | None = Field(
        description="Field that it fills, recognized if the rules of the program read it in "
        "another way, or null if it is not read."
    )
    samples: list[str] = Field(description="First values.")


class ImportPreviewRow(Wire):
    """A row of the file, and what the import makes of it."""

    row: int = Field(description="Number of the row in the file; the header is 1.")
    outcome: Literal["created", "updated", "unchanged", "refused"] = Field(
        description="What would happen."
    )
    reason: str | None = Field(description="Why it is refused, or null.")
    reason_code: str | None = Field(description="Code of the reason, or null. Stable.")
    values: dict[str, Any] = Field(description="Values of the record by field.")
    warnings: list[str] = Field(description="Values that are left out or read differently.")


class ImportCounts(Wire):
    """Rows by outcome."""

    created: int = Field(description="Rows that create a record.")
    updated: int = Field(description="Rows that change a record.")
    unchanged: int = Field(description="Rows whose values are stored already.")
    refused: int = Field(description="Rows that are left out, with a reason.")


class ImportPreview(Wire):
    """What an import would do."""

    program: str | None = Field(description="Program whose table it is, or null.")
    problem: str | None = Field(
        description="What to choose in columns before any row can be read, or null."
    )
    rows: int = Field(description="Rows of the file, or products of several rows.")
    checked: int = Field(
        description="Rows that the counts are about, from the first; a long table is not checked "
        "to its end."
    )
    counts: ImportCounts = Field(description="What would happen to the checked rows.")
    columns: list[ImportColumn] = Field(description="Columns of the file.")
    fields: list[str] = Field(description="Fields that a column can fill.")
    not_read: list[str] = Field(description="Columns that are not read.")
    partly_read: dict[str, int] = Field(
        description="Columns that are not read in some rows, with the number of these rows."
    )
    notes: list[str] = Field(description="Sentences about the whole table.")
    preview: list[ImportPreviewRow] = Field(description="The first ten rows.")


class ImportStarted(Wire):
    """An import that is running, or with dryRun what it would do."""

    import_id: Id | None = Field(description="Id of the import, or null with dryRun.")
    state: ImportState | None = Field(description="running, or null with dryRun.")
    preview: ImportPreview | None = Field(description="What would happen, or null without dryRun.")


class ImportRef(Wire):
    """Id of an import."""

    id: Id = Field(description="Id of the import.")


class ImportGet(ImportRef):
    """Id of an import, and how its refused rows are explained."""

    language: Language | None = optional(
        "Language of the reasons behind refusedUrl. Without it they are in English, with codes."
    )


class ImportOut(ImportRef):
    """An import."""

    kind: Literal["products", "services", "clients"] = Field(description="What is imported.")
    state: ImportState = Field(
        description="running, finished: all rows were sent, or failed: it was given up."
    )
    file_name: str = Field(description="Name of the file.")
    rows: int = Field(description="Rows of the file, or products of several rows.")
    done: int = Field(description="Rows that were sent so far.")
    counts: ImportCounts = Field(description="What happened to these.")
    warned: int = Field(
        description="Rows of which a value was left out or read differently. The preview has them."
    )
    refused_url: str | None = Field(
        description="URL of a CSV of the refused rows with the reasons, once the import has ended, "
        "or null. It is valid for 15 minutes; each call returns a new one."
    )
    created_at: Timestamp = Field(description="When it was started.")
    ended_at: Timestamp | None = Field(description="When it ended, or null.")
    expires_at: Timestamp = Field(description="When it is deleted, with the refused rows.")

    @classmethod
    def from_record(cls, record: ImportRow, form: Form = None) -> Self:
        has_report = record.state != RUNNING and bool(record.refused_at)
        key = record.report_key(form)
        url = object_store().download_url(key, URL_SECONDS) if has_report else None
        return cls.from_row(record.values, counts=_counts(record.counts), refused_url=url)


@operation(
    title="Import products",
    rest="POST /api/products/import",
    scope=Scope.PRODUCTS_WRITE,
    role=Role.MANAGER,
    accepts_idempotency_key=True,
    limit=HEAVY,
    example={"fileId": "TABLE_ID"},
)
def import_products(ctx: Context, args: ProductsImport) -> ImportStarted:
    """Import products from a table, by SKU. Categories are created.

    Exports of shops are recognized: WooCommerce, Shopify, InSales, OpenCart, Tilda, 1C, Ozon and
    others. With dryRun the result shows the first ten rows, each column that is not read, and how
    many products would be created, changed and refused. Then read the import until its state is
    finished. A repeated import changes nothing more.
    """
    return _start(ctx, PRODUCTS, args)


@operation(
    title="Import services",
    rest="POST /api/services/import",
    scope=Scope.SERVICES_WRITE,
    role=Role.MANAGER,
    accepts_idempotency_key=True,
    limit=HEAVY,
    example={"fileId": "TABLE_ID"},
)
def import_services(ctx: Context, args: ServicesImport) -> ImportStarted:
    """Import services from a table, by externalId or name. Categories are created.

    The table of YCLIENTS is recognized. With dryRun the result shows the first ten rows, each
    column that is not read, and how many services would be created, changed and refused. Then read
    the import until its state is finished. A repeated import changes nothing more.
    """
    return _start(ctx, SERVICES, args)


@operation(
    title="Import clients",
    rest="POST /api/clients/import",
    scope=Scope.CRM_WRITE,
    role=Role.MANAGER,
    accepts_idempotency_key=True,
    limit=HEAVY,
    example={"fileId": "TABLE_ID"},
)
def import_clients(ctx: Context, args: ClientsImport) -> ImportStarted:
    """Import clients from a table or vCards, by externalId, e-mail address or phone.

    What a client of the workspace has stays; empty fields are filled, tags and notes are added.
    Tables of Google Contacts, Outlook and YCLIENTS are recognized. With dryRun the result shows the
    first ten rows, each column that is not read, and how many clients would be created, changed and
    refused. Then read the import until its state is finished.
    """
    return _start(ctx, CLIENTS, args)


@operation(
    rest="GET /api/imports/{id}",
    role=Role.MANAGER,
    example={"id": "IMPORT_ID"},
    errors=(InsufficientScopeError,),
)
def get_import(ctx: Context, args: ImportGet) -> ImportOut:
    """Get how far an import is, and the URL of its refused rows once it has ended.

    A key needs the scope that it needs to start the import.
    """
    record = IMPORTS.require(ctx.workspace_id, record_id=args.id)
    _check_scope(ctx.principal, record.noun)
    return ImportOut.from_record(record, args.language)


def _check_scope(principal: Principal, noun: Noun) -> None:
    needed = WRITE_SCOPES[noun]
    if isinstance(principal, ApiKeyPrincipal) and needed not in principal.scopes:
        msg = f"This is an import of {noun}, so a key needs the scope {needed}."
        raise InsufficientScopeError(msg, details={"scope": needed})


def _start(ctx: Context, noun: Noun, args: ImportStart[F]) -> ImportStarted:
    file = files.file_or_upload(ctx.workspace_id, record_id=args.file_id)
    upload = file if isinstance(file, UploadRow) else None
    table = ctx.unit.run_side_effect_once("table", lambda: _read(ctx, noun, args, file))
    if args.dry_run:
        preview = _preview(ctx, noun, table, args.language)
        return ImportStarted(import_id=None, state=None, preview=preview)
    if table.fault:
        message = table.fault.shown(args.language)
        raise ValidationError.of("columns", message=message, key="columns")
    if not table.rows:
        message = Reason.of("no_rows", "the table has no rows").shown(args.language)
        raise ValidationError.of("fileId", message=message, key="no_rows")
    import_id = ctx.unit.run_side_effect_once("import id", new_id)
    key_id = ctx.principal.key_id if isinstance(ctx.principal, ApiKeyPrincipal) else None
    record = ImportRow(
        IMPORTS.partition(ctx.workspace_id),
        import_id,
        kind=noun,
        file_name=file.name,
        file_id=file.id if args.delete_file and not upload else None,
        account_id=ctx.principal.account_id or None,
        key_id=key_id,
        rows=len(table.rows),
        expires_at=clock.now() + KEPT_FOR,
    )
    ctx.unit.run_side_effect_once(
        "rows", lambda: rows_store.store_rows(record, table, has_sku=noun == PRODUCTS)
    )
    ctx.unit.on_failure(lambda: object_store().delete_under(record.folder))
    if upload:
        ctx.unit.delete(upload, if_there=True)
        files.release_bytes(ctx.unit, int(upload.size))
        ctx.unit.after_commit(lambda: object_store().delete(upload.key))
    payload = {"importId": import_id}
    ctx.unit.create(record)
    ctx.unit.create(jobs.row(IMPORT, ctx.workspace_id, payload, job_id=import_id))
    ctx.unit.create(
        jobs.row(IMPORT_EXPIRED, ctx.workspace_id, payload, record.expires_at, job_id=import_id)
    )
    return ImportStarted(import_id=import_id, state=RUNNING, preview=None)


def _read(ctx: Context, noun: Noun, args: ImportStart[F], file: FileRow | UploadRow) -> Table:
    body = object_store().get(file.key)
    if body is None and isinstance(file, UploadRow):
        message = "expected an upload whose bytes were sent, received none; PUT the bytes first"
        raise ValidationError.of("fileId", message=message, key="not_sent")
    if body is None:
        raise FILES.not_found()
    workspace = workspaces.get(ctx.workspace_id)
    try:
        return read_table(
            noun,
            body,
            country=workspace.country,
            currency=workspace.currency,
            chosen=args.columns,
        )
    except TableError as error:
        message = error.reason.shown(args.language)
        raise ValidationError.of("fileId", message=message, key="table") from None


def _preview(ctx: Context, noun: Noun, table: Table, form: Form) -> ImportPreview:
    limit = deadline.Deadline(PREVIEW_SECONDS)
    calls = PreviewCalls(ctx.principal, ctx.workspace_id)
    sender = sender_of(noun, calls, ctx.workspace_id, dry_run=True)
    first: list[Outcome] = []
    counts: Counter[str] = Counter()
    for rows in split_batches(table.rows, MAX_ITEMS):
        if limit.passed:
            break
        outcomes = sender.send(rows)
        first += outcomes[: max(0, PREVIEW_ROWS - len(first))]
        counts.update(outcome.code for outcome in outcomes)
    return ImportPreview(
        program=table.shop or None,
        problem=table.fault.shown(form) if table.fault else None,
        rows=len(table.rows),
        checked=counts.total(),
        counts=_counts(counts),
        columns=[
            ImportColumn(name=each.name, field=each.field, samples=list(each.samples))
            for each in table.columns
        ],
        fields=list(FIELDS[noun]),
        not_read=list(table.ignored),
        partly_read=dict(table.partly_read),
        notes=[note.shown(form) for note in table.notes],
        preview=[
            ImportPreviewRow(
                row=each.row.number,
                outcome=each.code,  # type: ignore[arg-type]  # one of ``OUTCOMES``
                reason=each.reason.shown(form) if each.reason else None,
                reason_code=each.reason.code if each.reason else None,
                values=dict(each.row.item),
                warnings=[warning.shown(form) for warning in each.warnings],
            )
            for each in first
        ],
    )


def _counts(counts: Mapping[str, int]) -> ImportCounts:
    names = (CREATED, UPDATED, UNCHANGED, REFUSED)
    return ImportCounts(**{name: int(counts.get(name, 0)) for name in names})
