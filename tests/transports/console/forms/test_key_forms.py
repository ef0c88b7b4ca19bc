"""API keys in the console, over HTTP."""

import json
import re
from datetime import UTC, datetime

import pytest

from chalicelib.core import clock
from chalicelib.core.settings import settings
from chalicelib.domains.identity.flows import connection_changes
from chalicelib.domains.identity.operations import key_list
from chalicelib.domains.identity.operations import keys as identity_keys
from chalicelib.domains.identity.store import api_keys
from chalicelib.domains.identity.store.api_keys import ApiKeyRow
from chalicelib.transports.console.settings import keys
from chalicelib.transports.console.settings.keys import preset
from tests.conftest import Answer, Api, Time, all_rows, call_operator
from tests.factories.console import Person, World
from tests.transports.conftest import Records
from tests.transports.console.forms.helpers import error_beside, text, token_of, value_of

KEY = {"name": "Laptop", "scopes": "projects:read", "once": "form-1"}


def ticked(answer: Answer) -> set[str]:
    """Return the scopes whose boxes are ticked."""
    return set(re.findall(r'name="scopes" value="([^"]*)" checked', answer.body.decode()))


class TestKeys:
    def test_a_token_is_shown_once_and_never_again(
        self, world: World, log_records: Records
    ) -> None:
        console_owner, keys = world.person("boss"), f"{world.here.path}/keys"
        response = console_owner.post(keys, KEY)
        assert response.status == 200
        token = token_of(response)
        page = text(response)
        assert f"curl -H 'Authorization: Bearer {token}' " in page
        config = re.search(r'id="mcp"><code>(.*?)</code>', page, re.DOTALL)
        assert config
        server = json.loads(config[1])["mcpServers"]["workspace"]
        assert server["url"] == f"{settings().public_url}/api/mcp"
        assert server["headers"] == {"Authorization": f"Bearer {token}"}
        repeated = console_owner.post(keys, KEY)
        assert repeated.status == 409
        revoke = re.search(r'href="([^"]*/revoke)"', repeated.body.decode())
        assert revoke
        assert "The form was sent twice" in text(repeated)
        key_list = console_owner.get(keys)
        pages = [repeated, key_list, console_owner.get(revoke[1]), *map(console_owner.get, (
            f"{world.here.path}/audit", world.here.path, "/console/account",
        ))]  # fmt: skip
        key_id = revoke[1].split("/")[-2]
        pages.append(console_owner.post(revoke[1]))
        pages.append(console_owner.get(pages[-1].headers["Location"]))
        assert "Key revoked" in text(pages[-1])
        secret = token.removeprefix("svc_live_")[:20]
        outputs = [*(page.body.decode() for page in pages), *log_records.lines]
        outputs.append(json.dumps(all_rows(), default=str))
        assert not [output for output in outputs if secret in output]
        assert key_id in text(console_owner.get(f"{world.here.path}/audit"))
        assert f"svc_live_…{token[-4:]}" in text(key_list)

    def test_a_form_sent_twice_with_changes_creates_no_second_key(self, world: World) -> None:
        console_owner, keys = world.person("boss"), f"{world.here.path}/keys"
        console_owner.post(keys, KEY)
        count_before = len(api_keys.live(world.here.workspace_id))
        answer = console_owner.post(keys, KEY | {"name": "Phone"})
        assert answer.status == 409
        assert value_of(answer, "name") == "Phone"
        assert len(api_keys.live(world.here.workspace_id)) == count_before
        (once,) = re.findall(r'name="once" value="([^"]*)"', answer.body.decode())
        assert console_owner.post(keys, KEY | {"name": "Phone", "once": once}).status == 200

    def test_a_key_expires_at_the_end_of_the_day_in_the_workspaces_zone(
        self, world: World, time: Time
    ) -> None:
        console_owner = world.person("boss")  # in Vladivostok, it is 22:00 on January 15
        response = console_owner.post(f"{world.here.path}/keys", KEY | {"expires": "2027-01-15"})
        assert response.status == 200
        (key,) = [k for k in api_keys.live(world.here.workspace_id) if k.name == "Laptop"]
        assert key.expires_at == datetime(2027, 1, 15, 13, 59, 59, tzinfo=UTC)
        api = Api(token_of(response))
        api.get("/api/projects/list")
        time.pass_by(hours=2)
        assert api.call_refused("GET", "/api/projects/list").status == 401

    def test_times_show_the_offset_of_the_workspaces_zone(self, world: World) -> None:
        console_owner, keys = world.person("boss"), f"{world.here.path}/keys"
        assert "Works until the end of this day (Asia/Vladivostok)" in text(
            console_owner.get(f"{keys}/new")
        )
        year = clock.now().year + 1
        console_owner.post(keys, KEY | {"expires": f"{year}-01-15"})
        pattern = r">15 Jan {}, {}:59</time>\s*<span[^>]*data-offset=\"{}\"[^>]*>UTC\+{}</span>"
        assert re.search(pattern.format(year, 23, 600, 10), console_owner.get(keys).body.decode())
        call_operator(
            "set_workspace", workspaceId=world.here.workspace_id, timezone="Europe/Berlin"
        )
        assert re.search(pattern.format(year, 14, 60, 1), console_owner.get(keys).body.decode())

    def test_the_list_finds_a_key_by_name_and_shows_its_creator(self, world: World) -> None:
        manager = world.person("manager")
        manager.post(f"{world.here.path}/keys", KEY)
        page = text(manager.get(f"{world.here.path}/keys?q=lapt"))
        assert "Laptop" in page
        assert "manager@example.com" in page

    def test_a_key_that_expires_at_the_end_of_the_calendar_is_listed(self, world: World) -> None:
        key = api_keys.require(world.here.key)
        key.update([ApiKeyRow.expires_at.set(datetime.max.replace(tzinfo=UTC))])
        assert "31 Dec 9999" in text(world.person("boss").get(f"{world.here.path}/keys"))

    def test_only_the_latest_inactive_keys_are_shown(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(keys, "MAX_INACTIVE_SHOWN", 2)
        console_owner = world.person("boss")
        for number in range(3):
            console_owner.post(
                f"{world.here.path}/keys", KEY | {"name": f"No {number}", "once": str(number)}
            )
        for key in api_keys.live(world.here.workspace_id):
            if key.name.startswith("No "):
                console_owner.post(f"{world.here.path}/keys/{key.key_id}/revoke")
                second_page = console_owner.get(f"{world.here.path}/keys/{key.key_id}/revoke")
                assert second_page.headers["Location"].endswith("/keys?done=key_revoked")
        page = text(console_owner.get(f"{world.here.path}/keys"))
        assert "3 keys no longer work" in page
        assert "The latest 2 are shown." in page
        assert page.count(">No ") == 2

    def test_a_message_is_shown_when_the_workspace_has_the_maximum_number_of_keys(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (identity_keys, key_list):
            monkeypatch.setattr(module, "MAX_LIVE_KEYS", 1)
        console_owner, path = world.person("boss"), f"{world.here.path}/keys"
        page = text(console_owner.get(path))
        assert "The workspace has 1 active keys, which is the limit." in page
        assert f'href="{path}/new"' not in page
        assert console_owner.get(f"{path}/new").headers["Location"] == path
        answer = console_owner.post(path, KEY, accept_language="ru")
        assert answer.status == 409
        assert "Сначала отзовите" in text(answer)
        assert "уже 1 действующих ключей" in text(answer)

    def test_a_message_says_that_connected_apps_count_with_the_keys(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connection_changes, "MAX_LIVE_TOGETHER", 1)
        answer = world.person("boss").post(f"{world.here.path}/keys", KEY, accept_language="en")
        assert answer.status == 409
        assert "The workspace has 1 active keys and connected apps together" in text(answer)


class TestKeyForm:
    @pytest.mark.parametrize("name", ["read", "agent", "everything"])
    def test_a_preset_ticks_boxes_and_keeps_the_entered_name(self, name: str, world: World) -> None:
        console_owner, rows_before = world.person("boss"), all_rows()
        fields = {"name": "Lap & top", "expires": "2030-01-31", "preset": name}
        answer = console_owner.post(f"{world.here.path}/keys", fields)
        assert answer.status == 200
        assert ticked(answer) == preset(name, admin=False)
        assert value_of(answer, "name") == "Lap & top"
        assert value_of(answer, "expires") == "2030-01-31"
        assert all_rows() == rows_before

    def test_blog_scopes_are_offered_to_admins_only(self, world: World) -> None:
        path = f"{world.here.path}/keys/new"
        assert "blog:" not in text(world.person("boss").get(path))
        call_operator(
            "create_account", email="root@example.com", password="long enough", role="admin"
        )
        member = {"workspaceId": world.here.workspace_id, "email": "root@example.com"}
        call_operator("add_member", **member, role="manager")
        root = Person("root@example.com")
        root.start_session("long enough")
        assert 'value="blog:write"' in text(root.get(path))
        assert "blog:read" in preset("everything", admin=True)

    @pytest.mark.parametrize(
        ("field", "typed_fields"),
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
        self, field: str, typed_fields: dict[str, str], world: World, time: Time
    ) -> None:
        console_owner = world.person("boss")
        answer = console_owner.post(f"{world.here.path}/keys", KEY | typed_fields)
        assert answer.status == 400
        assert error_beside(answer, field)
        for name, value in (KEY | {"expires": ""} | typed_fields).items():
            if name in {"name", "expires"}:
                assert value_of(answer, name) == value
        assert ticked(answer) == {"projects:read"}

    @pytest.mark.parametrize("plan", ["free", "start"])
    def test_on_plans_below_business_keys_are_listed_but_cannot_be_created(
        self, plan: str, world: World
    ) -> None:
        call_operator("set_plan", workspaceId=world.here.workspace_id, plan=plan)
        console_owner, keys = world.person("boss"), f"{world.here.path}/keys"
        count_before = len(api_keys.live(world.here.workspace_id))
        key_list = console_owner.get(keys)
        assert key_list.status == 200
        assert f"svc_live_…{world.here.token[-4:]}" in text(key_list)
        assert "Upgrade to create keys" in text(key_list)
        assert f"{keys}/new" not in text(key_list)
        assert console_owner.get(f"{keys}/new").headers["Location"] == keys
        answer = console_owner.post(keys, KEY)
        assert answer.status == 403
        assert text(answer).count("Upgrade to create keys") == 1
        assert value_of(answer, "name") == "Laptop"
        assert len(api_keys.live(world.here.workspace_id)) == count_before
        assert console_owner.post(f"{keys}/{world.here.key}/revoke").status == 303
