"""Rates of bounces and complaints that pause a workspace's emails."""

import pytest

from chalicelib.domains.mails.rules.mail_reputation import Counts


@pytest.mark.parametrize(
    ("sent_count", "bounced", "complained", "pause"),
    [
        (0, 0, 0, None),
        (49, 49, 0, None),
        (50, 2, 0, None),
        (50, 3, 0, "bounces"),
        (100, 5, 0, None),
        (100, 6, 0, "bounces"),
        (100, 0, 1, None),
        (1_000, 0, 1, None),
        (10, 0, 2, "complaints"),
        (1_999, 0, 2, "complaints"),
        (2_000, 0, 2, None),
        (2_000, 0, 3, "complaints"),
        (100, 50, 50, "complaints"),
    ],
)
def test_emails_are_paused_above_the_rates_of_ses(
    sent_count: int, bounced: int, complained: int, pause: str | None
) -> None:
    assert Counts(sent_count, bounced, complained).pause == pause
