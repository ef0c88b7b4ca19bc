"""The pages whose forms ask for a code or the password, and the e-mails about what was done."""

import re

import pytest

from chalicelib.core.operations import REGISTRY
from chalicelib.domains.identity.store import accounts
from chalicelib.transports.console.routes import BOOKING, PREFIX, ROUTES, WORKSPACE
from tests.conftest import Owner, call_operator
from tests.domains.identity.test_second_factor import switch_on
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.console import World, person
from tests.factories.event_runs import run_until_idle
from tests.factories.oauth_http import path as consent_path
from tests.support.registers import check_register

FIELDS = {False: "currentPassword", True: "secondFactor"}
OTHERS = {
    f"{PREFIX}/account?do=second-factor": "set_second_factor",
    f"{WORKSPACE}/members/{{member}}": "set_member_role",
    f"{BOOKING}?do=cancel": "refund_payment",
}
"""Pages with a further form."""


def pages_of_confirmed_operations() -> dict[str, str]:
    """Return the pages with a form for an operation that needs a proof, by path."""
    pages = dict(OTHERS)
    for route, page in ROUTES.items():
        # Only a live app can be allowed more; ``test_connected_apps`` looks at its form. Only a
        # closed workspace can be reopened; ``test_deletion`` does.
        if route.endswith(("/allow", "/reopen")):
            continue
        if page.posts and REGISTRY[page.posts].confirm is not None:
            new = f"{route}/new"
            pages[new if new in ROUTES else route] = page.posts
    return pages


def test_the_pages_are_known() -> None:
    check_register(
        {
            *("account?do=second-factor", "{member}", "{booking}?do=cancel", "members", "new"),
            "close",
            *("exports", "payment", "payment-settings", "{merchant}", "{payment}"),
        },
        declared={route.rpartition("/")[2] for route in pages_of_confirmed_operations()},
        place="This list of pages that ask for the password",
        line="the end of the page's path",
    )


@pytest.mark.parametrize("has_factor", [False, True])
def test_each_form_for_a_confirmed_operation_asks_for_the_proof(
    has_factor: bool, world: World
) -> None:
    boss = world.person("boss")
    if has_factor:
        switch_on(boss)
    missing = []
    for route in pages_of_confirmed_operations():
        page = boss.get(world.here.path_of(route)).body.decode()
        control = f'id="{FIELDS[has_factor]}" name="{FIELDS[has_factor]}"'
        if page.count(control) != 1:
            missing.append(route)
    assert missing == []


def test_consent_for_an_app_asks_for_the_proof(world: World) -> None:
    page = world.person("boss").get(consent_path()).body.decode()
    assert page.count('name="currentPassword"') == 1


@pytest.mark.parametrize("language", ["en", "ru"])
def test_what_was_confirmed_is_told_to_the_account(
    language: str,
    owner: Owner,
    inbox: Inbox,  # noqa: F811  the fixture
) -> None:
    account = accounts.get(owner.workspace.owner_id)
    account.update([accounts.AccountRow.language.set(language)])
    user = person(owner)
    run_until_idle()
    inbox.clear()
    path = f"/console/w/{owner.workspace.slug}"
    assert user.post(f"{path}/keys", {"name": "Till", "scopes": "crm:read"}).status == 200
    guest = {"email": "ivy@example.com", "role": "manager"}
    assert user.post(f"{path}/members", guest).status == 200
    switch_on(user)
    call_operator("remove_second_factor", email=user.email)
    run_until_idle()
    titles = {
        "en": [
            "A manager was invited",
            "A new API key was created",
            "An operator has switched your second factor off",
            "Your second factor was switched on",
        ],
        "ru": [
            "Включён второй фактор",
            "Оператор выключил ваш второй фактор",
            "Приглашён менеджер",
            "Создан ключ API",
        ],
    }[language]
    mails = [mail for mail in inbox.mails if mail["To"] == user.email]
    about_account = sorted(str(mail["Subject"]) for mail in mails if mail["Subject"] in titles)
    assert about_account == titles
    for mail in mails:
        assert not re.search("correct horse|ivy@", text_of(mail)) or mail["Subject"] not in titles
