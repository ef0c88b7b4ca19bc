"""Creation, listing and revocation of API keys in the console."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core.errors import (
    ConflictError,
    ForbiddenError,
    PlanRequiredError,
    UnavailableError,
    ValidationError,
)
from chalicelib.domains.identity.flows import memberships
from chalicelib.domains.identity.operations import accounts as accounts_domain
from chalicelib.domains.identity.operations import key_list, keys
from chalicelib.domains.identity.store import accounts, api_keys
from chalicelib.engine import audit
from chalicelib.lib import tokens
from infra.bench.dynamodb.usage import metering
from tests.conftest import (
    PASSWORD,
    Api,
    Owner,
    Time,
    call_console,
    call_operator,
    run_concurrently,
)
from tests.factories.console_forms import read_rows
from tests.factories.sites import transactions_failing_after
from tests.support.keyed import keyed

KEY: dict[str, Any] = {"name": "Laptop", "scopes": ["*:write", "crm:read"]}


class Member:
    """An account that is a member of a workspace."""

    def __init__(self, workspace_id: str, role: str, name: str = "") -> None:
        self.workspace_id, self.role = workspace_id, role
        self.email = f"{name or role}@example.com"
        account = call_operator("create_account", email=self.email, password=PASSWORD, name="Mara")
        self.id: str = account["accountId"]
        self.join(workspace_id)

    def join(self, workspace_id: str, role: str | None = None) -> None:
        where = {"workspaceId": workspace_id, "email": self.email}
        call_operator("add_member", **where, role=role or self.role)

    def call(self, operation: str, /, **arguments: Any) -> Any:
        """Call an operation with the role at the time of signing in, even if it has changed."""
        caller = {"account_id": self.id, "membership": self.role}
        return call_console(self.workspace_id, operation, **caller, **arguments)

    def create_key(self) -> str | None:
        """Create a key; return its token, or None if the call is refused."""
        try:
            token: str = self.call("create_key", **KEY)["token"]
        except (ConflictError, ForbiddenError):
            return None
        return token

    def is_removed(self) -> Any:
        return call_operator("remove_member", workspaceId=self.workspace_id, email=self.email)

    def is_demoted(self) -> None:
        self.join(self.workspace_id, "member")

    def is_disabled(self) -> Any:
        return call_operator("disable_account", email=self.email)


LOSSES = (Member.is_removed, Member.is_demoted, Member.is_disabled)
"""Ways to lose the rights of a manager. Each revokes the account's keys in the workspace."""
each_loss = pytest.mark.parametrize("loses", LOSSES, ids=lambda loss: loss.__name__)


@pytest.fixture
def keyless(new_owner: Callable[..., Owner]) -> Owner:
    """A workspace without keys."""
    return new_owner()


def list_keys(owner: Owner) -> Any:
    return call_console(owner.workspace.id, "list_keys")


class TestListKeys:
    def test_key_list_shows_all_fields_except_the_token(self, keyless: Owner, time: Time) -> None:
        manager = Member(keyless.workspace.id, "manager")
        expires = time.now + timedelta(days=30)
        key = manager.call("create_key", **KEY, expires=expires.isoformat())
        page = list_keys(keyless)
        assert page["keys"] == [
            {
                "id": key["keyId"],
                "name": "Laptop",
                "masked": f"svc_live_…{key['token'][-4:]}",
                "scopes": ["*:write", "crm:read"],
                "state": "live",
                "account": {"id": manager.id, "name": "Mara", "email": "manager@example.com"},
                "createdAt": "2027-01-15T12:00:00.000Z",
                "expiresAt": "2027-02-14T12:00:00.000Z",
                "revokedAt": None,
                "lastUsedAt": None,
                "callsPerMinute": None,
            }
        ]
        assert (page["live"], page["most"]) == (1, 50)
        assert key["token"] not in str(page)

    def test_key_list_is_newest_first_with_the_state_of_each(
        self, keyless: Owner, time: Time
    ) -> None:
        soon = (time.now + timedelta(minutes=1)).isoformat()
        key_ids = []
        for expires in (None, soon, soon, None):
            key_ids.append(make(keyless, expires=expires))
            time.pass_by(seconds=1)
        for key_id in (key_ids[0], key_ids[2]):
            call_console(keyless.workspace.id, "revoke_key", id=key_id)
        time.pass_by(minutes=1)
        page = list_keys(keyless)
        states = [(key["id"], key["state"]) for key in page["keys"]]
        names = ("live", "revoked", "expired", "revoked")
        assert states == list(zip(key_ids[::-1], names, strict=True))
        assert page["live"] == 1

    def test_key_list_shows_the_time_of_last_use(self, keyless: Owner, time: Time) -> None:
        api = keyless.api()
        time.pass_by(hours=1)
        api.get("/api/workspaces/list")
        assert list_keys(keyless)["keys"][0]["lastUsedAt"] == "2027-01-15T13:00:00.000Z"

    def test_key_list_takes_three_requests_for_any_number_of_keys(self, keyless: Owner) -> None:
        for _ in range(12):
            make(keyless)
        with metering() as usage:
            assert len(list_keys(keyless)["keys"]) == 12
        assert usage.round_trips == 3, usage.calls


