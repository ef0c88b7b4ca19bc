"""The content and the readers of every page of the console."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from chalicelib.application.invoke import may_in_console
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Role
from chalicelib.core.settings import settings
from chalicelib.engine import audit
from chalicelib.transports.console.routes import (
    BOT,
    PREFIX,
    RESET_PASSWORD,
    ROUTES,
    SIGN_UP_LINK,
    WORKSPACE,
)
from tests.conftest import call_operator
from tests.factories.console import HOSTILE, Person, World
from tests.factories.console_forms import (
    FORMS,
    OPEN,
    READ,
    SENT,
    prepare,
    read_rows,
    sweep_of_pages,
)
from tests.support.effort import drawn
from tests.support.sweep import sweep

ROUTES_OF_WORKSPACES = [route for route in ROUTES if route.startswith(WORKSPACE)]
PAGES_OF_WORKSPACES = [route for route in READ if route.startswith(WORKSPACE)]
every_form_of_a_workspace = pytest.mark.parametrize(
    "route", [route for route in SENT if route.startswith(WORKSPACE)]
)


def paths_of_strangers(route: str, world: World) -> Iterator[tuple[str, str]]:
    """Yield paths with ids of another workspace, each with a path of ids that never existed.

    The first pair is in the other workspace. In the others, more and more of the first ids are the
    user's own.
    """
    foreign = world.there.path_of(route)
    yield foreign, foreign.replace(world.there.slug, "never")
    own_ids, theirs = world.here.values_of(route), world.there.values_of(route)
    variables = [name for name in re.findall(r"{(\w+)}", route) if name != "workspace"]
    for known in range(len(variables)):
        others = variables[known:]
        yield (
            route.format(**own_ids | {name: theirs[name] for name in others}),
            route.format(**own_ids | {name: new_id() for name in others}),
        )


SANDBOXES = {None, "allow-scripts"}
"""Frames have neither the console's origin nor its cookies. None: nothing at all is allowed."""


