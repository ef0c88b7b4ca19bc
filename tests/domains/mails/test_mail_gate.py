"""Every email of the service passes the gate, whichever module sends it."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chalicelib
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.domains.mails.flows.mail_gate import Verdict
from chalicelib.gateways import mail
from tests.conftest import Api, Owner, call_operator
from tests.domains.notifications.clients import book
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import FORM, submit
from tests.factories.salon import Salon

pytestmark = pytest.mark.usefixtures("database")
PACKAGE = Path(chalicelib.__file__).parent
GATE = "domains/mails/flows/mail_gate.py"
SENDERS = {
    "domains/notifications/flows/client_mail_sending.py": {"deliver"},
    "domains/notifications/flows/book_again.py": {"deliver"},
    "domains/notifications/flows/invitation_mails.py": {"deliver"},
    "domains/notifications/flows/account_mails.py": {"deliver"},
    "domains/notifications/flows/member_messages.py": {"deliver"},
    "domains/notifications/flows/reply_mails.py": {"deliver"},
}
"""Modules that send emails, with the function of the gate that they call."""


def uses(path: Path) -> set[tuple[str, str]]:
    """Return the names that a module uses of the mail gateway and the gate, as (module, name)."""
    tree = ast.parse(path.read_text())
    names, used_names = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full_name = f"{node.module}.{alias.name}"
                if full_name.endswith(("gateways.mail", "flows.mail_gate")):
                    names[alias.asname or alias.name] = alias.name
                elif str(node.module).endswith(("gateways.mail", "flows.mail_gate")):
                    used_names.add((str(node.module).rpartition(".")[2], alias.name))
        elif isinstance(node, ast.Import):
            imported = {alias.name for alias in node.names}
            used_names |= {(name, "*") for name in imported if "gateways.mail" in name}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id)
            if module is not None:
                used_names.add((module, node.attr))
    return used_names


def test_only_the_gate_calls_the_mail_gateway() -> None:
    """A new sender is added to ``SENDERS``, and calls the gate."""
    sends, gated, builders = set(), {}, set()
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        if place.startswith("gateways/mail/") or "mail" not in path.read_text():
            continue
        used_names = uses(path)
        assert not {used_name for used_name in used_names if used_name[1] == "*"}, place
        sends |= {place} if ("mail", "send") in used_names else set()
        builders |= {place} if ("mail", "Mail") in used_names else set()
        called = {name for module, name in used_names if module == "mail_gate"}
        if called & {"deliver", "admit"}:
            gated[place] = called & {"deliver", "admit"}
    assert sends == {GATE}
    assert gated == SENDERS
    assert builders == {*SENDERS, GATE}


def test_other_modules_use_no_mail_library() -> None:
    means = ("smtplib", "sesv2", "send_email")
    places = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(word in path.read_text() for word in means)
    }
    assert {place for place in places if not place.startswith("gateways/mail/")} == set()


CAUSES: dict[str, Callable[[Api, Owner], object]] = {
    "stranger": lambda api, _: book(Salon.opened(api), "2027-03-03T12:00:00Z"),
    "business": lambda api, _: Salon.opened(api).book("2027-03-03T12:00:00Z"),
    "account": lambda _, owner: call_operator(
        "invite_member", workspaceId=owner.workspace.id, email="ivy@example.com"
    ),
    "member": lambda api, _: submit(
        api.post("/api/forms/create", FORM)["form"]["id"], name="Ada", email="ada@example.com"
    ),
}


@pytest.mark.parametrize("mail_class", CAUSES)
def test_email_refused_by_the_gate_is_not_sent(
    mail_class: str, inbox: Inbox, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = mail_gate.admit

    def refuse(address: str, workspace_id: Any, actual_class: Any, **options: Any) -> Verdict:
        seen.append(actual_class)
        if actual_class == mail_class:
            return Verdict("withheld", "by_address")
        return real(address, workspace_id, actual_class, **options)

    monkeypatch.setattr(mail_gate, "admit", refuse)
    sent_ids: list[str] = []
    monkeypatch.setattr(mail, "send", lambda message: sent_ids.append(message.id))
    CAUSES[mail_class](api, owner)
    run_until_idle()
    assert mail_class in seen
    assert len(sent_ids) == sum(seen_class != mail_class for seen_class in seen)
