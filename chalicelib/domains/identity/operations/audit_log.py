"""Reading of the audit log: the actor, key, operation and time of each change."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.areas import logged_as
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.operations import REGISTRY, operation
from chalicelib.core.principals import Audience, Role
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.identity.flows.actors import Actor, actor_kind
from chalicelib.domains.identity.store import accounts, api_keys, connections, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine import audit
from chalicelib.engine.audit import AuditRow
from chalicelib.lib import tokens


class AuditQuery(Wire):
    """Filters for reading the audit log."""

    workspace_id: Id | None = optional("The workspace; the session's own if omitted.")
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


class Touched(Wire):
    """Changed resource."""

    type: str = Field(description="Kind of resource, such as site or key.")
    id: str = Field(description="Resource id.")


class _Names(NamedTuple):
    """Names to show in the log: accounts and keys by id, operations by name."""

    people: Mapping[str, AccountRow]
    keys: Mapping[str, KeyUsed]
    titles: Mapping[str, str]
    areas: Mapping[str, str | None]


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
    def of(cls, row: AuditRow, known: _Names) -> Self:
        """Return the wire form of a stored change."""
        named = (name.partition(":") for name in row.resources)
        return cls.from_row(
            row.attribute_values,
            id=row.sk,
            actor=Actor.of(row.actor, known.people),
            key=known.keys.get(row.key_id),
            client_ip=row.client_ip or None,
            title=known.titles.get(row.operation),
            area=known.areas.get(row.operation),
            resources=[Touched(type=kind, id=thing) for kind, _, thing in named],
            request_id=row.request_id or None,
        )


class AuditLog(Wire):
    """A page of the audit log."""

    entries: list[AuditEntry] = Field(description="Newest first.")
    next: str | None = Field(
        description="Value to send as before for older entries, or null. A filtered page may be"
        " short, or empty, while there are more."
    )


def _keys_used(workspace_id: str, ids: set[str]) -> dict[str, KeyUsed]:
    """Return the keys and the connected apps with these ids, by id."""
    keys = api_keys.of_ids(workspace_id, ids)
    apps = connections.of_ids(workspace_id, ids - keys.keys())
    masked = f"{tokens.ACCESS_PREFIX}…"
    return {
        **{n: KeyUsed(id=n, name=key.name, masked=key.masked) for n, key in keys.items()},
        **{n: KeyUsed(id=n, name=app.client_name, masked=masked) for n, app in apps.items()},
    }


def _areas() -> dict[str, str | None]:
    """Return the declared area of each operation and job."""
    jobs = {kind: logged_as(module) for kind, module in JOB_HANDLERS.modules.items()}
    return jobs | {each.name: logged_as(each.module, each.path) for each in REGISTRY.entries()}


def _entry_filter(
    args: AuditQuery, areas: Mapping[str, str | None]
) -> Callable[[str, str], bool] | None:
    """Return a filter by actor and operation, or None if all entries are wanted."""
    if args.actor is None and args.area is None:
        return None

    def wanted(actor: str, operation: str) -> bool:
        by = args.actor in {None, actor, actor.partition(":")[0]}
        return by and args.area in {None, areas.get(operation)}

    return wanted


@operation(
    title="Read the audit log",
    audience=(Audience.SESSION, Audience.OPERATOR),
    role=Role.MANAGER,
    resolve=lambda args: workspaces.get(args.workspace_id or "").id,
    reads=True,
)
def list_audit_log(ctx: Context, args: AuditQuery) -> AuditLog:
    """List changes with their actors, newest first. Entries are kept for 90 days."""
    zone = workspaces.get(ctx.workspace_id).timezone if args.from_ or args.to else "UTC"
    areas = _areas()
    found = audit.page(
        ctx.workspace_id,
        args.limit,
        before=args.before,
        first=clock.moment_of(args.from_, zone) if args.from_ else None,
        last=clock.moment_of(args.to, zone, end=True) if args.to else None,
        matches=_entry_filter(args, areas),
    )
    actors = {row.actor for row in found.rows}
    known = _Names(
        people=accounts.of_ids(actor for actor in actors if actor_kind(actor) == "account"),
        keys=_keys_used(ctx.workspace_id, {row.key_id for row in found.rows if row.key_id}),
        titles={entry.name: entry.title for entry in REGISTRY.entries()},
        areas=areas,
    )
    entries = [AuditEntry.of(row, known) for row in found.rows]
    return AuditLog(entries=entries, next=found.before)
