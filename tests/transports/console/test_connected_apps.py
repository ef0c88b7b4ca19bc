"""The pages of the console for connected apps."""

import re

from chalicelib.domains.identity.store import accounts, connections, workspaces
from tests.conftest import PASSWORD, Time, call_operator
from tests.factories.console import World
from tests.factories.oauth import ConnectedApp, connect


def app_of(world: World, name: str = "boss", **changes: str) -> ConnectedApp:
    account = accounts.require_by_email(f"{name}@example.com").id
    return connect(workspaces.get(world.here.workspace_id), account, **changes)


def test_apps_are_listed_with_their_rights_and_owners(world: World) -> None:
    app_of(world, clientName="Claude", clientHost="claude.example")
    app_of(world, "manager", clientName="Editor")
    for name in ("boss", "manager"):
        html = world.person(name).get(f"{world.here.path}/apps").body.decode()
        for text in ("Claude", "claude.example", "Editor", "Leads and clients: read and write"):
            assert text in html
        assert "manager@example.com" in html
        assert "2 of 50" in html


def test_a_member_sees_no_apps_of_others(world: World) -> None:
    app_of(world, clientName="Claude")
    html = world.person("member").get(f"{world.here.path}/apps").body.decode()
    assert "<strong><span" not in html
    assert "disconnect" not in html


def test_page_says_how_an_app_is_connected(world: World) -> None:
    html = world.person("boss").get(f"{world.here.path}/apps").body
    assert b"http://127.0.0.1:8000/api/mcp" in html
    call_operator("set_plan", workspaceId=world.here.workspace_id, plan="start")
    html = world.person("boss").get(f"{world.here.path}/apps").body
    assert b"requires the Business plan or above" in html
    assert b"/api/mcp" not in html


def test_a_disconnected_app_stops_at_once_and_stays_in_the_list(world: World, time: Time) -> None:
    app, console_owner = app_of(world, "manager", clientName="Claude"), world.person("boss")
    path = f"{world.here.path}/apps/{app.id}/disconnect"
    assert "Disconnect “Claude”?" in console_owner.get(path).body.decode()
    assert app.works
    answer = console_owner.post(path)
    assert not app.works
    html = console_owner.get(answer.headers["Location"]).body.decode()
    assert "App disconnected." in html
    assert "1 of 50" not in html
    assert re.search(r"Claude.*disconnected.*2027", html, re.DOTALL)
    assert console_owner.get(path).status == 303
    ended_at = connections.require(app.id).ended_at
    time.pass_by(hours=1)
    assert console_owner.post(path).status == 303
    assert connections.require(app.id).ended_at == ended_at


def test_a_person_allows_the_own_app_more_from_the_link_of_an_error(world: World) -> None:
    app, boss = app_of(world, clientName="Claude"), world.person("boss")
    path = f"{world.here.path}/apps/{app.id}/allow"
    assert path in boss.get(f"{world.here.path}/apps").body.decode()
    html = boss.get(f"{path}?scope=projects:write").body.decode()
    assert "Allow “Claude” more?" in html
    assert html.count('name="currentPassword"') == 1
    assert 'value="projects:write" checked' in html
    assert 'value="pages:write">' in html
    assert 'value="crm:read"' not in html
    assert boss.post(path, {}).status == 400
    without_password = {"scopes": "projects:write", "currentPassword": ""}
    assert boss.post(path, without_password).status == 400
    answer = boss.post(path, {"scopes": "projects:write", "currentPassword": PASSWORD})
    assert "The app may do more now." in boss.get(answer.headers["Location"]).body.decode()
    assert "projects:write" in connections.require(app.id).scopes
    manager = world.person("manager")
    assert path not in manager.get(f"{world.here.path}/apps").body.decode()
    assert manager.get(path).status == 303


def test_a_member_cannot_disconnect_apps(world: World) -> None:
    app = app_of(world)
    path = f"{world.here.path}/apps/{app.id}/disconnect"
    member = world.person("member")
    assert (member.get(path).status, member.post(path).status) == (403, 403)
    assert app.works


def test_changing_the_password_asks_whether_apps_are_disconnected(world: World) -> None:
    app, others, console_owner = app_of(world), app_of(world, "manager"), world.person("boss")
    form = {"current": PASSWORD, "password": "another password"}
    console_owner.post("/console/account/password", form)
    assert app.works
    assert b'name="end_connections"' in console_owner.get("/console/account").body
    form = {"current": "another password", "password": PASSWORD, "end_connections": "yes"}
    assert console_owner.post("/console/account/password", form).status == 303
    assert not app.works
    assert others.works


def test_signing_out_everywhere_disconnects_the_accounts_apps(world: World) -> None:
    app, others, console_owner = app_of(world), app_of(world, "manager"), world.person("boss")
    console_owner.post("/console/account/sign-out")
    assert (app.works, others.works) == (False, True)


def test_the_audit_log_names_what_happened_to_an_app(world: World) -> None:
    app, console_owner = app_of(world, clientName="Claude"), world.person("boss")
    console_owner.post(f"{world.here.path}/apps/{app.id}/disconnect")
    html = console_owner.get(f"{world.here.path}/audit", accept_language="ru").body.decode()
    for text in ("Подключено приложение", "Приложение получило доступ", "Отключено приложение"):
        assert text in html
