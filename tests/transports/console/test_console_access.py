"""Access to the console: sessions, forms and redirects, checked for all of its pages."""

import re
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from chalicelib.core.ids import new_id
from chalicelib.domains.identity.store import console_sessions
from chalicelib.lib import tokens
from chalicelib.transports.console import access
from chalicelib.transports.console.console_request import MAX_FIELDS
from chalicelib.transports.console.routes import (
    BOOKING,
    BOT,
    CLIENT,
    FORM,
    INVITATION,
    PREFIX,
    ROUTES,
    SERVICE,
    SITE,
    STAFF,
    WEBHOOK,
    WORKSPACE,
)
from tests.conftest import PASSWORD, Answer, all_rows, as_operator, run_concurrently
from tests.factories.console import EVENT, Person, World, begun, cookies
from tests.transports.conftest import LocalServer

FORMS: dict[str, dict[str, str]] = {
    f"{PREFIX}/sign-in": {"email": "boss@example.com", "password": PASSWORD},
    f"{PREFIX}/sign-out": {},
    INVITATION: {"once": "1"},
    f"{PREFIX}/account": {"name": "Ada", "language": "ru"},
    f"{PREFIX}/account/password": {"current": PASSWORD, "password": "a new password"},
    f"{PREFIX}/account/sessions": {"id": "0" * 26},
    f"{PREFIX}/account/sign-out": {},
    f"{WORKSPACE}/leads": {"status": "new"},
    f"{WORKSPACE}/leads/{{lead}}": {"notes": "Call back", "once": "1"},
    CLIENT: {"name": "Anna", "email": "", "phone": "", "tags": "", "notes": "", "ifVersion": ""},
    f"{CLIENT}/erase": {},
    f"{WORKSPACE}/keys": {"name": "Laptop", "scopes": "crm:read", "once": "1"},
    f"{WORKSPACE}/keys/{{id}}/revoke": {},
    f"{WORKSPACE}/apps/{{connection}}/disconnect": {},
    f"{WORKSPACE}/bots": {"name": "Anna", "systemPrompt": "x", "model": "demo", "once": "1"},
    f"{BOT}/settings": {"name": "Anna", "systemPrompt": "You bake bread.", "model": "demo"},
    f"{BOT}/embed": {"page": "{page}"},
    f"{BOT}/keys": {"name": "Site", "once": "1"},
    f"{BOT}/keys/{{key}}/delete": {},
    f"{BOT}/limits": {"daily": "5", "weekly": "", "monthly": "70"},
    f"{BOT}/capabilities": {"capabilities": "booking", "orderFormId": "", "privacyUrl": ""},
    f"{BOT}/knowledge": {"kind": "text", "title": "Delivery", "text": "On weekdays.", "once": "1"},
    f"{BOT}/knowledge/{{source}}": {},
    f"{WORKSPACE}/forms": {"template": "contact", "once": "1"},
    FORM: {"title": "Call me", "name": "phone", "label": "Phone", "type": "phone", "options": ""},
    f"{FORM}/embed": {"page": "{page}"},
    f"{FORM}/delete": {},
    f"{WORKSPACE}/sites": {"title": "Bakery", "once": "1"},
    SITE: {"title": "Bakery", "active": "on"},
    f"{SITE}/delete": {},
    f"{SITE}/pages": {"title": "Menu", "once": "1"},
    f"{SITE}/pages/{{page}}/html": {"html": "<h1>Menu</h1>"},
    f"{SITE}/pages/{{page}}/delete": {},
    f"{WORKSPACE}/deleted-sites/{{deleted_site}}": {},
    f"{SITE}/deleted-pages/{{deleted_page}}": {},
    f"{SITE}/pages/{{page}}/{{version}}": {"ifVersion": ""},
    f"{WORKSPACE}/booking-page": {"isOn": "1", "phone": "+7 495 123-45-67"},
    f"{WORKSPACE}/bookings/new": {
        "action": "book",
        "date": "2027-01-20",
        "exact": "10:00",
        "outside": "1",
        "name": "Eve",
        "once": "1",
    },
    BOOKING: {"action": "cancelled"},
    f"{WORKSPACE}/webhooks": {"url": "https://bakery.example", "events": "all", "once": "1"},
    WEBHOOK: {"url": "https://bakery.example", "events": "chosen", "types": "lead.created"},
    f"{WEBHOOK}/status": {"status": "off"},
    f"{WEBHOOK}/test": {"once": "1"},
    f"{WEBHOOK}/deliveries": {"eventId": EVENT},
    f"{WEBHOOK}/secret": {"once": "1"},
    f"{WEBHOOK}/delete": {},
    f"{WORKSPACE}/services": {"name": "Haircut", "durationMin": "1:30", "once": "1"},
    SERVICE: {"name": "Haircut", "durationMin": "90", "active": "yes"},
    f"{SERVICE}/delete": {},
    f"{WORKSPACE}/staff": {"name": "Anna", "once": "1"},
    STAFF: {"name": "Anna", "timezone": "Europe/Moscow", "active": "yes"},
    f"{STAFF}/delete": {},
    f"{STAFF}/hours": {"open": "mon", "start-mon": "09:00", "end-mon": "18:00"},
    f"{STAFF}/time-off": {"startAt": "2027-05-01", "once": "1"},
    f"{WORKSPACE}/closed-days": {"startAt": "2027-05-01", "once": "1"},
    f"{WORKSPACE}/notifications": {"mail": "lead", "language": "ru"},
    f"{WORKSPACE}/settings": {"name": "Bakery", "timezone": "Asia/Tomsk", "country": "DE"},
    f"{WORKSPACE}/members": {"email": "new@example.com", "role": "member", "once": "1"},
    f"{WORKSPACE}/members/{{member}}": {},
}
"""A valid form for each page that accepts one. ``Place.filled`` puts in the ids of records."""
READ = [route for route, page in ROUTES.items() if page.get]
SENT = [route for route, page in ROUTES.items() if page.post]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

