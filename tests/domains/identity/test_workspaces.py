"""The list of workspaces, as the owner of an API key receives it."""

from collections.abc import Callable

from chalicelib.domains.identity.store import accounts, workspaces
from tests.conftest import Owner, Time, call_operator

LIST = "/api/workspaces/list"


class TestListWorkspaces:
    def test_workspace_list_returns_the_whole_record(
        self, time: Time, new_owner: Callable[..., Owner]
    ) -> None:
        owner = new_owner(name="Bakery")
        data = owner.api().get(LIST)
        assert data == {
            "status": True,
            "workspaces": [
                {
                    "id": owner.workspace.id,
                    "name": "Bakery",
                    "slug": "bakery",
                    "logoUrl": None,
                    "ownerId": owner.workspace.owner_id,
                    "role": "owner",
                    "joinedAt": "2027-01-15T12:00:00.000Z",
                    "isOwner": True,
                    "timezone": "Europe/Moscow",
                    "country": "RU",
                    "currency": "RUB",
                    "isTest": False,
                }
            ],
            "total": 1,
            "pagination": {"total": 1, "page": 1, "size": 1000, "limit": 1000},
            "activeWorkspaceId": owner.workspace.id,
            "now": "2027-01-15T15:00:00+03:00",
        }

    def test_list_has_all_workspaces_of_the_owner_and_the_active_one(
        self, time: Time, new_owner: Callable[..., Owner]
    ) -> None:
        first = new_owner()
        account = accounts.get(first.workspace.owner_id)
        time.pass_by(seconds=1)
        second = Owner(
            workspaces.get(
                call_operator("create_workspace", owner=account.email, name="Second")["workspaceId"]
            )
        )
        time.pass_by(seconds=1)
        elsewhere, stranger = new_owner(), new_owner()
        call_operator(
            "add_member", workspaceId=elsewhere.workspace.id, email=account.email, role="manager"
        )
        for owner in (first, second):
            data = owner.api().get(LIST)
            assert data["activeWorkspaceId"] == owner.workspace.id
            assert [(w["id"], w["role"], w["isOwner"]) for w in data["workspaces"]] == [
                (first.workspace.id, "owner", True),
                (second.workspace.id, "owner", True),
                (elsewhere.workspace.id, "manager", False),
            ]
            assert data["workspaces"][2]["ownerId"] == elsewhere.workspace.owner_id
        assert stranger.workspace.id not in str(first.api().get(LIST))

    def test_joined_at_of_a_member_differs_from_the_workspaces_creation(
        self, time: Time, new_owner: Callable[..., Owner]
    ) -> None:
        owner, member = new_owner(), new_owner()
        account = accounts.get(member.workspace.owner_id)
        time.pass_by(days=1)
        call_operator("add_member", workspaceId=owner.workspace.id, email=account.email)
        time.pass_by(days=1)
        call_operator(
            "add_member", workspaceId=owner.workspace.id, email=account.email, role="manager"
        )
        workspace = {w["id"]: w for w in member.api().get(LIST)["workspaces"]}[owner.workspace.id]
        assert (workspace["role"], workspace["joinedAt"]) == ("manager", "2027-01-16T12:00:00.000Z")

    def test_key_of_a_workspace_below_business_is_refused(
        self, new_owner: Callable[..., Owner]
    ) -> None:
        for plan in ("free", "start"):
            answer = new_owner(plan=plan).api().call_refused("GET", LIST)
            assert (answer.status, answer.data["code"]) == (403, "plan_required")
        assert new_owner(plan="enterprise").api().get(LIST)["workspaces"]

    def test_workspace_is_determined_by_the_key_only(
        self, owner: Owner, new_owner: Callable[..., Owner]
    ) -> None:
        other = new_owner().workspace.id
        data = owner.api().get(f"{LIST}?workspaceId={other}&groupId={other}")
        assert data["activeWorkspaceId"] == owner.workspace.id
        assert other not in str(data)
