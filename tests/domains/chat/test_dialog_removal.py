"""Removal of dialogs that have expired, or whose visitor is erased."""

import pytest

from chalicelib.core import clock
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.engine.listing import counters
from chalicelib.engine.unit import run_unit
from chalicelib.transports import scheduled_functions
from tests.conftest import Api, Owner, Time, all_rows, call_operator
from tests.domains.chat.helpers import list_dialogs, stats
from tests.factories.chat import Bot, answer_to, ask, newest_dialog, transcript
from tests.factories.examples import request_to

pytestmark = pytest.mark.usefixtures("database")


class TestErasure:
    def test_erasure_removes_messages_and_keeps_counts(
        self, api: Api, bot: Bot, owner: Owner
    ) -> None:
        reply = ask(bot, "My secret garden, ada@example.com", key="k", pageUrl="https://a.example/")
        ask(bot, "Roses and thorns", sessionId=reply.session)
        old, stats_before = newest_dialog(api, bot), stats(api, bot)
        erased = call_operator(
            "erase_client", workspaceId=owner.workspace.id, email="ada@example.com"
        )
        assert (erased["leads"], erased["dialogs"], erased["storedAnswers"]) == (1, 1, 1)
        stored_rows = repr(all_rows()).lower()
        for word in ("garden", "thorns", "ada@example", "a.example"):
            assert word not in stored_rows
        assert transcript(api, bot) == []
        new = newest_dialog(api, bot)
        assert (new["preview"], new["messagesCount"]) == ("", old["messagesCount"])
        assert stats(api, bot) == stats_before
        assert ask(bot, "Hi", sessionId=reply.session).status == 404

    @pytest.mark.parametrize("channel", ["api", "widget"])
    @pytest.mark.parametrize(
        "contact",
        [
            {"email": "ada@work.example.com"},
            {"email": "ada@home.example.com"},
            {"phone": "+79161234567"},
        ],
    )
    def test_every_contact_that_a_visitor_enters_leads_to_the_dialog(
        self, contact: dict[str, str], channel: str, api: Api, bot: Bot, owner: Owner
    ) -> None:
        reply = ask(bot, "I am ada@example.com or ada@home.example.com", channel=channel)
        form = {"email": "ada@work.example.com", "phone": "8 916 123-45-67"}
        ask(bot, "My secret garden", contact=form, sessionId=reply.session)
        erased = call_operator("erase_client", workspaceId=owner.workspace.id, **contact)
        assert (erased["dialogs"], erased["leads"], len(erased["clientIds"])) == (1, 1, 1)
        stored_rows = repr(all_rows()).lower()
        for word in ("garden", "ada@", "9161234567"):
            assert word not in stored_rows

    def test_a_dialog_without_a_lead_is_found_by_contacts_in_its_text(
        self, api: Api, bot: Bot, owner: Owner
    ) -> None:
        row = DIALOGS.new(
            owner.workspace.id,
            agent_id=bot.id,
            channel="test",
            last_number=2,
            messages_count=2,
            words="ada@example.com",
            named_contacts=["ada@example.com"],
            last_message_at=clock.now(),
        )
        run_unit(owner.workspace.id, None, lambda unit: unit.create(row))
        erased = call_operator(
            "erase_client", workspaceId=owner.workspace.id, email="ada@example.com"
        )
        assert (erased["dialogs"], erased["leads"], erased["clientIds"]) == (1, 0, [])
        assert "ada@example" not in repr(all_rows())

    def test_an_answer_in_progress_leaves_nothing_after_erasure(
        self, api: Api, bot: Bot, owner: Owner
    ) -> None:
        stream = answer_to(request_to(bot.id, "I am ada@example.com"))
        next(iter(stream.body))  # type: ignore[call-overload]
        call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
        stream.whole_body()
        assert "ada@example" not in repr(all_rows())
        assert transcript(api, bot) == []
        assert bot.money[1] == 0


class TestExpiry:
    def test_a_dialog_expires_a_year_after_its_last_message(
        self, api: Api, bot: Bot, time: Time
    ) -> None:
        reply = ask(bot, "Hi")
        time.pass_by(days=300)
        ask(bot, "Hi again", sessionId=reply.session)
        time.pass_by(days=66)
        scheduled_functions.run_jobs()
        assert len(transcript(api, bot)) == 4
        time.pass_by(days=298, hours=23)
        scheduled_functions.run_jobs()
        assert len(list_dialogs(api, bot)) == 1
        time.pass_by(hours=2)
        scheduled_functions.run_jobs()
        assert list_dialogs(api, bot) == []
        remaining_keys = {key for key in all_rows() if "DIALOG" in key or "SESSION" in key}
        assert {key for key in remaining_keys if "COUNT" not in key} == set()
        assert counters.read(bot.workspace_id, noun=DIALOGS.noun)[counters.TOTAL] == 0
        assert ask(bot, "Hi", sessionId=reply.session).status == 404
