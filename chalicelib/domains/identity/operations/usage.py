"""Count what the keys, people and visitors of a workspace have done."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import KEYS_AND_MANAGED, REGISTRY, operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.identity.flows.actors import ActorKind, actor_kind
from chalicelib.domains.identity.flows.periods import period
from chalicelib.domains.identity.store import api_keys, connections, workspaces
from chalicelib.engine import audit, limits

DEFAULT_DAYS, MAX_DAYS = 7, 31
# Changes, and minutes of a key with heavy calls, that one call counts, the newest first. Some
# 1,000 read units.
MAX_COUNTED = 20_000
MAX_OPERATIONS = 20
_PARALLEL = 8
CallerKind = Literal["key", "app", ActorKind]


class UsageQuery(Wire):
    """Period of the counts."""

    from_: Day | None = Field(
        default=None, alias="from", description="First day; by default 7 days are counted."
    )
    to: Day | None = optional("Last day; default: today.")


class CallerUsage(Wire):
    """What one caller has done."""

    kind: CallerKind = Field(
        description="key, app (a connected app), account (all members in the console), visitor, "
        "operator or job."
    )
    id: Id | None = Field(description="Id of the key or of the connection, or null.")
    name: str | None = Field(description="Name of the key or of the app; null if it is gone.")
    writes: int = Field(description="Changes in the audit log.")
    heavy_calls: int = Field(
        description="Heavy calls, as their limit counts them. They are counted for keys and apps."
    )


class DayUsage(Wire):
    """What was done on one day."""

    date: str = Field(description="Day, YYYY-MM-DD.")
    writes: int = Field(description="Changes in the audit log.")
    heavy_calls: int = Field(description="Heavy calls of keys and apps.")


class OperationUsage(Wire):
    """How often an operation has changed something."""

    operation: str = Field(description="Name of the operation or of the job.")
    title: str | None = Field(description="Title of the operation; null for a job.")
    writes: int = Field(description="Changes in the audit log.")


class UsageReport(Wire):
    """Counts of a period."""

    from_: str = Field(alias="from", description="First day, YYYY-MM-DD.")
    to: str = Field(description="Last day, YYYY-MM-DD.")
    timezone: str = Field(description="The time zone of the days.")
    counted_since: Timestamp = Field(
        description="Moment since which everything is counted. It is later than the first day if "
        "the period has too much to count, or began more than 90 days ago."
    )
    writes: int = Field(description="Changes in the audit log.")
    heavy_calls: int = Field(description="Heavy calls of keys and apps.")
    callers: list[CallerUsage] = Field(description="Callers, the most active first.")
    days: list[DayUsage] = Field(description="All days of the period, including empty ones.")
    operations: list[OperationUsage] = Field(
        description="Up to 20 operations that changed something, the most frequent first."
    )


class _Caller(NamedTuple):
    kind: CallerKind
    id: str | None = None
    name: str | None = None


class _Counts:
    """Counts of a period, of which ``since`` moves if not everything could be counted."""

    def __init__(self, zone: str, first: datetime, last: datetime) -> None:
        self.since, self.last = max(first, clock.now() - audit.RETENTION), last
        self.writes: Counter[_Caller] = Counter()
        self.heavy: Counter[_Caller] = Counter()
        self.writes_by_day: Counter[str] = Counter()
        self.heavy_by_day: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self._zone = ZoneInfo(zone)

    def day(self, moment: datetime) -> str:
        return moment.astimezone(self._zone).date().isoformat()

    def read(self, workspace_id: str, callers: Mapping[str, _Caller]) -> None:
        if self.since > self.last:
            return  # The log no longer has anything of the period.
        changes = list(
            audit.changes(workspace_id, first=self.since, last=self.last, at_most=MAX_COUNTED)
        )
        windows = self._heavy_windows(callers)
        moments = [[change.at for change in changes]]
        moments += [[begins for begins, _ in some] for some in windows.values()]
        # All counts begin at the same moment, whichever of them was cut off.
        cut_off = (some[-1] for some in moments if len(some) == MAX_COUNTED)
        self.since = max((self.since, *cut_off))
        for change in changes:
            if change.at >= self.since:
                caller = callers.get(change.key_id) or _caller_of(change)
                self.writes[caller] += 1
                self.writes_by_day[self.day(change.at)] += 1
                self.operations[change.operation] += 1
        for key_id, some in windows.items():
            for begins, units in some:
                if begins + HEAVY.window > self.since:
                    self.heavy[callers[key_id]] += units
                    self.heavy_by_day[self.day(max(begins, self.since))] += units

    def _heavy_windows(self, callers: Iterable[str]) -> dict[str, list[tuple[datetime, int]]]:
        key_ids = list(callers)
        read = partial(
            limits.used_between, HEAVY, first=self.since, last=self.last, at_most=MAX_COUNTED
        )
        subjects = [f"key:{key_id}" for key_id in key_ids]
        return dict(zip(key_ids, deadline.map_in_threads(read, subjects, _PARALLEL), strict=True))


def _caller_of(change: audit.Change) -> _Caller:
    # The row of a connection that has ended is deleted after a time.
    return _Caller("key", change.key_id) if change.key_id else _Caller(actor_kind(change.actor))


@operation(
    title="Count what was done",
    rest="GET /api/usage",
    scope=Scope.SETTINGS_READ,
    audience=KEYS_AND_MANAGED,
    role=Role.MANAGER,
    example={},
)
def get_usage(ctx: Context, args: UsageQuery) -> UsageReport:
    """Count the changes and the heavy calls of each key, app and kind of caller in up to 31 days.

    Changes are those of the audit log, which is kept for 90 days. Calls that only read are not
    counted, unless they are heavy. At most the latest 20,000 changes are counted.
    """
    zone = workspaces.get(ctx.workspace_id).timezone
    first, last = period(
        ctx.workspace_id, args.from_, last=args.to, default_days=DEFAULT_DAYS, max_days=MAX_DAYS
    )
    counts = _Counts(zone, clock.moment_of(first, zone), clock.moment_of(last, zone, end=True))
    counts.read(ctx.workspace_id, _callers(ctx.workspace_id, counts.since))
    days = [first + timedelta(n) for n in range((last - first).days + 1)]
    titles = {entry.name: entry.title for entry in REGISTRY.entries()}
    return UsageReport.from_row(
        {},
        from_=first.isoformat(),
        to=last.isoformat(),
        timezone=zone,
        counted_since=counts.since,
        writes=counts.writes.total(),
        heavy_calls=counts.heavy.total(),
        callers=[
            CallerUsage(
                kind=caller.kind,
                id=caller.id,
                name=caller.name,
                writes=counts.writes[caller],
                heavy_calls=counts.heavy[caller],
            )
            for caller, _ in (counts.writes + counts.heavy).most_common()
        ],
        days=[
            DayUsage(
                date=str(day),
                writes=counts.writes_by_day[str(day)],
                heavy_calls=counts.heavy_by_day[str(day)],
            )
            for day in days
        ],
        operations=[
            OperationUsage(operation=name, title=titles.get(name), writes=count)
            for name, count in counts.operations.most_common(MAX_OPERATIONS)
        ],
    )


def _callers(workspace_id: str, since: datetime) -> dict[str, _Caller]:
    """Return the keys and apps that were used since a moment, by id."""
    # The time of the last use is up to ten minutes late.
    used_after = since - max(api_keys.LAST_USE_PRECISION, connections.LAST_USE_PRECISION)
    callers = [
        *(
            (_Caller("key", key.key_id, key.name), key.last_used_at)
            for key in api_keys.read_all(workspace_id)
        ),
        *(
            (_Caller("app", app.id, app.client_name), app.last_used_at)
            for app in connections.read_all(workspace_id)
        ),
    ]
    return {
        str(caller.id): caller for caller, used_at in callers if used_at and used_at >= used_after
    }
