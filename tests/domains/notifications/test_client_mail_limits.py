"""Limits of emails to clients."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.store import mail_rates
from tests.conftest import Api, Owner, Time, all_rows, call_operator
from tests.domains.notifications.clients import ADA, book, mails_to, withheld_counts
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon

pytestmark = pytest.mark.usefixtures("database", "large_share")
HOURS = [f"2027-03-03T{hour:02}:00:00Z" for hour in range(9, 16)]


@pytest.fixture
def salon(api: Api, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, reload_settings: Any) -> Salon:
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    return Salon.opened(api)


class TestAnAddress:
    def test_address_gets_three_emails_a_day_in_any_spelling(
        self, inbox: Inbox, salon: Salon, owner: Owner, time: Time
    ) -> None:
        for hour, address in zip(
            HOURS, [ADA, "ADA@example.com", "ada+a@example.com", "ada+b@example.com"], strict=False
        ):
            book(salon, hour, address)
        run_until_idle()
        to_ada = [message for message in inbox.mails if "ada" in message["To"].lower()]
        assert len(to_ada) == 3
        assert withheld_counts(owner) == {"byAddress": 1}
        time.pass_by(days=1)
        assert withheld_counts(owner) == {}
        book(salon, HOURS[4], ADA)
        run_until_idle()
        assert len([message for message in inbox.mails if "ada" in message["To"].lower()]) == 4

    def test_address_gets_three_emails_a_day_from_all_workspaces(
        self, inbox: Inbox, salon: Salon, new_owner: Callable[..., Owner]
    ) -> None:
        other = new_owner()
        theirs = Salon.opened(other.api())
        for hour in HOURS[:2]:
            book(salon, hour)
            book(theirs, hour)
        run_until_idle()
        assert len(mails_to(inbox)) == 3

    def test_suppressed_address_gets_no_email(
        self, inbox: Inbox, salon: Salon, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mail_gate, "is_suppressed", lambda address, *_: address == ADA)
        book(salon, HOURS[0])
        run_until_idle()
        assert mails_to(inbox) == []
        assert withheld_counts(owner) == {"byBounce": 1}

    def test_address_is_not_stored_with_its_emails(self, inbox: Inbox, salon: Salon) -> None:
        keys_before = set(all_rows())
        book(salon, HOURS[0])
        run_until_idle()
        rows = {key: row for key, row in all_rows().items() if key not in keys_before}
        mail_rows = [row for row in rows.values() if "MAIL" in row["pk"]["S"].upper()]
        assert mail_rows
        assert all(ADA not in str(row) for row in mail_rows)


class TestAWorkspace:
    def test_visitors_bookings_use_half_of_the_plans_emails(
        self, inbox: Inbox, salon: Salon, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.CLIENT_MAILS_A_DAY, "business", 4)
        for hour, name in zip(HOURS, "abcd", strict=False):
            book(salon, hour, f"{name}@example.com")
        run_until_idle()
        to_visitors = [
            message for message in inbox.mails if len(message["To"]) == len("a@example.com")
        ]
        assert len(to_visitors) == 2
        assert withheld_counts(owner) == {"byPlan": 2}

    def test_paused_workspace_sends_no_email(
        self, inbox: Inbox, salon: Salon, owner: Owner
    ) -> None:
        assert mail_rates.pause(owner.workspace.id, "stranger", "complaints")
        book(salon, HOURS[0])
        run_until_idle()
        assert mails_to(inbox) == []
        assert withheld_counts(owner) == {"byPause": 1}
        assert call_operator("resume_mail", workspaceId=owner.workspace.id) == {"wasPaused": True}
        book(salon, HOURS[1])
        run_until_idle()
        assert len(mails_to(inbox)) == 1