OVER = "/console/sign-in?done=session_over"

every_route = pytest.mark.parametrize("route", ROUTES)
every_page = pytest.mark.parametrize("route", READ)
every_form = pytest.mark.parametrize("route", SENT)


def stored() -> dict[str, Any]:
    """Return the stored rows, except counters of visitors."""
    return {key: row for key, row in all_rows().items() if not re.search("/(LIMIT|SALT)#", key)}


def lives(token: str) -> bool:
    return access.signed_in_request(request_with(token)) is not None


def request_with(token: str) -> Any:
    from chalicelib.transports.http import HttpRequest

    return HttpRequest("GET", PREFIX, {"cookie": f"{access.COOKIE}={token}"})


def test_every_form_is_covered() -> None:
    assert set(FORMS) == set(SENT)


class TestApiKeys:
    @every_route
    def test_an_api_key_gives_no_access_wherever_it_is_sent(self, route: str, world: World) -> None:
        boss, path, key = world.person("boss"), world.here.path_of(route), world.here.token
        before = stored()
        headers: list[dict[str, str]] = [
            {"Authorization": f"Bearer {key}"},
            {"Authorization": f"bearer   {key}"},
            {"Authorization": key},
            {"Authorization": "Basic Ym9zczpib3Nz"},
            {"X-Api-Key": key},
            {"X-Anything": f"token={world.here.bot_token}"},
            {"Cookie": f"{boss.headers['Cookie']}; key={key}"},
            {"Cookie": f"{access.COOKIE}={key}"},
        ]
        answers = [boss.request(m, path, **h) for h in headers for m in ("GET", "POST")]
        for query in (f"apiKey={key}", f"a=1&b={quote(key, safe='')}", f"{key}=1"):
            answers += [boss.request(method, f"{path}?{query}") for method in METHODS[:-1]]
        form = world.here.filled(FORMS.get(route, {}))
        answers.append(boss.post(path, {**form, "name": key}))
        for answer in answers:
            assert answer.status == 403, answer
        for answer in filter(lambda each: each.body, answers):
            assert (answer.data["status"], answer.data["code"]) == (False, "forbidden")
        assert stored() == before

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize(
        "path",
        [
            "/console/account",
            "/console/none",
            "/console/w/a/b/c/d/e",
            "/console//account",
            "/%63onsole/x",
        ],
    )
    def test_an_api_key_gives_no_access_on_unknown_pages(
        self, method: str, path: str, local_server: LocalServer
    ) -> None:
        request_line = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        key = tokens.generate()
        with_key = f"{request_line}Authorization: Bearer svc_live_abc\r\n\r\n"
        in_query = f"{request_line}\r\n".replace(" HTTP", f"?a={key} HTTP")
        in_path = f"{request_line}\r\n".replace(" HTTP", f"/{key}/keys HTTP")
        for text in (with_key, in_query, in_path):
            reply = local_server.request(text.encode())
            assert reply.status == 403
            if method != "HEAD":
                assert reply.data["code"] == "forbidden"
        reply = local_server.request(f"{request_line}\r\n".encode())
        if path == "/console/account":
            assert reply.status == (303 if method in {"GET", "HEAD", "POST"} else 405)
            return
        assert reply.status == 404
        assert reply.header("Content-Type") == "text/html; charset=utf-8"
        assert reply.header("X-Frame-Options") == "DENY"

    def test_an_api_key_in_a_path_gives_no_access(self, world: World) -> None:
        key, boss = world.here.token, world.person("boss")
        for person in (boss, Person("boss@example.com")):
            for path in (f"/console/w/{key}/keys", f"{world.here.path}/keys/{key}/revoke"):
                answer = person.get(path)
                assert (answer.status, answer.data["code"]) == (403, "forbidden")
                assert "Location" not in answer.headers

    def test_an_api_key_pasted_into_a_search_is_refused_with_an_explanation(
        self, world: World
    ) -> None:
        boss = world.person("boss")
        path = f"{world.here.path}/keys?q={world.here.token}"
        answer = boss.request("GET", path, Accept="text/html,*/*;q=0.8")
        assert answer.status == 403
        assert b"The request contains an API key" in answer.body
        assert world.here.token.encode() not in answer.body

    def test_a_name_may_begin_like_an_api_key(self, world: World) -> None:
        boss = world.person("boss")
        form = {"name": "svc_live_prod", "scopes": "pages:read"}
        assert boss.post(f"{world.here.path}/keys", form).status == 200
        assert b"svc_live_prod" in boss.get(f"{world.here.path}/keys?q=svc_live_").body

    def test_a_masked_key_may_be_searched_for(self, world: World) -> None:
        shown = f"svc_live_…{world.here.token[-4:]}"
        boss = world.person("boss")
        found = boss.get(f"{world.here.path}/keys?q={quote(shown)}")
        assert found.status == 200
        assert shown in found.body.decode()


