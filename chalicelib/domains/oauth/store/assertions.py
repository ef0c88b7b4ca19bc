"""Store used assertions of clients, because each may be used once (RFC 7523, 3)."""

import hashlib
from datetime import datetime

from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.tables import ControlRow

SORT_KEY = "-"


class UsedAssertionRow(ControlRow):
    """An assertion that was used, until it expires."""


def use(client_id: str, *, jti: str, expires: datetime) -> bool:
    """Whether an assertion is used for the first time."""
    digest = hashlib.sha256(f"{client_id}\n{jti}".encode()).hexdigest()
    row = UsedAssertionRow(f"OAUTH-ASSERTION#{digest}", SORT_KEY)
    action = UsedAssertionRow.expires.set(expires)
    # Of two uses at the same time, the condition lets one pass.
    return update_if(row, [action], UsedAssertionRow.pk.does_not_exist())
