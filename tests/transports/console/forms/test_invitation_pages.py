"""Inviting a user, and opening the link in every way."""

import re

import pytest

from chalicelib.domains.identity.store import accounts, workspaces
from tests.conftest import PASSWORD, Answer, Time, call_operator
from tests.factories.console import HOSTILE, Person, World, begun, invite
from tests.factories.people import read_rows
from tests.transports.console.forms.helpers import error_beside, text, value_of

IVY = "ivy@example.com"
GONE = "This invitation no longer works"


def path_of(token: str) -> str:
    return f"/console/invitations/{token}"


def token_on(answer: Answer) -> str:
    token = re.search(r'id="link"><code>[^<]*/console/invitations/([\w-]{43})</code>', text(answer))
    assert token, text(answer)
    return token[1]


def role_of(world: World, email: str) -> str | None:
    account = accounts.find_by_email(email)
    membership = account and workspaces.membership(account.id, workspace_id=world.here.workspace_id)
    return membership.role if membership else None


def new_person() -> dict[str, str]:
    return {"name": "Ivy", "password": PASSWORD, "once": "1"}


@pytest.mark.parametrize(
    ("name", "role", "status"),
    [
        ("boss", "manager", 200),
        ("boss", "member", 200),
        ("manager", "member", 200),
        ("manager", "manager", 403),
        ("member", "member", 403),
    ],
)
def test_the_link_is_shown_once_to_people_who_may_invite(
    world: World, name: str, role: str, status: int
) -> None:
    person, path = world.person(name), f"{world.here.path}/members"
    form = {"email": IVY, "role": role, "once": "1"}
    answer = person.post(path, form)
    assert answer.status == status
    if status != 200:
        assert "/console/invitations/" not in text(answer)
        return
    token = token_on(answer)
    second_response = person.post(path, form)
    assert second_response.headers["Location"] == f"{path}?done=invited_before"
    page = text(person.get(path))
    assert IVY in page
    assert token not in page


def test_a_new_person_sets_a_password_and_is_signed_in(world: World) -> None:
    path = path_of(
        token_on(
            world.person("boss").post(
                f"{world.here.path}/members", {"email": IVY, "role": "manager", "once": "1"}
            )
        )
    )
    visitor, rows_before = Person(IVY), read_rows()
    page = visitor.get(path)
    assert page.status == 200
    assert HOSTILE in text(page)
    assert IVY in text(page)
    assert read_rows() == rows_before
    answer = visitor.post(path, new_person())
    assert answer.headers["Location"] == f"{world.here.path}?done=joined"
    assert "Welcome" in text(visitor.get(answer.headers["Location"]))
    assert role_of(world, IVY) == "manager"
    assert begun(IVY)


def test_a_new_persons_console_is_in_the_language_of_the_invitation(world: World) -> None:
    path = path_of(invite(world.here.workspace_id, IVY))
    visitor = Person(IVY)
    page = text(visitor.get(f"{path}?lang=ru", accept_language="en"))
    assert "приглашает вас" in page
    assert 'name="lang" value="ru"' in page
    visitor.post(path, new_person() | {"lang": "ru"})
    assert accounts.require_by_email(IVY).language == "ru"


def test_a_person_with_an_account_signs_in_and_accepts(world: World) -> None:
    call_operator("create_account", email=IVY, password=PASSWORD)
    path, ivy = path_of(invite(world.here.workspace_id, IVY)), Person(IVY)
    (sign_in,) = re.findall(r'href="(/console/sign-in\?next=[^"]+)"', text(ivy.get(path)))
    assert 'name="password"' not in text(ivy.get(path))
    (target,) = re.findall(r'name="next" value="([^"]*)"', text(ivy.get(sign_in)))
    assert ivy.start_session(next=target).headers["Location"] == path
    page = ivy.get(path)
    assert ">Join</button>" in text(page)
    assert role_of(world, IVY) is None
    answers = [ivy.post(path, {"once": "1"}) for _ in "12"]
    assert {answer.headers["Location"] for answer in answers} == {f"{world.here.path}?done=joined"}
    assert role_of(world, IVY) == "member"


