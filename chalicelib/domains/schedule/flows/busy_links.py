"""Seal and unseal the links of the staff's own calendars (ADR 135)."""

import json

from chalicelib.core import clock
from chalicelib.domains.schedule.store.busy_calendars import BusyCalendarRow
from chalicelib.gateways import sealing
from chalicelib.gateways.fetch import Validators


def set_link(calendar: BusyCalendarRow, url: str, host: str) -> None:
    """Take another link, of which nothing was read. Its days stay until it is read."""
    calendar.sealed_link, calendar.host = sealing.seal(url, purpose=_purpose(calendar)), host
    calendar.added_at = clock.now()
    calendar.forget_readings()


def link_of(calendar: BusyCalendarRow) -> str:
    """Return the link of a calendar. Raises the errors of ``sealing.unseal``."""
    return sealing.unseal(calendar.sealed_link, purpose=_purpose(calendar))


def set_validators(calendar: BusyCalendarRow, validators: Validators | None) -> None:
    """Keep the headers of a response, or forget them. The URL after redirects is a secret, too."""
    purpose = f"{_purpose(calendar)}:validators"
    calendar.sealed_validators = validators and sealing.seal(
        json.dumps(validators), purpose=purpose
    )


def validators_of(calendar: BusyCalendarRow) -> Validators | None:
    """Return the headers of the last response. Raises the errors of ``sealing.unseal``."""
    if calendar.sealed_validators is None:
        return None
    purpose = f"{_purpose(calendar)}:validators"
    return Validators(*json.loads(sealing.unseal(calendar.sealed_validators, purpose=purpose)))


def _purpose(calendar: BusyCalendarRow) -> str:
    return f"busy-calendar:{calendar.pk}:{calendar.sk}"
