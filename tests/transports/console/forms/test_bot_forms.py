"""The pages of the console for a bot's keys, chat and limits."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.domains.identity.store import console_sessions
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.console import access
from chalicelib.transports.console.bots import bots
from chalicelib.transports.http import HttpResponse
from tests.conftest import Time, all_rows, call_console, call_operator
from tests.factories.console import Person, World
from tests.factories.examples import request_to
from tests.factories.transfer import call_with_key
from tests.transports.conftest import Records
from tests.transports.console.forms.helpers import error_beside, text, token_of, value_of


class TestBotKeys:
    def test_a_bot_key_is_shown_once_and_there_are_at_most_five(
        self, world: World, log_records: Records
    ) -> None:
        console_owner, keys = world.person("boss"), f"{world.here.path}/bots/{world.here.bot}/keys"
        key_pages = [
            console_owner.post(keys, {"name": f"Key {n}", "once": str(n)}) for n in range(4)
        ]
        tokens = [token_of(answer, "svc_bot_") for answer in key_pages]
        assert f'"apiKey": "{tokens[0]}"' in text(key_pages[0])
        repeated = console_owner.post(keys, {"name": "Key 0", "once": "0"})
        assert repeated.status == 409
        assert f"{keys}/" in text(repeated)
        sixth = console_owner.post(keys, {"name": "Key 5", "once": "5"})
        assert sixth.status == 409
        assert "5 keys, which is the limit" in text(sixth)
        key_list = console_owner.get(keys)
        assert "5 of 5" in text(key_list)
        assert 'name="name"' not in text(key_list)
        outputs = [text(page) for page in (repeated, sixth, key_list)] + log_records.lines
        outputs.append(json.dumps(all_rows(), default=str))
        assert not [output for output in outputs for token in tokens if token in output]
        (confirmation,) = set(
            re.findall(rf'href="({keys}/\w+/delete)"[^>]*: Key 3"', text(key_list))
        )
        assert "Delete the bot key “Key 3”?" in text(console_owner.get(confirmation))
        assert (
            console_owner.post(confirmation).headers["Location"] == f"{keys}?done=bot_key_deleted"
        )
        for repeated in (console_owner.get(confirmation), console_owner.post(confirmation)):
            assert repeated.headers["Location"] == f"{keys}?done=bot_key_deleted"
        assert console_owner.post(keys, {"name": "Key 6", "once": "6"}).status == 200

    def test_a_bot_key_needs_a_name(self, world: World) -> None:
        keys = f"{world.here.path}/bots/{world.here.bot}/keys"
        answer = world.person("boss").post(keys, {"name": " "})
        assert answer.status == 400
        assert error_beside(answer, "name")


Try = Callable[..., HttpResponse]


@pytest.fixture
def try_chat(world: World) -> Try:
    """Send a message to a private bot as a page of the console does, with optional differences."""

    def send(
        person: Person | None, bot: str = "", csrf: str | None = None, **fields: str
    ) -> HttpResponse:
        request = request_to(
            bot or world.here.bot, "Do you sell bread?", **{"channel": "test"} | fields
        )
        headers = {**request.headers}
        if person is not None:
            headers |= {"cookie": person.headers["Cookie"]}
            headers |= {access.CSRF_HEADER: person.csrf if csrf is None else csrf}
        response = chat_route.serve(replace(request, headers=headers), chat_stream.handle)
        return response._replace(body=response.whole_body())

    return send


class TestChatInConsole:
    def test_the_bots_people_chat_without_a_key(self, world: World, try_chat: Try) -> None:
        for name in ("boss", "manager"):
            response = try_chat(world.person(name))
            assert response.status == 200
            assert b'"type":"done"' in response.whole_body()
        dialogs = call_with_key(
            world.here.workspace_id, "list_agent_dialogs", agentId=world.here.bot
        )["dialogs"]
        assert [dialog["channel"] for dialog in dialogs[:2]] == ["test", "test"]

    @pytest.mark.parametrize("is_private", [True, False])
    def test_a_plain_member_cannot_spend_the_owners_money(
        self, is_private: bool, world: World, try_chat: Try
    ) -> None:
        call_operator("set_bot", id=world.here.bot, isPrivate=is_private)
        balance_before = call_operator("get_balance", account="boss@example.com")
        response = try_chat(world.person("member"))
        error = json.loads(response.whole_body())["data"]
        assert (response.status, error["code"]) == (403, "forbidden")
        assert call_operator("get_balance", account="boss@example.com") == balance_before

    def test_a_plain_member_cannot_open_the_chat(self, world: World) -> None:
        path = f"{world.here.path}/bots/{world.here.bot}/chat"
        page = world.person("member").get(path)
        assert page.status == 403
        assert b"data-chat=" not in page.body
        assert b"data-chat=" in world.person("manager").get(path).body

    def test_other_people_need_a_key(self, world: World, try_chat: Try) -> None:
        console_owner, stranger = world.person("boss"), world.person("stranger")
        assert try_chat(None).status == 403
        assert try_chat(stranger).status == 403
        assert try_chat(console_owner, world.there.bot).status == 403
        assert try_chat(console_owner, channel="widget").status == 403
        call_operator(
            "remove_member", workspaceId=world.here.workspace_id, email="manager@example.com"
        )
        assert try_chat(world.person("manager")).status == 403

    def test_only_pages_of_the_console_may_send_messages(self, world: World, try_chat: Try) -> None:
        console_owner = world.person("boss")
        for csrf in ("", "0" * 64, world.person("boss").csrf):
            response = try_chat(console_owner, csrf=csrf)
            assert response.status == 403
            assert json.loads(response.whole_body())["data"]["code"] == "stale_form"
        console_owner.post("/console/sign-out")
        gone = Person("boss@example.com", "A" * 43)
        assert try_chat(gone).status == 401

    def test_an_ended_session_gives_no_access(self, world: World, try_chat: Try) -> None:
        """A public bot would reply, and count the message as a visitor's."""
        console_owner = world.person("boss")
        call_operator("set_bot", id=world.here.bot, isPrivate=False)
        world.person("boss").post("/console/account/sign-out")
        response = try_chat(console_owner)
        assert response.status == 401
        assert json.loads(response.whole_body())["data"]["code"] == "unauthorized"

    def test_a_stranger_with_a_key_counts_as_a_program(self, world: World, try_chat: Try) -> None:
        stranger = world.person("stranger")
        assert try_chat(stranger, apiKey=world.here.bot_token).status == 200
        dialogs = call_with_key(
            world.here.workspace_id, "list_agent_dialogs", agentId=world.here.bot
        )["dialogs"]
        assert dialogs[0]["channel"] == "api"

    def test_a_message_does_not_count_as_a_use_of_the_session(
        self, world: World, try_chat: Try, time: Time
    ) -> None:
        console_owner = world.person("boss")
        time.pass_by(hours=1)
        assert try_chat(console_owner).status == 200
        session = console_sessions.find(console_owner.token)
        assert session
        assert session.seen_at == session.created_at

    def test_the_page_has_messages_for_every_failure(self, world: World) -> None:
        path = f"{world.here.path}/bots/{world.here.bot}/chat"
        page = text(world.person("boss").get(path, accept_language="ru"))
        (encoded,) = re.findall(r'data-failures="(\{.*?\})"', page)
        messages = json.loads(html.unescape(encoded))
        assert set(messages) == set(bots.FAILURES)
        assert messages["insufficient_balance"] == "На балансе владельца не хватает денег на ответ."

    def test_the_chat_page_names_the_bot_and_its_audience(self, world: World) -> None:
        console_owner = world.person("boss")
        page = text(console_owner.get(f"{world.here.path}/bots/{world.here.bot}/chat"))
        assert f'data-csrf="{console_owner.csrf}"' in page
        assert f'data-chat="{chat_route.PATH}"' in page
        assert f'data-agent="{world.here.bot}"' in page


