"""Time zones in requests, and the workspace's time zone."""

from typing import Annotated

from pydantic import AfterValidator, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.domains.identity.store import workspaces
from chalicelib.lib import zoned_times


def _check_zone(timezone: str) -> str:
    if timezone not in zoned_times.zones():
        raise PydanticCustomError("timezone", "expected an IANA name such as Europe/Moscow")
    return timezone


Timezone = Annotated[str, StringConstraints(max_length=64), AfterValidator(_check_zone)]
"""IANA name of a time zone."""


def of_workspace(ctx: Context) -> str:
    """Return the time zone of the workspace in which a call works."""
    return workspaces.get(ctx.workspace_id).timezone