class TestSession:
    @every_page
    def test_a_page_without_a_session_leads_to_sign_in_and_back(
        self, route: str, world: World
    ) -> None:
        visitor, path = Person("boss@example.com"), world.here.path_of(route)
        answer = visitor.get(path)
        if ROUTES[route].guest:
            assert answer.status == 200
            return
        assert (answer.status, answer.body) == (303, b"")
        target = urlsplit(answer.headers["Location"])
        assert (target.scheme, target.netloc, target.path) == ("", "", "/console/sign-in")
        back = parse_qs(target.query).get("next", [PREFIX])[-1]
        assert back == path
        assert visitor.start_session(next=back).headers["Location"] == path

    @every_form
    def test_a_form_without_a_session_leads_to_sign_in(self, route: str, world: World) -> None:
        visitor = Person("boss@example.com")
        visitor.get("/console/sign-in")
        token, before = visitor.token, stored()
        for csrf in ("", visitor.csrf):
            answer = visitor.post(world.here.path_of(route), world.here.filled(FORMS[route]), csrf)
            if csrf and route.startswith(WORKSPACE):  # kept: see test_kept_forms.py
                assert answer.status == 403
            elif not ROUTES[route].guest:
                assert answer.status == 303
                target = urlsplit(answer.headers["Location"])
                parameters = {k: v for k, (v,) in parse_qs(target.query).items()}
                assert target.path == "/console/sign-in"
                out = route.endswith("sign-out")
                assert parameters.pop("done") == ("signed_out" if out else "session_over")
                assert parameters == (
                    {"next": world.here.path_of(route)} if ROUTES[route].get else {}
                )
                message = b"You are signed out" if out else b"check whether it was accepted"
                assert message in visitor.get(answer.headers["Location"]).body
                assert visitor.token == token
        if not ROUTES[route].guest:
            assert stored() == before

    @pytest.mark.parametrize(
        "cookie",
        [
            "",
            "x",
            '"quoted"',
            "a b",
            "A" * 43,
            "A" * 4000,
            "Пекарня",
            "%00%0d%0a",
            "a;b",
            "../..",
        ],
    )
    def test_signing_in_works_with_any_old_cookie(self, cookie: str, world: World) -> None:
        visitor = Person("boss@example.com", cookie)
        assert visitor.get(f"{world.here.path}/keys").status == 303
        assert visitor.start_session().status == 303
        assert visitor.get(f"{world.here.path}/keys").status == 200

    def test_a_planted_session_id_is_never_used(self, world: World) -> None:
        planted = "A" * 43
        visitor = Person("boss@example.com", planted)
        visitor.start_session()
        assert visitor.token != planted
        assert lives(visitor.token)
        assert not lives(planted)
        assert console_sessions.find(planted) is None

    def test_signing_in_again_ends_the_old_session(self, world: World) -> None:
        boss = world.person("boss")
        before = boss.token
        assert boss.post("/console/sign-in", FORMS["/console/sign-in"]).status == 303
        assert boss.token != before
        assert lives(boss.token)
        assert not lives(before)
        assert boss.get("/console/sign-in").headers["Location"] == PREFIX

    def test_the_cookie_is_for_this_host_and_hidden_from_scripts(self, world: World) -> None:
        visitor = Person("boss@example.com")
        for answer in (visitor.get("/console/sign-in"), visitor.start_session()):
            (header,) = answer.headers["Set-Cookie"]
            pair, *attributes = header.split("; ")
            assert re.fullmatch(r"__Host-session=[A-Za-z0-9_-]{43}", pair)
            assert sorted(attributes) == [
                "HttpOnly",
                "Max-Age=2592000",
                "Path=/",
                "SameSite=Lax",
                "Secure",
            ]
        answer = visitor.post("/console/sign-out")
        assert cookies(answer) == {"__Host-session": ""}
        assert "Max-Age=0" in answer.headers["Set-Cookie"][0]

    def test_a_session_ends_when_its_owner_signs_out(self, world: World) -> None:
        boss, other = world.person("boss"), world.person("boss")
        token = boss.token
        assert boss.post("/console/sign-out").headers["Location"].startswith("/console/sign-in")
        assert not lives(token)
        assert lives(other.token)
        assert boss.get(world.here.path_of(f"{WORKSPACE}/keys")).status == 303

    def test_the_sessions_of_all_devices_can_be_ended_together(self, world: World) -> None:
        boss, other, member = (world.person(name) for name in ("boss", "boss", "member"))
        token = boss.token
        nobody = boss.post("/console/account/sessions", {"id": ""})
        assert (nobody.status, lives(token)) == (400, True)
        assert boss.post("/console/account/sign-out").status == 303
        assert [lives(each) for each in (token, other.token, member.token)] == [False, False, True]

    def test_sessions_of_other_people_cannot_be_ended(self, world: World) -> None:
        boss, member = world.person("boss"), world.person("member")
        theirs = console_sessions.find(member.token)
        assert theirs
        answers = [
            boss.post("/console/account/sessions", {"id": each})
            for each in (theirs.session_id, new_id())
        ]
        assert [answer.status for answer in answers] == [303, 303]
        assert answers[0].headers["Location"] == answers[1].headers["Location"]
        assert lives(member.token)

    def test_concurrent_requests_can_end_a_session(self, world: World) -> None:
        boss, other = world.person("boss"), world.person("boss")
        theirs = console_sessions.find(other.token)
        assert theirs
        ended = [boss.post("/console/account/sessions", {"id": theirs.session_id}) for _ in "12"]
        assert {each.headers["Location"] for each in ended} == {
            "/console/account?done=session_ended"
        }
        tabs = [Person("boss@example.com", boss.token) for _ in range(4)]
        answers = run_concurrently(4, lambda tab: tabs[tab].post("/console/sign-out"))
        assert {answer.status for answer in answers} == {303}
        assert not lives(boss.token)

    def test_a_session_is_replaced_when_the_password_changes(self, world: World) -> None:
        boss, other = world.person("boss"), world.person("boss")
        before = boss.token
        answer = boss.post("/console/account/password", FORMS["/console/account/password"])
        assert answer.headers["Location"] == "/console/account?done=password_changed"
        assert lives(boss.token)
        assert not lives(before)
        assert not lives(other.token)
        assert b"Password changed" in boss.get(answer.headers["Location"]).body

    def test_a_session_survives_a_password_change_sent_twice(self, world: World) -> None:
        boss = world.person("boss")
        tabs = [Person("boss@example.com", boss.token) for _ in range(3)]
        form = FORMS["/console/account/password"]
        answers = run_concurrently(3, lambda tab: tabs[tab].post("/console/account/password", form))
        led = {answer.headers["Location"] for answer in answers}
        assert led <= {"/console/account?done=password_changed", OVER}
        changed = [tab for tab, each in zip(tabs, answers, strict=True) if "changed" in str(each)]
        assert changed
        assert all(lives(tab.token) for tab in changed)

    def test_a_password_change_requires_the_current_password(self, world: World) -> None:
        boss, other = world.person("boss"), world.person("boss")
        form = {"current": "a wrong guess", "password": PASSWORD}
        assert boss.post("/console/account/password", form).status == 400
        assert lives(boss.token)
        assert lives(other.token)

    def test_a_refused_password_is_not_repeated_on_the_page(self, world: World) -> None:
        boss = world.person("boss")
        wrong = {"current": "my secret guess", "password": "short"}
        answer = boss.post("/console/account/password", wrong)
        assert answer.status == 400
        assert b"At least 8" in answer.body or b"at least 8" in answer.body
        assert b"my secret guess" not in answer.body
        assert b'value="short"' not in answer.body


