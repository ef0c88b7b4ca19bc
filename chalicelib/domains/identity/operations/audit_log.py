"""Read the actor, key, operation and time of each change from the audit log."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.areas import logged_as
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.operations import KEYS_AND_MANAGED, REGISTRY, operation
from chalicelib.core.principals import ApiKeyPrincipal, Principal, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.identity.flows import names
from chalicelib.domains.identity.flows.actors import Actor, actor_kind
from chalicelib.domains.identity.flows.names import KeyName, RecordName
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine import audit
from chalicelib.engine.audit import AuditRow
from chalicelib.engine.listing.registry import NOUNS, listing_of

KEY_KINDS = ("key", "connection")  # kinds of resources whose names are names of keys and apps
# Resources of an entry whose names are read. All names of a page take a few requests.
NAMED_RESOURCES = 2
# Resources whose names are part of the log, as those of actors and keys are.
_NAMED_BY_LOG = ("account", *KEY_KINDS)


class AuditQuery(Wire):
    """Filters for reading the audit log."""

    limit: int = Field(default=50, ge=1, le=100, description="Entries per page, up to 100.")
    before: Id | None = optional("Value of next on the previous page, for older entries.")
    actor: Id | None = optional("Account id, or operator, visitor or job.")
    area: Id | None = optional("Area, such as pages or identity.")
    from_: When | None = Field(
        default=None, alias="from", description="Date or ISO 8601, in the workspace's zone."
    )
    to: When | None = optional("End; a date includes the whole day.")


class KeyUsed(Wire):
    """API key, or connected app, with which a change was made."""

    id: Id = Field(description="Id of the key or of the connection.")
    name: str = Field(description="Name of the key or of the app.")
    masked: str = Field(
        description="Masked token: prefix and, for a key, its last four characters."
    )
    is_app: bool = Field(description="Whether it is a connected app.")

    @classmethod
    def from_key_id(cls, key_id: str, keys: Mapping[str, KeyName]) -> Self | None:
        key_name = keys.get(key_id)
        return key_name and cls(id=key_id, **key_name._asdict())


class Touched(Wire):
    """Changed resource."""

    type: str = Field(description="Kind of resource, such as site or key.")
    id: str = Field(description="Id of the changed record.")
    name: str | None = Field(
        description="Name of the resource; null if it is gone, beyond the first two of an entry, "
        "or if this key may not read it."
    )
    exists: bool = Field(description="Whether it was found. Only named resources are looked for.")
    within: Id | None = Field(description="Site or bot that it belongs to, or null.")

    @classmethod
    def from_reference(cls, reference: str, names: "_Names") -> Self:
        kind, _, thing = reference.partition(":")
        record = names.records.get(reference)
        name = record and record.name
        if kind == "account" and thing in names.people:
            name = names.people[thing].name
        elif kind in KEY_KINDS and thing in names.keys:
            name = names.keys[thing].name
        return cls(
            type=kind,
            id=thing,
            name=name,
            exists=record is not None or name is not None,
            within=record and record.parent_id,
        )


class _Names(NamedTuple):
    people: Mapping[str, AccountRow]  # by id
    keys: Mapping[str, KeyName]  # by id
    records: Mapping[str, RecordName]  # by reference
    titles: Mapping[str, str]  # by name of the operation
    areas: Mapping[str, str | None]  # by name of the operation


class AuditEntry(Wire):
    """A change. Failed operations changed nothing, so they have no entry."""

    id: Id = Field(description="Entry id.")
    at: Timestamp = Field(description="When the change was made.")
    actor: Actor = Field(description="Who made the change.")
    key: KeyUsed | None = Field(description="API key that was used, or null.")
    client_ip: str | None = Field(
        description="Client IP address, or null. It is always null for visitors."
    )
    operation: str = Field(description="Name of the operation or of the job.")
    title: str | None = Field(description="Title of the operation; null for a job.")
    area: str | None = Field(description="Area of the operation, such as pages, or null.")
    resources: list[Touched] = Field(description="Changed resources, at most a hundred.")
    fields: list[str] = Field(description="Names of the sent fields. Their values are not stored.")
    request_id: str | None = Field(description="Request id, as in logs and answers, or null.")

    @classmethod
    def from_record(cls, row: AuditRow, names: _Names) -> Self:
        return cls.from_row(
            row.attribute_values,
            id=row.sk,
            actor=Actor.from_reference(row.actor, names.people),
            key=KeyUsed.from_key_id(row.key_id, names.keys),
            client_ip=row.client_ip or None,
            title=names.titles.get(row.operation),
            area=names.areas.get(row.operation),
            resources=[Touched.from_reference(reference, names) for reference in row.resources],
            request_id=row.request_id or None,
        )


class AuditLog(Wire):
    """A page of the audit log."""

    entries: list[AuditEntry] = Field(description="Changes, newest first.")
    next: str | None = Field(
        description="Value to send as before for older entries, or null. A filtered page may be"
        " short, or empty, while there are more."
    )


def _ids(references: Iterable[str], *kinds: str) -> set[str]:
    parts = (reference.partition(":") for reference in references)
    return {thing for kind, _, thing in parts if kind in kinds}


def _areas() -> dict[str, str | None]:
    jobs = {kind: logged_as(module) for kind, module in JOB_HANDLERS.modules.items()}
    return jobs | {
        registry_entry.name: logged_as(registry_entry.module, path=registry_entry.path)
        for registry_entry in REGISTRY.entries()
    }


def _entry_filter(
    args: AuditQuery, areas: Mapping[str, str | None]
) -> Callable[[str, str], bool] | None:
    if args.actor is None and args.area is None:
        return None

    def matches(actor: str, operation: str) -> bool:
        by = args.actor in {None, actor, actor.partition(":")[0]}
        return by and args.area in {None, areas.get(operation)}

    return matches


def _may_name(principal: Principal, reference: str) -> bool:
    # Names may be personal data, as those of clients are. Members who read the log may read all.
    if not isinstance(principal, ApiKeyPrincipal):
        return True
    kind = reference.partition(":")[0]
    if kind in _NAMED_BY_LOG:
        return True
    listing = NOUNS.get(kind.upper()) and listing_of(kind.upper())
    return listing is not None and _scopes_by_word().get(listing.listed_by) in principal.scopes


@cache
def _scopes_by_word() -> dict[str, Scope | None]:
    return {entry.word: entry.scope for entry in REGISTRY.entries()}


@operation(
    title="Read the audit log",
    rest="GET /api/audit-log/list",
    scope=Scope.SETTINGS_READ,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    example={"area": "sites", "limit": 5},
)
def list_audit_log(ctx: Context, args: AuditQuery) -> AuditLog:
    """List changes with their actors, newest first. Entries are kept for 90 days.

    A key reads the names of those records that its other scopes can read.
    """
    zone = workspaces.get(ctx.workspace_id).timezone if args.from_ or args.to else "UTC"
    areas = _areas()
    page = audit.page(
        ctx.workspace_id,
        args.limit,
        before=args.before,
        first=clock.moment_of(args.from_, zone) if args.from_ else None,
        last=clock.moment_of(args.to, zone, end=True) if args.to else None,
        matches=_entry_filter(args, areas),
    )
    references = [
        reference
        for row in page.rows
        for reference in row.resources[:NAMED_RESOURCES]
        if _may_name(ctx.principal, reference)
    ]
    actors = {row.actor for row in page.rows}
    keys = {row.key_id for row in page.rows if row.key_id}
    record_names = _Names(
        people=accounts.read_by_id(
            {actor for actor in actors if actor_kind(actor) == "account"}
            | _ids(references, "account")
        ),
        keys=names.read_key_names(ctx.workspace_id, keys | _ids(references, *KEY_KINDS)),
        records=names.read_record_names(ctx.workspace_id, references),
        titles={entry.name: entry.title for entry in REGISTRY.entries()},
        areas=areas,
    )
    entries = [AuditEntry.from_record(row, record_names) for row in page.rows]
    return AuditLog(entries=entries, next=page.before)