def make(owner: Owner, *, expires: str | None = None) -> str:
    """Create a key as the workspace's owner, and return its id."""
    caller = {"account_id": owner.workspace.owner_id}
    key = call_console(owner.workspace.id, "create_key", **caller, **KEY, expires=expires)
    key_id: str = key["keyId"]
    return key_id


class TestCreateKey:
    @pytest.mark.parametrize("plan", ["free", "start"])
    def test_creating_a_key_below_business_is_refused(
        self, plan: str, new_owner: Callable[..., Owner]
    ) -> None:
        poor = new_owner(plan)
        rows_before = read_rows()
        with pytest.raises(PlanRequiredError, match=plan) as caught:
            make(poor)
        assert (caught.value.status, caught.value.code) == (403, "plan_required")
        assert read_rows() == rows_before

    def test_creating_a_key_works_right_after_an_upgrade(
        self, new_owner: Callable[..., Owner]
    ) -> None:
        poor = new_owner("free")
        call_operator("set_plan", workspaceId=poor.workspace.id, plan="business")
        assert make(poor)

    def test_operator_can_create_a_key_below_business(
        self, new_owner: Callable[..., Owner]
    ) -> None:
        assert new_owner("free").token()

    def test_key_belongs_to_its_creator(self, keyless: Owner) -> None:
        manager = Member(keyless.workspace.id, "manager")
        manager.call("create_key", **KEY)
        make(keyless)
        owners = [key["account"]["id"] for key in list_keys(keyless)["keys"]]
        assert owners == [keyless.workspace.owner_id, manager.id]

    def test_form_sent_twice_creates_one_key(self, keyless: Owner) -> None:
        caller = {"account_id": keyless.workspace.owner_id}
        key = call_console(keyless.workspace.id, "create_key", **caller, key="form-1", **KEY)
        with pytest.raises(ConflictError) as caught:
            call_console(keyless.workspace.id, "create_key", **caller, key="form-1", **KEY)
        assert caught.value.code == "already_created"
        assert caught.value.details["keyId"] == key["keyId"]
        assert len(list_keys(keyless)["keys"]) == 1

    def test_number_of_live_keys_is_limited(
        self, keyless: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (keys, key_list):
            monkeypatch.setattr(module, "MAX_LIVE_KEYS", 2)
        make(keyless)
        make(keyless)
        page = list_keys(keyless)
        assert page["live"] == page["most"] == 2
        with pytest.raises(ConflictError, check=keyed("too_many_keys", maximum=2)):
            make(keyless)


class TestRevokeKey:
    def test_manager_can_revoke_a_key_of_another_account(self, keyless: Owner) -> None:
        key_id = make(keyless)
        manager = Member(keyless.workspace.id, "manager")
        assert manager.call("revoke_key", id=key_id)["keyId"] == key_id
        assert list_keys(keyless)["keys"][0]["state"] == "revoked"


def test_key_of_a_removed_member_is_still_listed(
    keyless: Owner,
) -> None:
    manager = Member(keyless.workspace.id, "manager")
    manager.call("create_key", **KEY)
    email = accounts.get(manager.id).email
    call_operator("remove_member", workspaceId=keyless.workspace.id, email=email)
    (key,) = list_keys(keyless)["keys"]
    assert (key["state"], key["account"]["email"]) == ("revoked", email)


def works(token: str) -> bool:
    return Api(token).call("GET", "/api/workspaces/list").status == 200


class TestExpiry:
    @pytest.mark.parametrize(("days", "valid"), [(36_525, True), (36_526, False), (365_000, False)])
    def test_expiry_is_at_most_a_hundred_years_ahead(
        self, days: int, valid: bool, keyless: Owner, time: Time
    ) -> None:
        expires = (time.now + timedelta(days=days)).isoformat()
        if valid:
            assert make(keyless, expires=expires)
            return
        with pytest.raises(ValidationError) as caught:
            make(keyless, expires=expires)
        (error,) = caught.value.errors
        late = {"too_late", "year"}  # A year beyond 2999 is refused as such.
        assert (error.field, error.key in (late if days > 0 else {"past"})) == ("expires", True)
        assert list_keys(keyless)["keys"] == []

    def test_expiry_at_the_end_of_the_calendar_is_refused(self, keyless: Owner) -> None:
        for expires in ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59"):
            with pytest.raises(ValidationError) as caught:
                make(keyless, expires=expires)
            assert [error.field for error in caught.value.errors] == ["expires"]
            assert caught.value.errors[0].key in {"too_late", "year"}


@pytest.mark.store
class TestKeysOfALostMembership:
    """Keys are revoked when their account is removed, demoted or disabled."""

    @each_loss
    def test_losing_the_right_revokes_the_accounts_keys_only(
        self, loses: Callable[[Member], object], keyless: Owner
    ) -> None:
        manager, other = (Member(keyless.workspace.id, "manager", name) for name in ("eve", "bob"))
        tokens = [manager.create_key() for _ in range(3)]
        other_key = other.create_key()
        loses(manager)
        assert not any(map(works, filter(None, tokens)))
        assert other_key
        assert works(other_key)

    @each_loss
    def test_no_key_is_created_after_the_right_is_lost(
        self, loses: Callable[[Member], object], keyless: Owner
    ) -> None:
        manager = Member(keyless.workspace.id, "manager")
        loses(manager)
        rows_before = read_rows()
        with pytest.raises((ForbiddenError, ConflictError)):
            manager.call("create_key", **KEY)
        assert read_rows() == rows_before

    @each_loss
    def test_right_lost_during_creation_refuses_the_key(
        self,
        loses: Callable[[Member], object],
        keyless: Owner,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The right is lost between its check and the commit of the key."""
        manager = Member(keyless.workspace.id, "manager")
        generate = tokens.generate

        def late(prefix: str) -> str:
            loses(manager)
            return generate(prefix)

        monkeypatch.setattr(tokens, "generate", late)
        with pytest.raises((ForbiddenError, ConflictError)):
            manager.call("create_key", **KEY)
        assert list_keys(keyless)["keys"] == []

    @each_loss
    def test_key_created_during_the_loss_is_revoked(
        self,
        loses: Callable[[Member], object],
        keyless: Owner,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The key is created after the keys were read and before their revocation is committed."""
        manager = Member(keyless.workspace.id, "manager")
        tokens = [manager.create_key()]
        stage = memberships.stage_revocations

        def late(*args: Any, **kwargs: Any) -> Any:
            if len(tokens) == 1:
                tokens.append(manager.create_key())
            return stage(*args, **kwargs)

        for module in (memberships, accounts_domain):
            monkeypatch.setattr(module, "stage_revocations", late)
        loses(manager)
        assert len(tokens) == 2
        assert api_keys.live(keyless.workspace.id) == []

    @each_loss
    def test_concurrently_created_keys_are_revoked_or_refused(
        self, loses: Callable[[Member], object], keyless: Owner
    ) -> None:
        for number in range(4):
            manager = Member(keyless.workspace.id, "manager", f"m{number}")
            tokens = [manager.create_key()]

            def act(turn: int, manager: Member = manager) -> str | None:
                return manager.create_key() if turn else str(loses(manager) or "")

            tokens += run_concurrently(5, act)[1:]
            assert not any(works(token) for token in tokens if token)
            assert api_keys.live(keyless.workspace.id) == []

    def test_demotion_keeps_keys_of_other_workspaces(self, keyless: Owner, owner: Owner) -> None:
        manager = Member(keyless.workspace.id, "manager")
        manager.join(owner.workspace.id)
        other_key = call_console(owner.workspace.id, "create_key", account_id=manager.id, **KEY)
        home_key = manager.create_key()
        manager.is_demoted()
        assert home_key
        assert not works(home_key)
        assert works(other_key["token"])

    def test_becoming_manager_again_keeps_the_keys(self, keyless: Owner) -> None:
        manager = Member(keyless.workspace.id, "manager")
        token = manager.create_key()
        manager.join(keyless.workspace.id, "manager")
        assert token
        assert works(token)

    def test_concurrent_role_changes_leave_no_key(
        self, keyless: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Two operators add an account at the same time, and it creates a key in between."""
        manager = Member(keyless.workspace.id, "manager")
        manager.is_removed()
        row = memberships.workspaces.membership_row
        tokens: list[str | None] = []

        def late(*args: Any, **kwargs: Any) -> Any:
            if not tokens:
                tokens.append(None)
                manager.join(keyless.workspace.id)
                tokens[0] = manager.create_key()
            return row(*args, **kwargs)

        monkeypatch.setattr(memberships.workspaces, "membership_row", late)
        manager.is_demoted()
        assert tokens[0]
        assert not works(tokens[0])

    def test_demotion_is_audited_with_the_revoked_keys(self, keyless: Owner) -> None:
        manager = Member(keyless.workspace.id, "manager")
        manager.create_key()
        (key,) = list_keys(keyless)["keys"]
        manager.is_demoted()
        (entry, *_) = audit.latest(keyless.workspace.id)
        assert (entry.operation, entry.actor) == ("add_member", "operator")
        assert set(entry.resources) == {f"key:{key['id']}", f"account:{manager.id}"}


class TestDisableAccount:
    def test_disabling_is_audited_in_workspaces_with_revoked_keys(
        self, keyless: Owner, new_owner: Callable[..., Owner]
    ) -> None:
        manager = Member(keyless.workspace.id, "manager")
        homes = [keyless.workspace.id, *(new_owner().workspace.id for _ in range(2))]
        key_ids_by_workspace: dict[str, set[str]] = {}
        for home, count in zip(homes, (1, 2, 0), strict=True):
            manager.join(home)
            caller = {"account_id": manager.id}
            key_ids_by_workspace[home] = {
                call_console(home, "create_key", **caller, **KEY)["keyId"] for _ in range(count)
            }
        assert manager.is_disabled()["revokedKeys"] == 3
        for home, key_ids in key_ids_by_workspace.items():
            events = [e for e in audit.latest(home) if e.operation == "disable_account"]
            assert [(set(e.resources), e.actor) for e in events] == (
                [({*(f"key:{key_id}" for key_id in key_ids), f"account:{manager.id}"}, "operator")]
                if key_ids
                else []
            )
        (entry, *_) = audit.latest("platform")
        assert (entry.operation, entry.resources) == ("disable_account", [f"account:{manager.id}"])

    def test_second_call_completes_interrupted_disabling(
        self, keyless: Owner, new_owner: Callable[..., Owner], time: Time
    ) -> None:
        """The call is interrupted after each of its transactions in turn."""
        for allowed in range(4):
            manager = Member(keyless.workspace.id, "manager", f"m{allowed}")
            homes = [keyless.workspace.id, new_owner().workspace.id, new_owner().workspace.id]
            for home in homes:
                manager.join(home)
                call_console(home, "create_key", account_id=manager.id, **KEY)
            with transactions_failing_after(allowed), pytest.raises(UnavailableError):
                manager.is_disabled()
            since = accounts.get(manager.id).disabled_at
            assert since == (time.now if allowed else None)
            time.pass_by(hours=1)
            response = manager.is_disabled()
            assert response["revokedKeys"] == min(3, 4 - allowed)
            assert accounts.get(manager.id).disabled_at == (since or time.now)
            assert [key for home in homes for key in api_keys.live(home, manager.id)] == []

    def test_disabling_again_changes_nothing(self, keyless: Owner, time: Time) -> None:
        manager = Member(keyless.workspace.id, "manager")
        manager.create_key()
        first = manager.is_disabled()
        rows_before = read_rows()
        time.pass_by(hours=1)
        assert manager.is_disabled() == {**first, "revokedKeys": 0}
        assert read_rows() == rows_before

    def test_operator_cannot_create_a_key_for_a_disabled_owner(self, keyless: Owner) -> None:
        email = accounts.get(keyless.workspace.owner_id).email
        call_operator("disable_account", email=email)
        with pytest.raises(ConflictError, match=f"{email} is disabled"):
            keyless.token()