class TestForms:
    @every_form
    def test_forms_are_accepted_only_from_the_consoles_own_pages(
        self, route: str, world: World
    ) -> None:
        boss, other = world.person("boss"), world.person("boss")
        path, fields, before = world.here.path_of(route), world.here.filled(FORMS[route]), stored()
        right = boss.csrf
        for csrf in ("", "0" * 64, right[:-1], right.upper(), other.csrf, access.csrf_token("")):
            assert refused(boss.post(path, fields, csrf))
        for foreign in (
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"origin": "http://["},
            {"origin": "https://127.0.0.1.evil.example"},
            {"sec_fetch_site": "cross-site"},
            {"sec_fetch_site": "same-site"},
            {"origin": "http://x", "host": "y"},
        ):
            assert refused(boss.post(path, fields, **foreign)), foreign
        body = "&".join(f"a{number}=" for number in range(MAX_FIELDS)) + f"&csrf={right}"
        assert refused(boss.request("POST", path, body.encode()))
        assert boss.post(path, {**fields, "much": "x" * ROUTES[route].max_bytes}).status == 413
        assert stored() == before

    @every_form
    def test_forms_with_the_right_token_are_accepted(self, route: str, world: World) -> None:
        boss, other = world.person("boss"), console_sessions.find(world.person("boss").token)
        assert other
        fields = world.here.filled(FORMS[route]) | (
            {"id": other.session_id} if "id" in world.here.filled(FORMS[route]) else {}
        )
        before = stored()
        origin = {"origin": "http://localhost:8000", "host": "localhost:8000"}
        answer = boss.post(
            world.here.path_of(route), fields, **origin, sec_fetch_site="same-origin"
        )
        assert answer.status in {200, 303}, answer.body
        assert stored() != before

    def test_the_sign_in_form_requires_the_token_of_its_page(self, world: World) -> None:
        attacker = Person("boss@example.com")
        attacker.get("/console/sign-in")
        victim = Person("boss@example.com")
        assert refused(victim.post("/console/sign-in", FORMS["/console/sign-in"], attacker.csrf))
        assert victim.token == ""


