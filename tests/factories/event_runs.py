"""Runs of the jobs of events, for tests of what the jobs do."""

from unittest.mock import patch

from chalicelib.transports import scheduled_functions


def run_until_idle() -> None:
    """Run jobs of events until none is due, in one runner instead of four side by side.

    Runners that meet are tested in ``engine/jobs`` and ``domains/webhooks/test_due_deliveries.py``.
    """
    with patch.object(scheduled_functions, "EVENT_RUNNERS", 1):
        while any(scheduled_functions.run_event_jobs().values()):
            pass
