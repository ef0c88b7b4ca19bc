"""The console over HTTP: keys, bots, limits and balance."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from chalicelib.core.settings import settings
from chalicelib.domains.identity.operations import key_list
from chalicelib.domains.identity.operations import keys as identity_keys
from chalicelib.domains.identity.store import api_keys, console_sessions
from chalicelib.domains.identity.store.api_keys import ApiKeyRow
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.console import balance, bots, door, keys
from chalicelib.transports.console.bots import kopecks
from chalicelib.transports.console.keys import preset
from chalicelib.transports.http import HttpResponse
from tests.conftest import Answer, Api, Time, as_operator, everything, in_console
from tests.factories.console import Person, World
from tests.factories.examples import request_to
from tests.transports.conftest import Records

KEY = {"name": "Laptop", "scopes": "projects:read", "once": "form-1"}


def text(answer: Answer) -> str:
    """Return the text of a page."""
    return html.unescape(answer.body.decode())


def token_of(answer: Answer, prefix: str = "svc_live_") -> str:
    """Return the token on a page."""
    shown = re.search(r'id="token"><code>([^<]*)</code>', answer.body.decode())
    assert shown
    assert shown[1].startswith(prefix)
    return shown[1]


def error_beside(answer: Answer, field: str) -> str:
    """Return the error message beside a field. The summary must link to it."""
    page = answer.body.decode()
    found = re.search(rf'id="{field}-error">([^<]*)<', page)
    assert found, page
    assert f'href="#{field}">{found[1]}<' in page
    assert re.search(rf'<input id="{field}"[^>]*aria-invalid="true"', page)
    return found[1]


def value_of(answer: Answer, field: str) -> str:
    """Return the value of a field."""
    found = re.search(rf'<input id="{field}"[^>]* value="([^"]*)"', answer.body.decode())
    assert found
    return html.unescape(found[1])


def ticked(answer: Answer) -> set[str]:
    """Return the scopes whose boxes are ticked."""
    return set(re.findall(r'name="scopes" value="([^"]*)" checked', answer.body.decode()))


class TestKeys:
    def test_a_token_is_shown_once_and_never_again(self, world: World, logged: Records) -> None:
        boss, keys = world.person("boss"), f"{world.here.path}/keys"
        made = boss.post(keys, KEY)
        assert made.status == 200
        token = token_of(made)
        page = text(made)
        assert f"curl -H 'Authorization: Bearer {token}' " in page
        config = re.search(r'id="mcp"><code>(.*?)</code>', page, re.DOTALL)
        assert config
        server = json.loads(config[1])["mcpServers"]["workspace"]
        assert server["url"] == f"{settings().public_url}/api/mcp"
        assert server["headers"] == {"Authorization": f"Bearer {token}"}
        again = boss.post(keys, KEY)
        assert again.status == 409
        revoke = re.search(r'href="([^"]*/revoke)"', again.body.decode())
        assert revoke
        assert "The form was sent twice" in text(again)
        listed = boss.get(keys)
        pages = [again, listed, boss.get(revoke[1]), *map(boss.get, (
            f"{world.here.path}/audit", world.here.path, "/console/account",
        ))]  # fmt: skip
        key_id = revoke[1].split("/")[-2]
        pages.append(boss.post(revoke[1]))
        pages.append(boss.get(pages[-1].headers["Location"]))
        assert "The key is revoked" in text(pages[-1])
        secret = token.removeprefix("svc_live_")[:20]
        kept = [*(page.body.decode() for page in pages), *logged.lines]
        kept.append(json.dumps(everything(), default=str))
        assert not [each for each in kept if secret in each]
        assert key_id in text(boss.get(f"{world.here.path}/audit"))
        assert f"svc_live_…{token[-4:]}" in text(listed)

    def test_a_created_key_works_until_it_is_revoked(self, world: World) -> None:
        boss, keys = world.person("boss"), f"{world.here.path}/keys"
        made = boss.post(keys, KEY)
        api = Api(token_of(made))
        (path,) = re.findall(r"curl -H '[^']*' ([^<\s]+)", text(made))
        assert api.get(path.removeprefix(settings().public_url))["projects"] == []
        failed, sites = api.tool("svc_list_sites")
        assert not failed, sites
        assert api.refused("POST", "/api/projects/create", {"title": "x"}).status == 403
        assert re.search("Last used\\s+<time", text(boss.get(keys)))
        (key,) = [k for k in api_keys.live(world.here.workspace_id) if k.name == "Laptop"]
        asked = boss.get(f"{keys}/{key.key_id}/revoke")
        assert "Revoke key “Laptop”?" in text(asked)
        assert boss.post(f"{keys}/{key.key_id}/revoke").status == 303
        for method, where in (("GET", "/api/projects/list"), ("POST", "/api/mcp")):
            assert api.call(method, where, {} if method == "POST" else None).status == 401

    def test_a_form_sent_twice_with_changes_creates_no_second_key(self, world: World) -> None:
        boss, keys = world.person("boss"), f"{world.here.path}/keys"
        boss.post(keys, KEY)
        before = len(api_keys.live(world.here.workspace_id))
        answer = boss.post(keys, KEY | {"name": "Phone"})
        assert answer.status == 409
        assert value_of(answer, "name") == "Phone"
        assert len(api_keys.live(world.here.workspace_id)) == before
        (once,) = re.findall(r'name="once" value="([^"]*)"', answer.body.decode())
        assert boss.post(keys, KEY | {"name": "Phone", "once": once}).status == 200

    def test_a_key_expires_at_the_end_of_the_day_in_the_workspaces_zone(
        self, world: World, time: Time
    ) -> None:
        boss = world.person("boss")  # in Vladivostok, it is 22:00 on January 15
        made = boss.post(f"{world.here.path}/keys", KEY | {"expires": "2027-01-15"})
        assert made.status == 200
        (key,) = [k for k in api_keys.live(world.here.workspace_id) if k.name == "Laptop"]
        assert key.expires_at == datetime(2027, 1, 15, 13, 59, 59, tzinfo=UTC)
        api = Api(token_of(made))
        api.get("/api/projects/list")
        time.pass_by(hours=2)
        assert api.refused("GET", "/api/projects/list").status == 401

    def test_times_show_the_offset_of_the_workspaces_zone(self, world: World) -> None:
        boss, keys = world.person("boss"), f"{world.here.path}/keys"
        assert "To the end of that day (Asia/Vladivostok)" in text(boss.get(f"{keys}/new"))
        boss.post(keys, KEY | {"expires": "2027-01-15"})
        pattern = r">15 Jan 2027, 23:59</time>\s*<span[^>]*data-offset=\"600\"[^>]*>UTC\+10</span>"
        assert re.search(pattern, boss.get(keys).body.decode())
        as_operator("set_workspace", workspaceId=world.here.workspace_id, timezone="Europe/Berlin")
        pattern = r">15 Jan 2027, 14:59</time>\s*<span[^>]*data-offset=\"60\"[^>]*>UTC\+1</span>"
        assert re.search(pattern, boss.get(keys).body.decode())

    def test_the_list_shows_the_creator_of_a_key_and_the_masked_token(self, world: World) -> None:
        manager = world.person("manager")
        manager.post(f"{world.here.path}/keys", KEY)
        page = text(manager.get(f"{world.here.path}/keys?q=lapt"))
        assert "Laptop" in page
        assert "manager@example.com" in page

    def test_a_key_that_expires_at_the_end_of_the_calendar_is_listed(self, world: World) -> None:
        key = api_keys.by_id(world.here.key)
        key.update([ApiKeyRow.expires_at.set(datetime.max.replace(tzinfo=UTC))])
        assert "31 Dec 9999" in text(world.person("boss").get(f"{world.here.path}/keys"))

    def test_the_latest_keys_that_no_longer_work_are_shown(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(keys, "GONE", 2)
        boss = world.person("boss")
        for number in range(3):
            boss.post(
                f"{world.here.path}/keys", KEY | {"name": f"No {number}", "once": str(number)}
            )
        for key in api_keys.live(world.here.workspace_id):
            if key.name.startswith("No "):
                boss.post(f"{world.here.path}/keys/{key.key_id}/revoke")
                again = boss.get(f"{world.here.path}/keys/{key.key_id}/revoke")
                assert again.headers["Location"].endswith("/keys?done=key_revoked")
        page = text(boss.get(f"{world.here.path}/keys"))
        assert "3 keys no longer work" in page
        assert "The latest 2 are shown." in page
        assert page.count(">No ") == 2

    def test_a_message_is_shown_when_the_workspace_has_the_most_keys(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (identity_keys, key_list):
            monkeypatch.setattr(module, "MAX_LIVE_KEYS", 1)
        boss, path = world.person("boss"), f"{world.here.path}/keys"
        page = text(boss.get(path))
        assert "The workspace has 1 live keys, the most it can have." in page
        assert f'href="{path}/new"' not in page
        assert boss.get(f"{path}/new").headers["Location"] == path
        answer = boss.post(path, KEY, accept_language="ru")
        assert answer.status == 409
        assert "Сначала отзовите" in text(answer)
        assert "уже 1 действующих ключей" in text(answer)


class TestKeyForm:
    @pytest.mark.parametrize("name", ["read", "agent", "everything"])
    def test_a_preset_ticks_boxes_and_keeps_the_entered_name(self, name: str, world: World) -> None:
        boss, before = world.person("boss"), everything()
        typed = {"name": "Lap & top", "expires": "2030-01-31", "preset": name}
        answer = boss.post(f"{world.here.path}/keys", typed)
        assert answer.status == 200
        assert ticked(answer) == preset(name, admin=False)
        assert value_of(answer, "name") == "Lap & top"
        assert value_of(answer, "expires") == "2030-01-31"
        assert everything() == before

    def test_blog_scopes_are_offered_to_admins_only(self, world: World) -> None:
        path = f"{world.here.path}/keys/new"
        assert "blog:" not in text(world.person("boss").get(path))
        as_operator(
            "create_account", email="root@example.com", password="long enough", role="admin"
        )
        who = {"workspaceId": world.here.workspace_id, "email": "root@example.com"}
        as_operator("add_member", **who, role="manager")
        root = Person("root@example.com")
        root.start_session("long enough")
        assert 'value="blog:write"' in text(root.get(path))
        assert "blog:read" in preset("everything", admin=True)

    @pytest.mark.parametrize(
        ("field", "typed"),
        [
            ("name", {"name": ""}),
            ("name", {"name": "x" * 201}),
            ("name", {"name": "a\u202eb"}),
            ("expires", {"expires": "tomorrow"}),
            ("expires", {"expires": "2027-01-14"}),
            ("expires", {"expires": "2027-02-30"}),
            ("expires", {"expires": "2127-02-01"}),
            ("expires", {"expires": "9999-12-31"}),
            ("expires", {"expires": "\u0662\u0660\u0662\u0668-01-01"}),
        ],
    )
    def test_an_error_is_shown_beside_its_field(
        self, field: str, typed: dict[str, str], world: World, time: Time
    ) -> None:
        boss = world.person("boss")
        answer = boss.post(f"{world.here.path}/keys", KEY | typed)
        assert answer.status == 400
        assert error_beside(answer, field)
        for each, value in (KEY | {"expires": ""} | typed).items():
            if each in {"name", "expires"}:
                assert value_of(answer, each) == value
        assert ticked(answer) == {"projects:read"}

    @pytest.mark.parametrize("scopes", ["", "none:read", "projects", "projects:delete"])
    def test_at_least_one_scope_is_required(self, scopes: str, world: World) -> None:
        typed = {"name": "Laptop", **({"scopes": scopes} if scopes else {})}
        answer = world.person("boss").post(f"{world.here.path}/keys", typed)
        assert answer.status == 400
        assert "Tick at least one right" in text(answer)
        assert 'href="#scopes"' in text(answer)
        assert value_of(answer, "name") == "Laptop"

    @pytest.mark.parametrize("plan", ["free", "start"])
    def test_keys_cannot_be_created_below_business_but_are_listed(
        self, plan: str, world: World
    ) -> None:
        as_operator("set_plan", workspaceId=world.here.workspace_id, plan=plan)
        boss, keys = world.person("boss"), f"{world.here.path}/keys"
        before = len(api_keys.live(world.here.workspace_id))
        listed = boss.get(keys)
        assert listed.status == 200
        assert f"svc_live_…{world.here.token[-4:]}" in text(listed)
        assert "Upgrade to create keys" in text(listed)
        assert f"{keys}/new" not in text(listed)
        assert boss.get(f"{keys}/new").headers["Location"] == keys
        answer = boss.post(keys, KEY)
        assert answer.status == 403
        assert text(answer).count("Upgrade to create keys") == 1
        assert value_of(answer, "name") == "Laptop"
        assert len(api_keys.live(world.here.workspace_id)) == before
        assert boss.post(f"{keys}/{world.here.key}/revoke").status == 303


class TestBotKeys:
    def test_a_bot_key_is_shown_once_and_there_are_at_most_five(
        self, world: World, logged: Records
    ) -> None:
        boss, keys = world.person("boss"), f"{world.here.path}/bots/{world.here.bot}/keys"
        made = [boss.post(keys, {"name": f"Key {n}", "once": str(n)}) for n in range(4)]
        tokens = [token_of(answer, "svc_bot_") for answer in made]
        assert f'"apiKey": "{tokens[0]}"' in text(made[0])
        again = boss.post(keys, {"name": "Key 0", "once": "0"})
        assert again.status == 409
        assert f"{keys}/" in text(again)
        sixth = boss.post(keys, {"name": "Key 5", "once": "5"})
        assert sixth.status == 409
        assert "5 keys, the most" in text(sixth)
        listed = boss.get(keys)
        assert "5 of at most 5" in text(listed)
        assert 'name="name"' not in text(listed)
        kept = [text(each) for each in (again, sixth, listed)] + logged.lines
        kept.append(json.dumps(everything(), default=str))
        assert not [each for each in kept for token in tokens if token in each]
        (asked,) = set(re.findall(rf'href="({keys}/\w+/delete)"[^>]*: Key 3"', text(listed)))
        assert "Delete the bot key “Key 3”?" in text(boss.get(asked))
        assert boss.post(asked).headers["Location"] == f"{keys}?done=bot_key_deleted"
        for again in (boss.get(asked), boss.post(asked)):
            assert again.headers["Location"] == f"{keys}?done=bot_key_deleted"
        assert boss.post(keys, {"name": "Key 6", "once": "6"}).status == 200

    def test_a_bot_key_needs_a_name(self, world: World) -> None:
        keys = f"{world.here.path}/bots/{world.here.bot}/keys"
        answer = world.person("boss").post(keys, {"name": " "})
        assert answer.status == 400
        assert error_beside(answer, "name")


Try = Callable[..., HttpResponse]


@pytest.fixture
def tried(world: World) -> Try:
    """Send a message to a private bot as a page of the console does, with optional differences."""

    def send(
        who: Person | None, bot: str = "", csrf: str | None = None, **fields: str
    ) -> HttpResponse:
        asked = request_to(
            bot or world.here.bot, "Do you sell bread?", **{"channel": "test"} | fields
        )
        sent = {**asked.headers}
        if who is not None:
            sent |= {"cookie": who.headers["Cookie"]}
            sent |= {door.CSRF_HEADER: who.csrf if csrf is None else csrf}
        response = chat_route.serve(replace(asked, headers=sent), chat_stream.handle)
        return response._replace(body=response.whole_body())

    return send


class TestChatInConsole:
    def test_the_bots_people_chat_without_a_key(self, world: World, tried: Try) -> None:
        for name in ("boss", "manager"):
            response = tried(world.person(name))
            assert response.status == 200
            assert b'"type":"done"' in response.whole_body()
        dialogs = in_console(world.here.workspace_id, "list_agent_dialogs", agentId=world.here.bot)[
            "dialogs"
        ]
        assert {dialog["channel"] for dialog in dialogs} == {"test"}

    @pytest.mark.parametrize("is_private", [True, False])
    def test_a_plain_member_cannot_spend_the_owners_money(
        self, is_private: bool, world: World, tried: Try
    ) -> None:
        as_operator("set_bot", id=world.here.bot, isPrivate=is_private)
        before = as_operator("get_balance", account="boss@example.com")
        response = tried(world.person("member"))
        told = json.loads(response.whole_body())["data"]
        assert (response.status, told["code"]) == (403, "forbidden")
        assert as_operator("get_balance", account="boss@example.com") == before

    def test_a_plain_member_sees_the_reason_why_there_is_no_chat(self, world: World) -> None:
        path = f"{world.here.path}/bots/{world.here.bot}/chat"
        page = world.person("member").get(path)
        assert page.status == 200
        assert b"only the owner and managers can test the bot" in page.body
        assert b"data-chat=" not in page.body
        assert b"data-chat=" in world.person("manager").get(path).body

    def test_other_people_need_a_key(self, world: World, tried: Try) -> None:
        boss, stranger = world.person("boss"), world.person("stranger")
        assert tried(None).status == 403
        assert tried(stranger).status == 403
        assert tried(boss, world.there.bot).status == 403
        assert tried(boss, channel="widget").status == 403
        as_operator(
            "remove_member", workspaceId=world.here.workspace_id, email="manager@example.com"
        )
        assert tried(world.person("manager")).status == 403

    def test_only_pages_of_the_console_may_send_messages(self, world: World, tried: Try) -> None:
        boss = world.person("boss")
        for csrf in ("", "0" * 64, world.person("boss").csrf):
            response = tried(boss, csrf=csrf)
            assert response.status == 403
            assert json.loads(response.whole_body())["data"]["code"] == "stale_form"
        boss.post("/console/sign-out")
        gone = Person("boss@example.com", "A" * 43)
        assert tried(gone).status == 401

    def test_an_ended_session_gives_no_access(self, world: World, tried: Try) -> None:
        """A public bot would answer, and count the message as a visitor's."""
        boss = world.person("boss")
        as_operator("set_bot", id=world.here.bot, isPrivate=False)
        world.person("boss").post("/console/account/sign-out")
        response = tried(boss)
        assert response.status == 401
        assert json.loads(response.whole_body())["data"]["code"] == "unauthorized"

    def test_a_stranger_with_a_key_counts_as_a_program(self, world: World, tried: Try) -> None:
        stranger = world.person("stranger")
        assert tried(stranger, apiKey=world.here.bot_token).status == 200
        dialogs = in_console(world.here.workspace_id, "list_agent_dialogs", agentId=world.here.bot)[
            "dialogs"
        ]
        assert [dialog["channel"] for dialog in dialogs] == ["api"]

    def test_a_message_does_not_count_as_a_use_of_the_session(
        self, world: World, tried: Try, time: Time
    ) -> None:
        boss = world.person("boss")
        time.pass_by(hours=1)
        assert tried(boss).status == 200
        session = console_sessions.find(boss.token)
        assert session
        assert session.seen_at == session.created_at

    def test_the_page_has_messages_for_every_failure(self, world: World) -> None:
        path = f"{world.here.path}/bots/{world.here.bot}/chat"
        page = text(world.person("boss").get(path, accept_language="ru"))
        (told,) = re.findall(r'data-failures="(\{.*?\})"', page)
        said = json.loads(html.unescape(told))
        assert set(said) == set(bots.FAILURES)
        assert said["insufficient_balance"] == "На балансе владельца не хватает денег на ответ."

    def test_the_chat_page_names_the_bot_and_its_audience(self, world: World) -> None:
        boss = world.person("boss")
        page = text(boss.get(f"{world.here.path}/bots/{world.here.bot}/chat"))
        assert f'data-csrf="{boss.csrf}"' in page
        assert f'data-chat="{chat_route.PATH}"' in page
        assert f'data-agent="{world.here.bot}"' in page