def refused(answer: Answer) -> bool:
    return answer.status == 403 and b"out of date" in answer.body


ELSEWHERE = [
    "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "/\\/evil.example",
    "https://evil.example", "https:evil.example", "http:///evil.example", "//evil.example/console",
    "/console@evil.example", "/console.evil.example", "/console:80", "/console//evil.example",
    "/console/%2f%2fevil.example", "/%2f%2fevil.example", "/console/%0d%0aEvil:%201",
    "/console\r\nEvil: 1", "/console/\tx", "/console/\u2028x", "/console\u3002evil", "/ｃonsole/x",
    "javascript:alert(1)", "/console/javascript:alert(1)", "data:text/html,x", " /console/account",
    "/console/../s/evil/page", "/console/..", "/console/./..", "/console/%2e%2e/s/evil",
    "/console/.%2e/s/evil", "/console/..;/s/evil", "/consolex", "/s/evil", "console/account",
    "/console/account?x=//evil", "/console/account#@evil", "/console/account\n", "/console/\x00",
    "?next=/console", "", "/", "/api/docs", "/console/sign-out", "/console/account/password",
    "/console/nowhere", "/console/w",
]  # fmt: skip


class TestRedirectAfterSignIn:
    def test_the_target_is_always_inside_the_console(self, world: World) -> None:
        for target in ELSEWHERE:
            visitor = Person("boss@example.com", "A" * 43)
            page = visitor.get(f"/console/sign-in?next={quote(target, safe='')}")
            assert b'name="next" value="/console"' in page.body, target
            answer = visitor.post("/console/sign-in", FORMS["/console/sign-in"] | {"next": target})
            assert (answer.status, answer.headers["Location"]) == (303, PREFIX), target

    def test_the_target_is_kept_after_a_wrong_password(self, world: World) -> None:
        visitor = Person("boss@example.com")
        answer = visitor.start_session("wrong", next="/console/account")
        assert answer.status == 401
        assert b'name="next" value="/console/account"' in answer.body

    def test_a_field_cannot_inject_a_header(self, world: World) -> None:
        evil = "x\r\nEvil: 1\r\n\r\n<script>"
        visitor, boss = Person("boss@example.com"), world.person("boss")
        path = quote(evil, safe="")
        answers = [
            visitor.start_session(next=evil, email=evil),
            visitor.get(f"/console/w/{path}/keys"),
            boss.get(f"/console/w/{path}/keys"),
            boss.get(f"/console/sign-in?done={path}&next={path}"),
            boss.get(f"{world.here.path}/keys?q={path}&done={path}"),
            boss.get(f"{world.here.path}/bots/{path}/keys"),
            boss.post(f"{world.here.path}/keys/{path}/revoke"),
            boss.post(f"{world.here.path}/bots/{world.here.bot}/limits", {"daily": evil}),
            boss.post("/console/account/sessions", {"id": evil}),
        ]
        for answer in answers:
            assert answer.status < 500
            values = [*answer.headers, *map(str, answer.headers.values())]
            assert not any(mark in value for value in values for mark in ("\r", "\n", "Evil:"))
            assert b"<script>" not in answer.body


