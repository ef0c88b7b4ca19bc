"""Marks that an event has been emitted for a spending limit that a bot has reached."""

from datetime import timedelta
from typing import Self

from chalicelib.core import clock
from chalicelib.engine.tables import ControlRow

KEPT_FOR = timedelta(days=40)
"""Longer than a month, the longest window."""


class LimitNoticeRow(ControlRow):
    """The mark of a bot's window, such as ``daily#2027-01-15``, which is the sort key."""

    @classmethod
    def new(cls, workspace_id: str, agent_id: str, window: str) -> Self:
        """Return the mark of a window that is used up now. The caller stages it."""
        place = f"W#{workspace_id}#BOT-LIMIT#{agent_id}"
        return cls(place, window, expires=clock.now() + KEPT_FOR)