class TestLimits:
    @pytest.mark.parametrize(
        ("typed", "amount"),
        [
            ("", None),
            ("  ", None),
            ("0", 0),
            ("500", 50_000),
            ("99.9", 9990),
            ("99,90", 9990),
            ("1 234,50 ₽", 123_450),
            ("1\u00a0234\u202f567", 123_456_700),
            ("0,01", 1),
        ],
    )
    def test_amounts_in_rubles_are_accepted_in_common_spellings(
        self, typed: str, amount: int | None
    ) -> None:
        assert kopecks("daily", typed) == amount

    @pytest.mark.parametrize("first", ["", "5", "0"])
    def test_limits_are_set_and_removed(self, first: str, world: World) -> None:
        boss, path = world.person("boss"), f"{world.here.path}/bots/{world.here.bot}/limits"
        boss.post(path, {"daily": "7", "weekly": "8", "monthly": "9"})
        answer = boss.post(path, {"daily": first, "weekly": "1 000,50 ₽", "monthly": ""})
        assert answer.headers["Location"] == f"{path}?done=limits_set"
        page = boss.get(answer.headers["Location"])
        assert "Limits saved" in text(page)
        shown = [value_of(page, each) for each in ("daily", "weekly", "monthly")]
        assert shown == [first, "1000.50", ""]
        found = in_console(world.here.workspace_id, "get_bot_limits", agentId=world.here.bot)
        limits = [found[each]["limit"] for each in ("daily", "weekly", "monthly")]
        assert limits == [{"": None, "5": 500, "0": 0}[first], 100_050, None]

    def test_limits_that_are_not_sent_stay(self, world: World) -> None:
        boss, path = world.person("boss"), f"{world.here.path}/bots/{world.here.bot}/limits"
        boss.post(path, {"daily": "7", "weekly": "8", "monthly": "9"})
        assert boss.post(path, {"weekly": ""}).status == 303
        found = in_console(world.here.workspace_id, "get_bot_limits", agentId=world.here.bot)
        limits = [found[each]["limit"] for each in ("daily", "weekly", "monthly")]
        assert limits == [700, None, 900]

    def test_a_limit_of_zero_stops_the_bot(self, world: World, tried: Try) -> None:
        boss = world.person("boss")
        boss.post(f"{world.here.path}/bots/{world.here.bot}/limits", {"daily": "0"})
        assert tried(boss).status == 429

    def test_a_bot_stopped_by_its_limit_is_not_shown_as_active(
        self, world: World, tried: Try
    ) -> None:
        boss, path = world.person("boss"), f"{world.here.path}/bots"
        pages = [path, *(f"{path}/{world.here.bot}/{tab}" for tab in ("keys", "limits", "chat"))]

        def states() -> set[str]:
            found = [
                re.findall(r'<span class="tag[^>]*>\s*([\w ]+)', boss.get(p).body.decode())
                for p in pages
            ]
            return {each[0] for each in found}

        assert states() == {"active"}
        boss.post(f"{path}/{world.here.bot}/limits", {"daily": "0"})
        assert states() == {"stopped"}
        boss.post(f"{path}/{world.here.bot}/limits", {"daily": "", "weekly": "1"})
        assert states() == {"active"}

    @pytest.mark.parametrize(
        "typed", ["-1", "1e5", "1,234.56", "1.234", "₽", "abc", "١٢", "9" * 13, "9" * 5000, "1_000"]
    )
    def test_an_invalid_amount_is_reported_beside_its_field(self, typed: str, world: World) -> None:
        boss, path = world.person("boss"), f"{world.here.path}/bots/{world.here.bot}/limits"
        boss.post(path, {"daily": "7"})
        answer = boss.post(path, {"daily": "5", "weekly": typed, "monthly": f"{typed} "})
        assert answer.status == 400
        assert error_beside(answer, "weekly")
        assert error_beside(answer, "monthly")
        assert value_of(answer, "daily") == "5"
        assert value_of(answer, "weekly") == typed
        found = in_console(world.here.workspace_id, "get_bot_limits", agentId=world.here.bot)
        assert found["daily"]["limit"] == 700


