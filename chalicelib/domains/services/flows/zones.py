"""Warn of a time zone that the workspace does not have."""

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.domains.services.store.resources import ResourceRow


def warn_of_zone(ctx: Context, resource: ResourceRow, timezone: str) -> None:
    """Warn that a change of zone moves a resource's opening hours, but not its bookings."""
    if timezone != resource.timezone:
        ctx.warn(
            f"The time zone of the opening hours has changed from {resource.timezone} to "
            f"{timezone}. Existing bookings are not moved.",
            code=WarningCode.TIMEZONE_CHANGED,
            previous=resource.timezone,
            timezone=timezone,
        )
