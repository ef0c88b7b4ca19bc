"""Runs of the jobs of events, for tests of what the jobs do."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from chalicelib.domains.notifications.rules import who_is_told
from chalicelib.engine.events.outbox import Outbox
from chalicelib.transports import scheduled_functions


def run_until_idle() -> None:
    """Run jobs of events until none is due, in one runner instead of four side by side.

    Runners that meet are tested in ``engine/jobs`` and ``domains/webhooks/test_due_deliveries.py``.
    """
    with patch.object(scheduled_functions, "EVENT_RUNNERS", 1):
        while any(scheduled_functions.run_event_jobs().values()):
            pass


@contextmanager
def recorded_events() -> Iterator[list[tuple[str, str]]]:
    """Yield the events that are emitted meanwhile, subscribed or not, each as type and actor."""
    recorded: list[tuple[str, str]] = []
    real = Outbox.jobs

    def jobs(self: Outbox, change: Any) -> Any:
        actor = change.actor if change else ""
        recorded.extend((event.type, actor) for event in self.events())
        return real(self, change)

    with patch.object(Outbox, "jobs", jobs):
        yield recorded


def unanswered(events: Iterable[tuple[str, str]]) -> set[str]:
    """Return the types of events of visitors that reach nobody, or are not declared as theirs.

    The lead or the booking of a new client tells of it.
    """
    types = {name for name, actor in events if actor.startswith("visitor:")} - {"client.created"}
    rows = {name: who_is_told.EVENTS[name] for name in types}
    return {name for name, told in rows.items() if not (told.by_visitors and told.reaches_somebody)}
