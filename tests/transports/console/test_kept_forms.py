"""A form that is sent after the end of the session keeps the typed values."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from chalicelib.transports import web
from chalicelib.transports.console.kept_forms import SECRETS
from chalicelib.transports.console.routes import ROUTES, WORKSPACE
from tests.conftest import PASSWORD, Answer
from tests.factories.console import HOSTILE, Fields, Person, World
from tests.factories.console_forms import FORMS, SENT, prepare, read_rows
from tests.support.effort import slow_but_for

OF_WORKSPACES = [
    route
    for route in SENT
    if route.startswith(WORKSPACE) and "@note.txt" not in FORMS[route].values()
]
"""A file is not kept: the browser does not send it again."""
CANARY = "canary-of-a-secret"
NAME = f"Laptop {HOSTILE}\r\nsecond line"


def fields_of(answer: Answer) -> list[tuple[str, str]]:
    """Return the hidden fields of the form on a page."""
    fields = re.findall(
        r'<input type="hidden" name="([^"]*)" value="([^"]*)">', answer.body.decode()
    )
    return [(unescape(name), unescape(value)) for name, value in fields]


def sign_in_again(person: Person, answer: Answer, password: str = PASSWORD) -> Answer:
    """Fill in the sign-in form of a response."""
    carried = [field for field in fields_of(answer) if field[0] != "csrf"]
    return person.post(
        "/console/sign-in", [("email", person.email), ("password", password), *carried]
    )


def send_after_the_session_has_ended(person: Person, path: str, fields: Fields) -> Answer:
    """Sign out in another tab, and send a form with the cookie of the former session."""
    former = person.token
    person.post("/console/sign-out")
    person.token = former
    return person.post(path, fields)


@pytest.mark.parametrize("route", slow_but_for(OF_WORKSPACES[::4], OF_WORKSPACES))
def test_a_form_is_kept_through_signing_in_and_then_takes_effect(route: str, world: World) -> None:
    console_owner, path = world.person("boss"), world.here.path_of(route)
    prepare(route, world.here)
    fields = console_owner.marked(path, world.here.filled(FORMS[route]))
    kept_form = send_after_the_session_has_ended(console_owner, path, fields)
    assert kept_form.status == 403
    assert b"What you typed is still here" in kept_form.body
    rows_before = read_rows()
    shown_page = sign_in_again(console_owner, kept_form)
    assert shown_page.status == 200
    assert f'action="{path}"' in shown_page.body.decode()
    changed_rows = {name for name, row in read_rows().items() if rows_before.get(name) != row}
    assert all(re.match("(identity|audit)/", name) for name in changed_rows)  # only the new session
    shown_fields = fields_of(shown_page)
    assert [field for field in shown_fields if field[0] != "csrf"] == fields
    body = urlencode([*shown_fields, ("currentPassword", PASSWORD)]).encode()
    form = "application/x-www-form-urlencoded"
    assert console_owner.request("POST", path, body, content_type=form).status in {200, 303}


def test_kept_values_are_shown_as_text_and_sent_unchanged(world: World) -> None:
    console_owner, path = world.person("boss"), f"{world.here.path}/keys"
    kept_form = send_after_the_session_has_ended(console_owner, path, {"name": NAME, "once": "1"})
    failed = sign_in_again(console_owner, kept_form, password="wrong password")
    assert failed.status == 401
    shown_page = sign_in_again(console_owner, failed)
    assert ("name", NAME) in fields_of(shown_page)
    for answer in (kept_form, failed, shown_page):
        assert b"<img" not in answer.body


def test_a_form_of_another_site_is_not_kept(world: World) -> None:
    console_owner, path = world.person("boss"), f"{world.here.path}/keys"
    console_owner.post("/console/sign-out")
    console_owner.get("/console/sign-in")
    for csrf, headers in (("", {}), (None, {"origin": "https://evil.example"})):
        answer = console_owner.post(path, {"name": "Planted"}, csrf, **headers)
        assert (answer.status, answer.body) == (303, b"")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "https://evil.example/console/w/a/keys",
        "//evil.example",
        "/console/account/password",
        "/console/w/a/b/c/d/e/f",
        "/console/w/a/../../keys",
        "/console/w/a/keys?x=1",
    ],
)
def test_only_forms_of_a_workspace_are_offered_after_signing_in(path: str, world: World) -> None:
    console_owner = Person("boss@example.com")
    console_owner.get("/console/sign-in")
    answer = console_owner.post(
        "/console/sign-in",
        {
            "email": console_owner.email,
            "password": PASSWORD,
            "kept_path": path,
            "kept_fields": "name=x",
        },
    )
    assert (answer.status, answer.headers["Location"]) == (303, "/console")


@pytest.mark.parametrize("is_same_user", [True, False], ids=["signed in again", "another guest"])
def test_a_form_with_the_token_of_a_former_session_is_kept(
    is_same_user: bool, world: World
) -> None:
    boss, path = world.person("boss"), f"{world.here.path}/services"
    former = boss.csrf
    boss.post("/console/sign-out")
    if is_same_user:
        boss.start_session()
    else:
        boss.token = ""
        boss.get("/console/sign-in")
    fields = {"name": "Pedicure", "durationMin": "60", "requirePayment": "yes", "seen": "x"}
    answer = boss.post(path, fields, former, sec_fetch_site="same-origin")
    assert answer.status == 403
    if not is_same_user:
        answer = sign_in_again(boss, answer)
    page = unescape(answer.body.decode())
    rows = re.findall("<dt>([^<]*)</dt><dd>(?:<svg.*?</svg>)?([^<]*)</dd>", page)
    assert rows[:2] == [("Name", "Pedicure"), ("Duration", "60")]
    assert ("Require payment", "") in rows
    assert dict(fields_of(answer)) | fields == dict(fields_of(answer))


def test_a_form_whose_sender_is_not_stated_is_refused(world: World) -> None:
    boss, path = world.person("boss"), f"{world.here.path}/keys"
    for headers in ({}, {"sec_fetch_site": "cross-site"}, {"origin": "https://evil.example"}):
        answer = boss.post(path, {"name": "Planted"}, "0" * 64, **headers)
        assert answer.status == 403
        assert b"Planted" not in answer.body


def test_passwords_are_never_kept(world: World) -> None:
    console_owner = world.person("boss")
    route = "/console/account/password"
    answer = send_after_the_session_has_ended(console_owner, route, world.here.filled(FORMS[route]))
    assert answer.status == 303
    assert all(not route.startswith(WORKSPACE) for route in ROUTES if "account" in route)


def secret_controls() -> Iterator[str]:
    """Return the names of the controls for secrets in all templates."""
    for template in (Path(web.__file__).parent / "templates").rglob("*.html"):
        text = template.read_text()
        yield from re.findall(r'field\("([^"]+)"[^%]*?"password"', text)
        yield from re.findall(r'field\("([^"]+)"[^%]*%}autocomplete="one-time-code"', text)


def test_every_control_for_a_secret_is_known_as_one() -> None:
    assert {"password", "secret", "secondFactor"} <= set(secret_controls())
    unknown = set(secret_controls()) - SECRETS
    assert unknown == set(), "add them to SECRETS of chalicelib/transports/console/kept_forms.py"


@pytest.mark.parametrize("route", slow_but_for(OF_WORKSPACES[1::4], OF_WORKSPACES))
def test_no_page_shows_a_secret_again(route: str, world: World) -> None:
    boss, path = world.person("boss"), world.here.path_of(route)
    typed = dict.fromkeys(SECRETS, CANARY) | world.here.filled(FORMS[route])
    fields = boss.marked(path, typed)
    answers = [boss.post(path, fields)]
    answers.append(send_after_the_session_has_ended(boss, path, fields))
    answers.append(sign_in_again(boss, answers[-1]))
    assert [answer.status for answer in answers[1:]] == [403, 200]
    assert all(CANARY not in answer.body.decode() for answer in answers)
    carried = [("kept_path", path), ("kept_fields", f"name=x&secret={CANARY}")]
    boss.post("/console/sign-out")
    boss.get("/console/sign-in")
    answer = boss.post(
        "/console/sign-in", [("email", boss.email), ("password", PASSWORD), *carried]
    )
    assert CANARY not in answer.body.decode()
