"""The begin and the end of sessions, and pages that require a session."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from chalicelib.core.ids import new_id
from chalicelib.domains.identity.store import console_sessions
from chalicelib.transports.console import access
from chalicelib.transports.console.routes import PREFIX, ROUTES, WORKSPACE
from chalicelib.transports.http import HttpRequest
from tests.conftest import PASSWORD, run_concurrently
from tests.factories.console import Person, World, cookies
from tests.factories.console_forms import FORMS, every_form, read_rows, sweep_of_pages

OVER = "/console/sign-in?done=session_over"


def lives(token: str) -> bool:
    return access.signed_in_request(request_with(token)) is not None


def request_with(token: str) -> Any:
    return HttpRequest("GET", PREFIX, {"cookie": f"{access.COOKIE}={token}"})


class TestSession:
    @sweep_of_pages
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
        token, rows_before = visitor.token, read_rows()
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
                message = b"You are signed out" if out else b"check whether it was saved"
                assert message in visitor.get(answer.headers["Location"]).body
                assert visitor.token == token
        if not ROUTES[route].guest:
            assert read_rows() == rows_before

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
        console_owner = world.person("boss")
        token_before = console_owner.token
        assert console_owner.post("/console/sign-in", FORMS["/console/sign-in"]).status == 303
        assert console_owner.token != token_before
        assert lives(console_owner.token)
        assert not lives(token_before)
        assert console_owner.get("/console/sign-in").headers["Location"] == PREFIX

    def test_the_cookie_is_for_this_host_and_hidden_from_scripts(self, world: World) -> None:
        visitor = Person("boss@example.com")
        for answer in (visitor.get("/console/sign-in"), visitor.start_session()):
            header = answer.headers["Set-Cookie"][0]
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
        console_owner, other = world.person("boss"), world.person("boss")
        token = console_owner.token
        assert (
            console_owner.post("/console/sign-out")
            .headers["Location"]
            .startswith("/console/sign-in")
        )
        assert not lives(token)
        assert lives(other.token)
        assert console_owner.get(world.here.path_of(f"{WORKSPACE}/keys")).status == 303

    def test_the_sessions_of_all_devices_can_be_ended_together(self, world: World) -> None:
        console_owner, other, member = (world.person(name) for name in ("boss", "boss", "member"))
        token = console_owner.token
        nobody = console_owner.post("/console/account/sessions", {"id": ""})
        assert (nobody.status, lives(token)) == (400, True)
        assert console_owner.post("/console/account/sign-out").status == 303
        assert [lives(token) for token in (token, other.token, member.token)] == [
            False,
            False,
            True,
        ]

    def test_sessions_of_other_people_cannot_be_ended(self, world: World) -> None:
        console_owner, member = world.person("boss"), world.person("member")
        theirs = console_sessions.find(member.token)
        assert theirs
        answers = [
            console_owner.post("/console/account/sessions", {"id": session_id})
            for session_id in (theirs.session_id, new_id())
        ]
        assert [answer.status for answer in answers] == [303, 303]
        assert answers[0].headers["Location"] == answers[1].headers["Location"]
        assert lives(member.token)

    def test_concurrent_requests_can_end_a_session(self, world: World) -> None:
        console_owner, other = world.person("boss"), world.person("boss")
        theirs = console_sessions.find(other.token)
        assert theirs
        ended = [
            console_owner.post("/console/account/sessions", {"id": theirs.session_id}) for _ in "12"
        ]
        assert {answer.headers["Location"] for answer in ended} == {
            "/console/account?done=session_ended"
        }
        tabs = [Person("boss@example.com", console_owner.token) for _ in range(4)]
        answers = run_concurrently(4, lambda tab: tabs[tab].post("/console/sign-out"))
        assert {answer.status for answer in answers} == {303}
        assert not lives(console_owner.token)

    def test_a_session_is_replaced_when_the_password_changes(self, world: World) -> None:
        console_owner, other = world.person("boss"), world.person("boss")
        token_before = console_owner.token
        answer = console_owner.post("/console/account/password", FORMS["/console/account/password"])
        assert answer.headers["Location"] == "/console/account?done=password_changed"
        assert lives(console_owner.token)
        assert not lives(token_before)
        assert not lives(other.token)
        assert b"Password changed" in console_owner.get(answer.headers["Location"]).body

    def test_a_session_survives_a_password_change_sent_twice(self, world: World) -> None:
        console_owner = world.person("boss")
        tabs = [Person("boss@example.com", console_owner.token) for _ in range(3)]
        form = FORMS["/console/account/password"]
        answers = run_concurrently(3, lambda tab: tabs[tab].post("/console/account/password", form))
        led = {answer.headers["Location"] for answer in answers}
        assert led <= {"/console/account?done=password_changed", OVER}
        changed_tabs = [
            tab for tab, answer in zip(tabs, answers, strict=True) if "changed" in str(answer)
        ]
        assert changed_tabs
        assert all(lives(tab.token) for tab in changed_tabs)

    def test_a_password_change_requires_the_current_password(self, world: World) -> None:
        console_owner, other = world.person("boss"), world.person("boss")
        form = {"current": "a wrong guess", "password": PASSWORD}
        assert console_owner.post("/console/account/password", form).status == 400
        assert lives(console_owner.token)
        assert lives(other.token)

    def test_a_refused_password_is_not_repeated_on_the_page(self, world: World) -> None:
        console_owner = world.person("boss")
        wrong = {"current": "my secret guess", "password": "short"}
        answer = console_owner.post("/console/account/password", wrong)
        assert answer.status == 400
        assert b"At least 8" in answer.body or b"at least 8" in answer.body
        assert b"my secret guess" not in answer.body
        assert b'value="short"' not in answer.body
