"""The pages of the console for the list of dialogs and for one transcript."""

import re
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.domains.chat.operations import dialog_details
from chalicelib.domains.chat.store import messages, proposals
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.chat.store.messages import ASSISTANT, USER
from chalicelib.domains.chat.store.proposals import ProposalId
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Answer
from tests.factories.console import World
from tests.transports.console.forms.helpers import text


def new_dialog(world: World, *said_messages: tuple[str, str], **attributes: Any) -> str:
    """Create a dialog with messages, each with its role, and return its id."""
    home, now = world.here.workspace_id, clock.now()
    values = {"agent_id": world.here.bot, "channel": "page", "last_message_at": now}
    values |= {
        "last_number": len(said_messages),
        "messages_count": len(said_messages),
        "words": "Rye bread",
    }
    dialog = DIALOGS.new(home, **values | attributes)

    def stage(unit: UnitOfWork) -> None:
        unit.create(dialog)
        for number, (role, content) in enumerate(said_messages, 1):
            at = now + timedelta(seconds=number)
            row = messages.row(home, dialog_id=dialog.id, number=number, created_at=at, role=role)
            row.content, row.status = content, "ok"
            if content.startswith("tool:"):
                name = content.removeprefix("tool:")
                call = {"name": name, "arguments": "{}", "is_error": name == "find_products"}
                row.tool_calls, row.content = [call], ""
            unit.create(row)

    run_unit(home, None, stage)
    return str(dialog.id)


def propose(world: World, dialog: str, message: int, kind: Any, result: dict[str, Any]) -> None:
    """Store a proposal and its result."""
    home, card = world.here.workspace_id, {"title": f"A {kind}"}
    place = ProposalId(world.here.bot, dialog, message, 1)
    staged: list[Any] = []

    def stage(unit: UnitOfWork) -> None:
        ends = clock.now() + timedelta(minutes=15)
        staged[:] = [proposals.stage_new(unit, place, kind, arguments={}, card=card, ends_at=ends)]

    run_unit(home, None, stage)
    run_unit(home, None, lambda unit: proposals.stage_decision(unit, staged[0], "done", result))


def dialog_ids(page: Answer) -> list[str]:
    """Return the ids of the dialogs on a page of the list, in order."""
    return re.findall(r'class="row" href="[^"]*/dialogs/([0-9A-Z]+)"', page.body.decode())


class TestList:
    def test_dialogs_of_all_bots_are_listed_newest_first(self, world: World) -> None:
        dialog_id = new_dialog(world)
        page = world.person("member").get(f"{world.here.path}/dialogs")
        assert dialog_ids(page) == [dialog_id, world.here.dialog]
        assert "2 dialogs" in text(page)
        assert "asked for a person" in text(page)


class TestTranscript:
    def test_a_transcript_says_who_did_what_and_links_to_what_came_of_it(
        self, world: World
    ) -> None:
        dialog = new_dialog(
            world,
            (USER, "Do you sell rye?"),
            (ASSISTANT, "tool:find_products"),
            (USER, "Then a haircut"),
            (ASSISTANT, "Here you are"),
            lead_id=world.here.lead,
        )
        propose(world, dialog, 2, "order", {"orderId": world.here.lead})
        propose(world, dialog, 4, "booking", {"booking": {"id": "B" * 26}})
        page = text(world.person("member").get(f"{world.here.path}/dialogs/{dialog}"))
        order = (
            *("Do you sell rye?", "Looked for products — it failed", "The bot proposed an order"),
            *("Then a haircut", "Here you are", "The bot proposed a booking"),
        )
        places = [page.index(part) for part in order]
        assert places == sorted(places)
        assert page.count("confirmed by the visitor") == 2
        assert page.count(f'href="{world.here.path}/leads/{world.here.lead}"') == 2

    def test_a_request_for_a_person_is_marked_where_it_happened(self, world: World) -> None:
        at = clock.now() + timedelta(seconds=2.5)
        messages = [(USER, "One"), (ASSISTANT, "Two"), (USER, "Three")]
        dialog = new_dialog(world, *messages, handover_at=at, handover_reason="Angry visitor")
        page = text(world.person("member").get(f"{world.here.path}/dialogs/{dialog}"))
        mark = page.index("The bot asked for a person here")
        assert page.index("Two<") < mark < page.index("Three<")
        assert "Angry visitor" in page

    @pytest.mark.parametrize(("name", "sees"), [("boss", True), ("manager", False)])
    def test_only_the_owner_sees_what_a_dialog_cost(
        self, name: str, sees: bool, world: World
    ) -> None:
        dialog = new_dialog(world, (USER, "Hello"), input_tokens=1_000, output_tokens=500)
        page = text(world.person(name).get(f"{world.here.path}/dialogs/{dialog}"))
        assert ("₽" in page) is sees

    def test_a_long_dialog_has_pages(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dialog_details, "MESSAGES_PER_PAGE", 2)
        dialog = new_dialog(world, *[(USER, f"Message {n}.") for n in range(5)])
        member, path = world.person("member"), f"{world.here.path}/dialogs/{dialog}"
        pages = [text(member.get(f"{path}?page={n}")) for n in (1, 2, 3, 4)]
        message_numbers = [re.findall(r"Message (\d)\.", page) for page in pages]
        assert message_numbers == [["0", "1"], ["2", "3"], ["4"], []]
        assert "?page=2" in pages[0]

    def test_a_dialog_without_its_bot_and_messages_is_shown(self, world: World) -> None:
        dialog = new_dialog(world, agent_id="A" * 26, words=None)
        page = world.person("boss").get(f"{world.here.path}/dialogs/{dialog}")
        assert page.status == 200
        assert "deleted bot" in text(page)
        assert "There are no messages" in text(page)