class TestSignIn:
    def test_a_failure_does_not_reveal_whether_email_or_password_was_wrong(
        self, world: World
    ) -> None:
        as_operator("create_account", email="off@example.com", password=PASSWORD)
        as_operator("disable_account", email="off@example.com")
        answers = []
        for email, password in (
            ("boss@example.com", "wrong"),
            ("none@example.com", PASSWORD),
            ("off@example.com", PASSWORD),
        ):
            visitor = Person(email, "A" * 43)
            answer = visitor.post("/console/sign-in", {"email": email, "password": password})
            answers.append((answer.status, answer.body.replace(email.encode(), b"EMAIL")))
        assert len(set(answers)) == 1
        assert answers[0][0] == 401
        assert b'value="EMAIL"' in answers[0][1]
        assert b"wrong" not in answers[0][1].replace(b'class="field wrong"', b"")

    def test_too_many_attempts_show_a_page_that_asks_to_wait(
        self, world: World, monkeypatch: pytest.MonkeyPatch, reload_settings: Any
    ) -> None:
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()
        visitor = Person("boss@example.com")
        answers = [visitor.start_session("wrong") for _ in range(11)]
        monkeypatch.undo()
        reload_settings()
        assert [answer.status for answer in answers] == [401] * 10 + [429]
        assert answers[-1].headers["Content-Type"].startswith("text/html")
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 900
        assert b"Too many attempts" in answers[-1].body

    def test_the_page_is_in_the_readers_language(self, world: World) -> None:
        visitor = Person("boss@example.com")
        page = visitor.get("/console/sign-in", accept_language="ru")
        assert "Войти" in page.body.decode()
        assert page.headers["Vary"] == "Accept-Language, Accept-Encoding"

    def test_the_first_workspace_is_the_start_page(self, world: World) -> None:
        boss = Person("boss@example.com", begun("boss@example.com"))
        assert boss.get(PREFIX).headers["Location"] == world.here.path
