"""Access to proposals, handovers to a human, and erasures."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from chalicelib.core import clock
from chalicelib.domains.chat.flows import dialog_removal
from chalicelib.domains.chat.store import chat_sessions, proposals
from chalicelib.domains.chat.store.proposals import ProposalId
from chalicelib.engine.unit import UnitOfWork
from tests.conftest import Api, Time, all_rows, call_operator
from tests.factories.chat import (
    Bot,
    answer_to,
    ask,
    new_key,
    read_events,
)
from tests.factories.examples import request_to
from tests.factories.proposals import (
    ADA,
    ASKED,
    END,
    FEATURES,
    FIND,
    book,
    bookings,
    call,
    card,
    decide,
    path,
    proposed,
    refuse_decision,
)
from tests.support.patience import PATIENCE
from tests.transports.chat.endpoint.conftest import Script

pytestmark = [
    pytest.mark.store,
    pytest.mark.usefixtures("database", "model_takes_tools", "all_capabilities", "monday"),
]


class TestPeople:
    def test_a_person_is_requested_once_a_day(
        self, bot: Bot, api: Api, script: Script, time: Time
    ) -> None:
        need = call("request_person", reason="A wedding cake")
        model = script(need, END, "Done.", END)
        session = ask(bot, ASKED).session
        (dialog,) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
        assert dialog["handoverAt"] == "2026-11-23T09:00:00.000Z"
        dialog_view = api.get(f"/api/agents/dialog?id={dialog['id']}")["dialog"]
        assert dialog_view["handoverReason"] == "A wedding cake"
        time.pass_by(hours=2)
        ask(bot, "Again!", sessionId=session)
        assert "already" in model.inputs[-1][-1].results[0].content
        time.pass_by(hours=23)
        ask(bot, "Again!", sessionId=session)
        stats = api.get(f"/api/agents/stats?agentId={bot.id}")["actions"]
        assert stats["handovers"] == 2

    def test_without_a_contact_the_bot_has_to_ask_for_one(
        self, bot: Bot, api: Api, script: Script
    ) -> None:
        model = script(call("request_person", reason="A cake"), END, "Who are you?", END)
        ask(bot, "I want a person")
        assert model.inputs[1][-1].results[0].is_error
        (dialog,) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
        assert dialog["handoverAt"] is None


class TestAccess:
    def test_only_the_sessions_holder_finds_an_action(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        script("Hello.", END)
        other = ask(bot, "Hi").session
        agent, dialog, number, last = card(reply)["id"].split("-")
        attempts = [
            (path(reply), other),
            (path(reply), "nonsense"),
            (f"/api/agents/public/actions/{agent}-{dialog}-{number}-9", reply.session),
            (f"/api/agents/public/actions/{agent}-{dialog}-9-{last}", reply.session),
            (f"/api/agents/public/actions/{dialog}-{dialog}-{number}-{last}", reply.session),
            ("/api/agents/public/actions/nonsense", reply.session),
        ]
        for url, session in attempts:
            answer = api.call_refused("POST", url, {"sessionId": session, "decision": "confirm"})
            assert answer.status == 404, url
        assert bookings(api) == []

    def test_a_private_bot_requires_its_key(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        bot.change(is_private=True)
        key = new_key(bot)
        assert refuse_decision(api, reply).status == 404
        assert refuse_decision(api, reply, apiKey=key[:-1]).status == 404
        assert decide(api, reply, apiKey=key)["state"] == "done"

    def test_a_disabled_bot_carries_nothing_out(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        bot.change(is_active=False)
        assert refuse_decision(api, reply).status == 404

    def test_an_erasure_removes_proposals(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(), question="A haircut, please.")
        decide(api, reply, values={"name": "Ada", "contact": "ada@example.com"})
        call_operator("erase_client", workspaceId=bot.workspace_id, email="ada@example.com")
        assert "ada@example.com" not in json.dumps(all_rows(), default=str)
        assert "#ACTIONS" not in json.dumps([*all_rows()])

    def test_nothing_is_kept_of_a_dialog_that_is_erased_during_an_answer(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        paused = Event()
        person = call("request_person", reason="Ada wants a cake.")
        model = script(FIND, END, paused, book(**ADA), END, person, END, "Done.", END)
        answer = answer_to(request_to(bot.id, ASKED, features=FEATURES))
        with ThreadPoolExecutor(1) as executor:
            read = executor.submit(answer.whole_body)
            assert model.waiting.wait(PATIENCE)
            call_operator("erase_client", workspaceId=bot.workspace_id, phone="+74951234567")
            paused.set()
            events = [*read_events(read.result())]
        assert all(event["type"] != "action" for event in events)
        stored_json = json.dumps(all_rows(), default=str, ensure_ascii=False)
        assert "Ada Lovelace" not in stored_json
        assert "Ada wants" not in stored_json
        assert "4951234567" not in stored_json

    def test_an_erasure_removes_a_proposal_that_is_made_while_it_runs(
        self, bot: Bot, script: Script
    ) -> None:
        script("Hello.", END)
        session = ask(bot, "I am Ada.").session
        dialog = chat_sessions.find(bot.workspace_id, agent_id=bot.id, token=session)
        assert dialog
        batches = iter(dialog_removal.message_batches(bot.workspace_id, dialog_id=dialog.dialog_id))
        first_batch = [*next(batches)]
        unit = UnitOfWork(bot.workspace_id)
        place = ProposalId(bot.id, dialog.dialog_id, 2, 1)
        proposal = proposals.stage_new(
            unit, place, "booking", arguments={}, card={}, ends_at=clock.now()
        )
        unit.commit()
        first_batch += [row for batch in batches for row in batch]
        assert (proposal.pk, proposal.sk) in {(row.pk, row.sk) for row in first_batch}
