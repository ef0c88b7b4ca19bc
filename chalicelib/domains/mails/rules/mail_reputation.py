"""Rates of bounces and complaints at which a workspace's e-mails to visitors are paused."""

from typing import Literal, NamedTuple

Measure = Literal["sent", "bounced", "complained"]
Suppression = Literal["bounce", "complaint"]
Pause = Literal["bounces", "complaints"]
LEAST_SENT = 50
"""E-mails below which bounces pause nothing. One of a few e-mails would be a high rate."""
MOST_BOUNCED = 0.05
"""Part of the e-mails. From 5 % on, AWS reviews the account of the whole service."""
LEAST_COMPLAINTS = 2
"""Complaints below which nothing is paused. One is above the limit of any 1,000 e-mails or
fewer."""
MOST_COMPLAINED = 0.001
"""Part of the e-mails. From 0.1 % on, AWS reviews the account of the whole service."""


class Counts(NamedTuple):
    """E-mails of a workspace to visitors."""

    sent: int
    bounced: int
    complained: int

    @property
    def pause(self) -> Pause | None:
        """Why the workspace's e-mails to visitors are to be paused, or None."""
        if self.complained >= LEAST_COMPLAINTS and self.complained > self.sent * MOST_COMPLAINED:
            return "complaints"
        if self.sent >= LEAST_SENT and self.bounced > self.sent * MOST_BOUNCED:
            return "bounces"
        return None