class TestBalance:
    def test_only_the_owner_sees_the_balance(self, world: World) -> None:
        path = f"{world.here.path}/balance"
        assert "10,000.00 ₽" in text(world.person("boss").get(path)).replace("\u00a0", " ")
        for name in ("manager", "member"):
            page = text(world.person(name).get(path))
            assert "only they see the balance" in page
            assert "₽" not in page
            assert "₽" not in text(world.person(name).get(world.here.path))

    def test_the_ledger_is_shown_page_by_page(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(balance, "ENTRIES", 5)
        for number in range(7):
            as_operator(
                "credit",
                account="boss@example.com",
                kopecks=100 + number,
                reason="gift",
                idempotencyKey=str(number),
            )
        boss, path = world.person("boss"), f"{world.here.path}/balance"
        first = text(boss.get(path))
        assert first.count("<tr>") == 6
        (older,) = re.findall(r'href="\?before=(\d+)"', first)
        second = text(boss.get(f"{path}?before={older}"))
        assert second.count("<tr>") == 4  # two credits as gifts, the top-up, and the table's head
        assert "gift" in first
        assert "1.01" in second
        assert "1.01" not in first

    @pytest.mark.parametrize("before", ["0", "-1", "x", "9" * 30, "9" * 5000, "1.5", "\u0661"])
    def test_any_start_position_is_accepted(self, before: str, world: World) -> None:
        answer = world.person("boss").get(f"{world.here.path}/balance?before={quote(before)}")
        assert answer.status == 200
