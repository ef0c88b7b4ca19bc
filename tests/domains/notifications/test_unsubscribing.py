"""One-click unsubscription from emails to members (RFC 8058)."""

import re
from typing import Any

import pytest

from chalicelib.gateways import mail
from tests.conftest import Api, Owner, call_console
from tests.domains.notifications.inbox import Inbox, choose, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit

pytestmark = pytest.mark.usefixtures("database")
ONE_CLICK = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def path(inbox: Inbox, owner: Owner, things: Things) -> str:
    """The path of the link in an email about a lead."""
    choose(owner, owner.workspace.owner_id, "owner", "en", lead=["mail", "telegram"])
    submit(things.form, name="Ada", email="ada@example.com")
    run_until_idle()
    header = inbox.only()["List-Unsubscribe"]
    match = re.search(r"(/unsubscribe/[^>]+)>", header)
    assert match
    return match[1]


def stored_choice(owner: Owner, kind: str) -> Any:
    """Return the owner's choice of a kind."""
    response = call_console(
        owner.workspace.id, "get_notifications", account_id=owner.workspace.owner_id
    )
    return next(choice for choice in response["choices"] if choice["kind"] == kind)


def test_the_page_of_the_link_has_a_button_and_changes_nothing(path: str, owner: Owner) -> None:
    answer = Api(None).call("GET", path)
    assert answer.status == 200
    assert b'<form method="post">' in answer.body
    assert owner.workspace.name in answer.body.decode()
    assert answer.headers["Cache-Control"] == "no-store"
    assert stored_choice(owner, "lead") == {"kind": "lead", "mail": True, "telegram": True}


def test_one_click_post_ends_only_emails_of_the_kind(path: str, owner: Owner) -> None:
    for _ in range(2):
        answer = Api(None).call("POST", path, "List-Unsubscribe=One-Click", ONE_CLICK)
        assert answer.status == 200
    assert stored_choice(owner, "lead") == {"kind": "lead", "mail": False, "telegram": True}
    assert stored_choice(owner, "booking")["mail"] is True


def test_a_forged_link_is_not_found(path: str, owner: Owner) -> None:
    forged = [path[:-1], path + "x", path.replace("lead", "order"), "/unsubscribe/a.b.lead.x"]
    for forged_path in forged:
        assert Api(None).call("POST", forged_path, "", ONE_CLICK).status == 404
    assert stored_choice(owner, "lead")["mail"] is True
    assert stored_choice(owner, "order")["mail"] is True


def test_footer_gives_the_reason_and_the_unsubscribe_link(
    path: str, inbox: Inbox, owner: Owner
) -> None:
    text = text_of(inbox.only())
    assert "new leads" in text
    assert path in text
    assert f"/console/w/{owner.workspace.slug}/notifications" in text
    assert mail.is_on()