class TestLimits:
    @pytest.mark.parametrize("first", ["", "5", "0"])
    def test_limits_are_set_and_removed(self, first: str, world: World) -> None:
        console_owner, path = (
            world.person("boss"),
            f"{world.here.path}/bots/{world.here.bot}/limits",
        )
        console_owner.post(path, {"daily": "7", "weekly": "8", "monthly": "9"})
        answer = console_owner.post(path, {"daily": first, "weekly": "1 000,50 ₽", "monthly": ""})
        assert answer.headers["Location"] == f"{path}?done=limits_set"
        page = console_owner.get(answer.headers["Location"])
        assert "Limits saved" in text(page)
        field_values = [value_of(page, field) for field in ("daily", "weekly", "monthly")]
        assert field_values == [first, "1000.50", ""]
        bot_limits = call_console(world.here.workspace_id, "get_bot_limits", agentId=world.here.bot)
        limits = [bot_limits[period]["limit"] for period in ("daily", "weekly", "monthly")]
        assert limits == [{"": None, "5": 500, "0": 0}[first], 100_050, None]

    def test_limits_that_are_not_sent_stay(self, world: World) -> None:
        console_owner, path = (
            world.person("boss"),
            f"{world.here.path}/bots/{world.here.bot}/limits",
        )
        console_owner.post(path, {"daily": "7", "weekly": "8", "monthly": "9"})
        assert console_owner.post(path, {"weekly": ""}).status == 303
        bot_limits = call_console(world.here.workspace_id, "get_bot_limits", agentId=world.here.bot)
        limits = [bot_limits[period]["limit"] for period in ("daily", "weekly", "monthly")]
        assert limits == [700, None, 900]

    def test_a_limit_of_zero_stops_the_bot(self, world: World, try_chat: Try) -> None:
        console_owner = world.person("boss")
        console_owner.post(f"{world.here.path}/bots/{world.here.bot}/limits", {"daily": "0"})
        assert try_chat(console_owner).status == 429

    def test_a_bot_stopped_by_its_limit_is_not_shown_as_active(
        self, world: World, try_chat: Try
    ) -> None:
        console_owner, path = world.person("boss"), f"{world.here.path}/bots"
        pages = [path, *(f"{path}/{world.here.bot}/{tab}" for tab in ("keys", "limits", "chat"))]

        def states() -> set[str]:
            tags = [
                re.findall(r'<span class="tag[^>]*>\s*([\w ]+)', console_owner.get(p).body.decode())
                for p in pages
            ]
            return {tag[0] for tag in tags}

        assert states() == {"active"}
        console_owner.post(f"{path}/{world.here.bot}/limits", {"daily": "0"})
        assert states() == {"stopped"}
        console_owner.post(f"{path}/{world.here.bot}/limits", {"daily": "", "weekly": "1"})
        assert states() == {"active"}

    @pytest.mark.parametrize(
        "typed_amount",
        ["-1", "1e5", "1,234.56", "1.234", "₽", "abc", "١٢", "9" * 13, "9" * 5000, "1_000"],
    )
    def test_an_invalid_amount_is_reported_beside_its_field(
        self, typed_amount: str, world: World
    ) -> None:
        console_owner, path = (
            world.person("boss"),
            f"{world.here.path}/bots/{world.here.bot}/limits",
        )
        console_owner.post(path, {"daily": "7"})
        answer = console_owner.post(
            path, {"daily": "5", "weekly": typed_amount, "monthly": f"{typed_amount} "}
        )
        assert answer.status == 400
        assert error_beside(answer, "weekly")
        assert error_beside(answer, "monthly")
        assert value_of(answer, "daily") == "5"
        assert value_of(answer, "weekly") == typed_amount
        bot_limits = call_console(world.here.workspace_id, "get_bot_limits", agentId=world.here.bot)
        assert bot_limits["daily"]["limit"] == 700
