"""Messages to members of the workspace who are linked to its staff."""

from typing import Any

import pytest

from tests.conftest import Api, Owner, call_console
from tests.domains.notifications.helpers import new_member
from tests.domains.notifications.inbox import Inbox, choose
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon

BOB = "bob@example.com"
pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def salon(api: Api, inbox: Inbox) -> Salon:
    return Salon.opened(api, resources=[{"name": "Bob"}, {"name": "Olga"}])


def link(owner: Owner, account_id: str, resource: str | None) -> Any:
    arguments = {"accountId": account_id, "resourceId": resource}
    return call_console(owner.workspace.id, "link_member", **arguments)


def mails_to_bob(inbox: Inbox) -> int:
    run_until_idle()
    return sum(mail["To"] == BOB for mail in inbox.mails)


def test_a_plain_member_gets_mail_about_the_own_bookings_once_linked(
    owner: Owner, salon: Salon, inbox: Inbox
) -> None:
    # The owner wants no message about bookings, so that none is sent before the link.
    choose(owner, owner.workspace.owner_id, "owner", booking=[])
    bob = new_member(owner, BOB)
    salon.book("2027-01-18T10:00", resourceId=salon.resources[0])
    assert mails_to_bob(inbox) == 0
    link(owner, bob, salon.resources[0])
    salon.book("2027-01-18T12:00", resourceId=salon.resources[0])
    salon.book("2027-01-18T14:00", resourceId=salon.resources[1])
    assert mails_to_bob(inbox) == 1
    link(owner, bob, None)
    salon.book("2027-01-18T16:00", resourceId=salon.resources[0])
    assert mails_to_bob(inbox) == 1


def test_a_linked_member_can_choose_to_get_no_mail(
    owner: Owner, salon: Salon, inbox: Inbox
) -> None:
    bob = new_member(owner, BOB)
    link(owner, bob, salon.resources[0])
    choose(owner, bob, "member", booking=[])
    salon.book("2027-01-18T12:00", resourceId=salon.resources[0])
    assert mails_to_bob(inbox) == 0


def test_a_link_needs_a_member_and_a_resource_of_the_workspace(owner: Owner, salon: Salon) -> None:
    from chalicelib.core.errors import NotFoundError

    bob = new_member(owner, BOB)
    for account_id, resource in ((bob, "0" * 26), ("0" * 26, salon.resources[0])):
        with pytest.raises(NotFoundError):
            link(owner, account_id, resource)