def test_a_person_who_is_signed_in_as_someone_else_signs_out_first(world: World) -> None:
    path, stranger = path_of(invite(world.here.workspace_id, IVY)), world.person("stranger")
    page = text(stranger.get(path))
    assert "You are signed in as stranger@example.com" in page
    assert ">Join</button>" not in page
    rows_before = read_rows()
    assert stranger.post(path, new_person()).status == 403
    assert read_rows() == rows_before
    answer = stranger.post("/console/sign-out", {"next": path})
    assert answer.headers["Location"] == path
    stranger.token = ""
    assert 'name="password"' in text(stranger.get(path))


def test_links_that_do_not_work_all_show_one_page(world: World, time: Time) -> None:
    home, console_owner = world.here.workspace_id, world.person("boss")
    used, revoked = invite(home, IVY), invite(home, "ivo@example.com")
    invited = Person(IVY)
    invited.get(path_of(used))
    invited.post(path_of(used), new_person())
    (invitation_id,) = re.findall(
        r'name="revoke" value="(\w+)" aria-label="[^"]*ivo@',
        text(console_owner.get(f"{world.here.path}/members")),
    )
    answer = console_owner.post(f"{world.here.path}/members", {"revoke": invitation_id})
    assert answer.headers["Location"].endswith("?done=invitation_revoked")
    assert console_owner.post(f"{world.here.path}/members", {"revoke": invitation_id}).status == 303
    expired = invite(home, "old@example.com")
    time.pass_by(days=7)
    pages = set()
    for token in (used, revoked, expired, "A" * 43, "x"):
        visitor = Person("x")
        opened = visitor.get(path_of(token))
        response = visitor.post(path_of(token), new_person())
        assert (opened.status, response.status) == (404, 404)
        assert GONE in text(opened)
        pages |= {opened.body, response.body}
    assert len(pages) == 1


def test_a_stolen_link_gives_nothing_to_another_account(world: World) -> None:
    call_operator("create_account", email=IVY, password=PASSWORD)
    path, thief = path_of(invite(world.here.workspace_id, IVY)), Person("x")
    thief.get(path)
    rows_before = read_rows()
    answer = thief.post(path, new_person() | {"password": "stolen password"})
    assert answer.status == 409
    assert "There is an account with this address" in text(answer)
    assert read_rows() == rows_before


def test_a_refused_form_keeps_the_name_and_not_the_password(world: World) -> None:
    path, visitor = path_of(invite(world.here.workspace_id, IVY)), Person(IVY)
    visitor.get(path)
    answer = visitor.post(path, {"name": HOSTILE, "password": "short"})
    assert answer.status == 400
    assert "8" in error_beside(answer, "password")
    assert value_of(answer, "name") == HOSTILE
    assert 'value="short"' not in text(answer)
    answer = visitor.post(path, {"name": " ", "password": PASSWORD})
    assert "name of 1 to 200" in error_beside(answer, "name")
    assert role_of(world, IVY) is None


def test_a_form_of_another_page_is_refused(world: World) -> None:
    path, visitor = path_of(invite(world.here.workspace_id, IVY)), Person(IVY)
    visitor.get(path)
    rows_before = read_rows()
    for csrf in ("", "0" * 64):
        assert visitor.post(path, new_person(), csrf).status == 403
    assert visitor.post(path, new_person(), origin="https://evil.example").status == 403
    assert read_rows() == rows_before


def test_the_address_of_a_member_is_refused_beside_the_form(world: World) -> None:
    console_owner, path = world.person("boss"), f"{world.here.path}/members"
    answer = console_owner.post(path, {"email": "Member@example.com", "role": "member"})
    assert answer.status == 409
    assert "is already a member" in text(answer)
    assert value_of(answer, "email") == "Member@example.com"
    answer = console_owner.post(path, {"email": "nobody", "role": "member"})
    assert "anna@example.com" in error_beside(answer, "email")
