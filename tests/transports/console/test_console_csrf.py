"""Every form of the console is accepted only from the console's own pages."""

import pytest

from chalicelib.domains.identity.store import accounts, console_sessions
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.gateways import mail
from chalicelib.transports.console import access
from chalicelib.transports.console.console_request import MAX_FIELDS
from chalicelib.transports.console.routes import CLIENT, PROOF, ROUTES, WORKSPACE
from tests.conftest import Answer
from tests.factories.console import Person, World
from tests.factories.console_forms import FORMS, OTHER_FORMS, SENT, prepare, read_rows
from tests.support.effort import drawn, slow_but_for


def test_every_form_that_is_not_its_operations_example_has_a_page() -> None:
    assert OTHER_FORMS.keys() <= set(SENT)


def is_refused(answer: Answer) -> bool:
    return answer.status == 403 and b"out of date" in answer.body


HEADERS: list[dict[str, str]] = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://["},
    {"origin": "https://127.0.0.1.evil.example"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"origin": "http://x", "host": "y"},
]
"""Headers of forms on other pages."""
OF_NO_WORKSPACE = [route for route in SENT if not route.startswith(WORKSPACE)]
"""Forms that the tests of access do not send."""

OF_TESTS = "/console/w/{workspace}/wipe"


class TestForms:
    @pytest.mark.parametrize(("route", "headers"), drawn(HEADERS, SENT))
    def test_forms_are_accepted_only_from_the_consoles_own_pages(
        self, route: str, headers: list[dict[str, str]], world: World
    ) -> None:
        console_owner, other = world.person("boss"), world.person("boss")
        path, fields, rows_before = (
            world.here.path_of(route),
            world.here.filled(FORMS[route]),
            read_rows(),
        )
        right = console_owner.csrf
        tokens = ["", "0" * 64, right[:-1], right.upper(), other.csrf, access.csrf_token("")]
        for csrf in tokens if headers == HEADERS else ["", tokens[len(route) % len(tokens)]]:
            assert is_refused(console_owner.post(path, fields, csrf))
        for foreign in headers:
            assert is_refused(console_owner.post(path, fields, **foreign)), foreign
        body = "&".join(f"a{number}=" for number in range(MAX_FIELDS)) + f"&csrf={right}"
        assert is_refused(console_owner.request("POST", path, body.encode()))
        assert (
            console_owner.post(path, {**fields, "much": "x" * ROUTES[route].max_bytes}).status
            == 413
        )
        assert read_rows() == rows_before

    @pytest.mark.parametrize("route", slow_but_for(OF_NO_WORKSPACE + SENT[::5], SENT))
    def test_forms_with_the_right_token_are_accepted(
        self, route: str, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mail, "is_on", lambda: True)
        prepare(route, world.here)
        console_owner, other = (
            world.person("boss"),
            console_sessions.find(world.person("boss").token),
        )
        assert other
        if route == PROOF:
            accounts.get(other.account_id).update([AccountRow.awaits_proof.set(True)])
        fields = world.here.filled(FORMS[route]) | (
            {"id": other.session_id} if "id" in world.here.filled(FORMS[route]) else {}
        )
        rows_before = read_rows()
        origin = {"origin": "http://localhost:8000", "host": "localhost:8000"}
        answer = console_owner.post(
            world.here.path_of(route), fields, **origin, sec_fetch_site="same-origin"
        )
        assert answer.status in {200, 303}, answer.body
        # One answers with a redirect elsewhere. The client of the others has agreed to nothing, and
        # has linked no chat.
        is_changed = route not in {OF_TESTS, f"{CLIENT}/advertising", f"{CLIENT}/messenger"}
        assert (read_rows() != rows_before) is is_changed

    def test_the_sign_in_form_requires_the_token_of_its_page(self, world: World) -> None:
        attacker = Person("boss@example.com")
        attacker.get("/console/sign-in")
        victim = Person("boss@example.com")
        assert is_refused(victim.post("/console/sign-in", FORMS["/console/sign-in"], attacker.csrf))
        assert victim.token == ""
