"""Choices of members who have left the workspace."""

import pytest

from chalicelib.core.jobs import JOB_HANDLERS, PEOPLE_EVENTS
from chalicelib.domains.notifications.flows import member_choices
from chalicelib.domains.notifications.store import choices
from chalicelib.engine import jobs
from tests.conftest import Owner, call_operator
from tests.domains.notifications.helpers import new_member
from tests.domains.notifications.inbox import Inbox, choose
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit

pytestmark = pytest.mark.usefixtures("database")


def kinds_of_jobs(owner: Owner) -> set[str]:
    """Return the kinds of jobs that wait in the workspace."""
    return {job.kind for job in jobs.read_workspace_jobs(owner.workspace.id)}


class TestFormerMembers:
    def test_choices_of_a_former_member_are_removed(
        self, inbox: Inbox, owner: Owner, things: Things
    ) -> None:
        workspace = owner.workspace
        member = new_member(owner, "bob@example.com")
        choose(owner, member, "member", lead=["mail"])
        choose(owner, workspace.owner_id, "owner", lead=[])
        call_operator("remove_member", workspaceId=workspace.id, email="bob@example.com")
        jobs.run(JOB_HANDLERS)
        run_until_idle()  # the owner is notified of the removal
        assert list(choices.read_all(workspace.id)) == [workspace.owner_id]
        submit(things.form, name="Ada", email="ada@example.com")
        assert PEOPLE_EVENTS not in kinds_of_jobs(owner)

    def test_choices_of_a_returned_member_are_kept(self, inbox: Inbox, owner: Owner) -> None:
        workspace = owner.workspace
        member = new_member(owner, "bob@example.com")
        choose(owner, member, "member", lead=["mail"])
        call_operator("remove_member", workspaceId=workspace.id, email="bob@example.com")
        call_operator(
            "add_member", workspaceId=workspace.id, email="bob@example.com", role="member"
        )
        jobs.run(JOB_HANDLERS)
        assert member_choices.read_choices(workspace.id, account_id=member).wants("lead", "mail")
