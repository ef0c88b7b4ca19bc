"""Signing in to the console, and the page that it leads to."""

from typing import Any
from urllib.parse import quote

import pytest

from chalicelib.transports.console.routes import PREFIX
from tests.conftest import PASSWORD, call_operator
from tests.factories.console import Person, World, begun
from tests.factories.console_forms import FORMS

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
        visitor, console_owner = Person("boss@example.com"), world.person("boss")
        path = quote(evil, safe="")
        answers = [
            visitor.start_session(next=evil, email=evil),
            visitor.get(f"/console/w/{path}/keys"),
            console_owner.get(f"/console/w/{path}/keys"),
            console_owner.get(f"/console/sign-in?done={path}&next={path}"),
            console_owner.get(f"{world.here.path}/keys?q={path}&done={path}"),
            console_owner.get(f"{world.here.path}/bots/{path}/keys"),
            console_owner.post(f"{world.here.path}/keys/{path}/revoke"),
            console_owner.post(f"{world.here.path}/bots/{world.here.bot}/limits", {"daily": evil}),
            console_owner.post("/console/account/sessions", {"id": evil}),
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
        call_operator("create_account", email="off@example.com", password=PASSWORD)
        call_operator("disable_account", email="off@example.com")
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
        console_owner = Person("boss@example.com", begun("boss@example.com"))
        assert console_owner.get(PREFIX).headers["Location"] == world.here.path