class Markup(HTMLParser):
    """Collects the parts of a page that could run script."""

    def __init__(self, html: bytes) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.feed(html.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        own_file = (values.get("src") or "").startswith(f"{settings().public_url}/files/")
        if tag in {"object", "embed", "base"} or (tag == "img" and not own_file):
            self.bad.append(tag)
        if tag == "iframe" and ("src" in values or values.get("sandbox", "") not in SANDBOXES):
            self.bad.append(tag)
        if tag == "script" and not re.fullmatch(r"/assets/console\.\w+\.js", values["src"] or ""):
            self.bad.append("script")
        for name, value in attrs:
            link = name in {"href", "action", "src", "formaction"}
            public = settings().public_url
            own_page = (value or "").startswith((f"{public}/s/", f"{public}/form/"))
            local = (
                own_page
                or own_file
                or re.match(r"/(?!/)|\?|#|data:,$|tel:[+%;=\w]+$|mailto:[\w%.+-]+$", value or "")
            )
            if name.startswith("on") or name == "style" or (link and not local):
                self.bad.append(f"{tag} {name}={value}")


@pytest.fixture
def entry_of_the_audit_log(world: World, console_owner: Person) -> None:
    console_owner.post(world.here.path_of(f"{BOT}/limits"), {"daily": "5"})


class TestPages:
    @sweep_of_pages
    def test_names_are_shown_as_text(
        self, route: str, world: World, console_owner: Person, entry_of_the_audit_log: None
    ) -> None:
        prepare(route, world.here)
        answer = console_owner.get(world.here.path_of(route))
        if answer.status == 303:
            return
        assert answer.status == 200
        html = answer.body.decode()
        assert Markup(answer.body).bad == []
        assert "&lt;img src=x onerror=alert(1)&gt;" in html
        assert HOSTILE not in html
        assert "{{733*733}}" in html
        assert "537289" not in html  # the product of what HOSTILE multiplies

    def test_pages_with_an_empty_log_are_shown(self, world: World) -> None:
        page = world.person("boss").get(f"{world.here.path}/audit")
        assert page.status == 200
        assert b'class="empty"' in page.body

    def test_submitted_values_are_shown_as_text(self, world: World) -> None:
        console_owner, here, typed_value = (
            world.person("boss"),
            world.here.path,
            quote(HOSTILE, safe=""),
        )
        bot = f"{here}/bots/{world.here.bot}"
        answers = [
            Person("x").start_session(email=HOSTILE),
            console_owner.post(
                f"{here}/keys", {"name": HOSTILE, "expires": HOSTILE, "scopes": HOSTILE}
            ),
            console_owner.post(f"{here}/keys", {"name": HOSTILE, "preset": HOSTILE}),
            console_owner.post(f"{bot}/keys", {"name": HOSTILE * 9}),
            console_owner.post(f"{bot}/limits", {"daily": HOSTILE, "weekly": HOSTILE}),
            console_owner.get(f"{here}/keys?q={typed_value}"),
            console_owner.get(
                f"{here}/audit?actor={typed_value}&from={typed_value}&to={typed_value}&before={typed_value}"
            ),
            console_owner.get(f"{here}/balance?before={typed_value}"),
            console_owner.get(f"{here}/keys?done={typed_value}"),
            console_owner.get(
                f"{here}/leads?q={typed_value}&status={typed_value}&form={typed_value}&tag={typed_value}"
            ),
            console_owner.get(
                f"{here}/leads?from={typed_value}&to={typed_value}&page={typed_value}"
            ),
            console_owner.post(f"{here}/leads", {"q": HOSTILE, "status": HOSTILE}),
            console_owner.post(
                f"{here}/leads/{world.here.lead}", {"notes": HOSTILE, "email": HOSTILE}
            ),
            console_owner.get(
                f"{here}/dialogs?q={typed_value}&bot={typed_value}&channel={typed_value}&lead={typed_value}"
            ),
        ]
        for answer in answers:
            assert answer.status < 500
            assert Markup(answer.body).bad == []
            assert b"<img" not in answer.body

    @pytest.mark.parametrize(("route", "shares"), drawn(range(3), OPEN))
    def test_pages_are_not_framed_or_cached_and_run_no_inline_script(
        self, route: str, shares: list[int], world: World
    ) -> None:
        console_owner, path = world.person("boss"), world.here.path_of(route)
        prepare(route, world.here)
        visitor = Person("x")
        form = world.here.filled(FORMS.get(route, {}))
        requests = [
            lambda: visitor.get(path),
            lambda: visitor.request("PUT", path),
            lambda: console_owner.get(path),
            lambda: console_owner.request("HEAD", path),
            lambda: console_owner.request("DELETE", path),
            lambda: console_owner.get(path, authorization="Bearer x"),
            lambda: console_owner.post(path, form, csrf=""),
            lambda: console_owner.get(path.replace(world.here.slug, "none")),
            lambda: console_owner.post(path, form),
        ]
        answers = [send() for share in shares for send in requests[share::3]]
        for answer in answers:
            headers = answer.headers
            assert headers["X-Frame-Options"] == "DENY"
            assert headers["Cache-Control"] == "no-store"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
            is_routed = route in {RESET_PASSWORD, SIGN_UP_LINK} and answer.status not in {404, 405}
            expected = "strict-origin" if is_routed else "same-origin"
            assert headers["Referrer-Policy"] == expected
            assert "ETag" not in headers
            policy = dict(
                part.strip().partition(" ")[::2]
                for part in headers["Content-Security-Policy"].split(";")
            )
            assert policy["default-src"] == "'none'"
            assert policy["frame-ancestors"] == "'none'"
            assert policy.get("script-src", "'self'") == "'self'"
            if route.endswith(
                ("/{version}", "/draft")
            ):  # a page of a site, with its own styles, in a sandbox
                styles = policy.get("style-src", "").removeprefix("'self'")
                if styles == " 'unsafe-inline' https:":
                    del policy["style-src"]
            assert not re.search("unsafe|[*]|http:", " ".join(policy.values()))
            if headers.get("Content-Type", "").startswith("text/html"):
                assert (policy["form-action"], policy["base-uri"]) == ("'self'", "'none'")


@pytest.fixture
def users_by_role(world: World) -> dict[str, Person]:
    """Signed-in members of each role in the workspace."""
    return {name: world.person(name) for name in ("boss", "manager", "member")}


OWN_APP = f"{WORKSPACE}/apps/{{connection}}/allow"
"""A form for the account that connected the app, which is the owner's."""


WIPE = f"{WORKSPACE}/wipe"
"""A form that empties a test workspace only, which this one is not."""


UNCHANGED = {
    WIPE,
    *(f"{WORKSPACE}/clients/{{client}}/{what}" for what in ("advertising", "messenger")),
}
"""Forms that change nothing here.

This client has no consent to withdraw, and no chat to end.
"""


class TestAccess:
    @every_form_of_a_workspace
    @pytest.mark.parametrize("name", ["boss", "manager", "member"])
    def test_a_form_is_accepted_from_people_who_may_call_its_operation_alone(
        self, route: str, name: str, world: World
    ) -> None:
        person, path = world.person(name), world.here.path_of(route)
        prepare(route, world.here)
        rows_before = read_rows()
        answer = person.post(path, world.here.filled(FORMS[route]))
        if may(name, ROUTES[route].posts) and not (route == OWN_APP and name != "boss"):
            assert answer.status in {200, 303}
            assert (read_rows() != rows_before) is (route not in UNCHANGED)
            return
        assert answer.status == 403
        assert b"does not allow this" in answer.body
        assert answer.headers["Content-Type"].startswith("text/html")
        if name == "member" or route != OWN_APP:  # A manager's password counts in the session.
            assert read_rows() == rows_before

    @pytest.mark.parametrize("name", ["boss", "manager", "member"])
    @sweep("route", PAGES_OF_WORKSPACES)
    def test_a_page_is_shown_to_people_who_may_call_its_operation_alone(
        self, route: str, name: str, world: World, users_by_role: dict[str, Person]
    ) -> None:
        answer = users_by_role[name].get(world.here.path_of(route))
        assert answer.status in ({200, 303} if may(name, ROUTES[route].shows) else {403})
        offered_paths = set(re.findall('action="([^"]*)"', answer.body.decode()))
        refused_paths = {
            world.here.path_of(route)
            for route, page in ROUTES.items()
            if page.posts and not may(name, page.posts)
        }
        assert not offered_paths & refused_paths

    @pytest.mark.parametrize("name", ["boss", "manager", "member"])
    def test_the_menu_leads_to_pages_that_a_person_may_open(self, name: str, world: World) -> None:
        person = world.person(name)
        html = person.get(world.here.path).body.decode()
        links = set(re.findall(f'href="({world.here.path}[^"]*)"', html))
        assert links
        assert {person.get(link).status for link in links} <= {200, 303}

    @sweep("route", ROUTES_OF_WORKSPACES)
    def test_a_strangers_workspace_looks_like_an_unknown_one(
        self, route: str, world: World, console_owner: Person
    ) -> None:
        rows_before = read_rows()
        for foreign, never in paths_of_strangers(route, world):
            for method in ("get", "post"):
                if not getattr(ROUTES[route], method):
                    continue
                arguments = [world.here.filled(FORMS[route])] if method == "post" else []
                existing, unknown = (
                    getattr(console_owner, method)(path, *arguments) for path in (foreign, never)
                )
                assert existing.status == unknown.status
                assert existing.status in {303, 404}  # 303: as for a record that is deleted
                assert existing.body == unknown.body
        # A session that has had the password says so, whatever it was typed for.
        changed = {key for key, row in read_rows().items() if rows_before.get(key) != row}
        assert all("/SESSION#" in key for key in changed)

    def test_access_ends_with_the_membership_at_once(self, world: World) -> None:
        manager, path = world.person("manager"), f"{world.here.path}/keys"
        assert manager.get(path).status == 200
        member = {"workspaceId": world.here.workspace_id, "email": "manager@example.com"}
        call_operator("add_member", **member, role="member")
        assert manager.get(path).status == 403
        assert manager.post(path, FORMS[f"{WORKSPACE}/keys"]).status == 403
        call_operator("remove_member", **member)
        assert manager.get(path).status == 404
        assert manager.post(path, FORMS[f"{WORKSPACE}/keys"]).status == 404
        assert world.here.slug not in manager.get("/console/account").body.decode()
        assert manager.get(PREFIX).headers["Location"] == "/console/account"

    def test_access_ends_with_the_account_at_once(self, world: World) -> None:
        manager = world.person("manager")
        call_operator("disable_account", email="manager@example.com")
        assert manager.get(f"{world.here.path}/keys").status == 303


def may(name: str, operation: str) -> bool:
    """Whether a user of the world may call an operation."""
    role = {"boss": Role.OWNER}.get(name) or Role(name)
    return may_in_console(REGISTRY.entry(operation), role)


ROWS = "its row in chalicelib/transports/console/routes.py names the operation that decides access"


def test_every_page_of_a_workspace_declares_the_operations_that_it_is_for() -> None:
    for route, page in ROUTES.items():
        if route.startswith(WORKSPACE):
            assert bool(page.get) is bool(page.shows), f"{route}: shows= of {ROWS}"
            assert bool(page.post) is bool(page.posts), f"{route}: posts= of {ROWS}"


def test_a_plain_member_sees_no_form_that_would_be_refused(world: World) -> None:
    member, keys = world.person("member"), f"{world.here.path}/keys"
    for fields in ({"preset": "read"}, {"name": "Laptop", "scopes": "crm:read"}):
        answer = member.post(keys, fields)
        assert answer.status == 403
        assert b"Your role in this workspace does not allow this" in answer.body
        assert b'name="scopes"' not in answer.body


class TestFilteredAuditLog:
    def test_paging_continues_past_entries_that_the_filter_excludes(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        console_owner, here = world.person("boss"), f"{world.here.path}/audit"
        path = f"{world.here.path}/bots/{world.here.bot}/limits"
        call_operator("set_bot", id=world.here.bot, isPrivate=False)
        for amount in range(1, 4):
            console_owner.post(path, {"daily": str(amount)})
        monkeypatch.setattr(audit, "MAX_SCANNED", 3)
        page, visited = console_owner.get(f"{here}?actor=operator"), []
        while b"<strong>the operator of the service" not in page.body:
            assert b"Nothing found." not in page.body
            (older,) = re.findall(r'href="(\?before=[^"]+)"', page.body.decode())
            visited.append(older)
            page = console_owner.get(here + older.replace("&amp;", "&"))
        assert visited
        assert (
            b"Nothing found among the latest changes"
            in console_owner.get(f"{here}?actor=operator").body
        )

    def test_an_invalid_day_is_reported_beside_its_field(self, world: World) -> None:
        page = world.person("boss").get(f"{world.here.path}/audit?from=x&to=2027-01-31").body
        assert page.count(b"aria-invalid") == 1
        assert b'<a href="#from">From: enter a day' in page


def test_a_search_of_bots_is_visible_and_can_be_removed(world: World) -> None:
    page = world.person("boss").get(f"{world.here.path}/bots?q=zzz").body
    assert b"Nothing found" in page
    assert b'value="zzz"' in page


COMMANDS = [
    *("bots", "clients", "dialogs", "forms", "keys"),
    *("leads", "services", "sites", "staff"),
]
"""Pages that show a command while the workspace has no records for them."""


def test_commands_on_empty_pages_are_marked_as_for_programs(world: World) -> None:
    call_operator("create_workspace", owner="boss@example.com", name="Empty", slug="empty")
    console_owner = world.person("boss")
    for path in COMMANDS:
        page = console_owner.get(f"/console/w/empty/{path}").body.decode()
        label, command, _ = re.split(r'<div class="code"><pre[^>]*><code>(curl )', page)
        assert command == "curl ", path
        assert label.endswith('<details class="more"><summary>For programmers</summary>'), path
        assert page.count('class="button"') >= 1, path
