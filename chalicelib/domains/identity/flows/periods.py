"""Time zones and periods of days in requests."""

from datetime import date, timedelta
from typing import Annotated

from pydantic import AfterValidator, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ValidationError
from chalicelib.domains.identity.store import workspaces
from chalicelib.lib import zoned_times


def _check_zone(timezone: str) -> str:
    zone = zoned_times.find_zone(timezone)
    if zone is None:
        raise PydanticCustomError("timezone", "expected an IANA name such as Europe/Moscow")
    return zone


# IANA name of a time zone.
Timezone = Annotated[str, StringConstraints(max_length=64), AfterValidator(_check_zone)]


def zone_of_workspace(ctx: Context) -> str:
    """Return the time zone of the workspace in which a call works."""
    return workspaces.get(ctx.workspace_id).timezone


DEFAULT_DAYS = 30
MAX_DAYS = 366


def period(
    workspace_id: str,
    first: date | None,
    *,
    last: date | None,
    default_days: int = DEFAULT_DAYS,
    max_days: int = MAX_DAYS,
) -> tuple[date, date]:
    """Return the first and last day of a period of limited length, or raise ValidationError."""
    if last is None:
        last = clock.local_day(clock.now(), workspaces.get(workspace_id).timezone)
    # The days are those of the workspace's zone.
    first = first or last - timedelta(days=default_days - 1)
    length = (last - first).days + 1
    if length < 1:
        raise ValidationError.of(
            "from",
            message=f"expected {last} or an earlier day, received {first}",
            key="bounds",
        )
    if length > max_days:
        message = f"expected at most {max_days} days, received {length}"
        raise ValidationError.of("from", message=message, key="too_long")
    return first, last
