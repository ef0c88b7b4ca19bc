"""Refresh and revocation of tokens, with parallel refreshes, replays and narrower scopes."""

import pytest

from chalicelib.core import clock
from chalicelib.domains.identity.rules import token_pairs
from chalicelib.domains.identity.store import connections
from chalicelib.domains.oauth.operations import tokens as operations
from chalicelib.engine.conditional_updates import update_if
from chalicelib.lib import tokens
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, all_rows, call_console
from tests.factories.oauth import (
    CLIENT_ID,
    ConnectedApp,
    call,
    connect,
    forged,
    malformed,
    refusal,
    works,
)


@pytest.fixture
def app(owner: Owner, time: Time) -> ConnectedApp:
    return connect(owner.workspace)


class TestRotation:
    def test_refresh_gives_new_tokens_and_keeps_the_old_access_token(
        self, app: ConnectedApp, time: Time
    ) -> None:
        time.pass_by(minutes=30)
        newer = app.refreshed()
        assert {newer.access, newer.refresh}.isdisjoint({app.access, app.refresh})
        assert app.works
        assert newer.works

    def test_access_token_is_valid_for_one_hour(self, app: ConnectedApp, time: Time) -> None:
        time.pass_by(seconds=3_599)
        assert app.works
        time.pass_by(seconds=1)
        assert not app.works
        assert app.refreshed().works

    def test_refresh_token_is_valid_for_60_days_from_its_issue(
        self, app: ConnectedApp, time: Time
    ) -> None:
        for _ in range(3):
            time.pass_by(days=59)
            app = app.refreshed()
        time.pass_by(days=60)
        assert app.refresh_refusal() == "invalid_grant"

    def test_connection_ends_180_days_after_consent(
        self, app: ConnectedApp, owner: Owner, time: Time
    ) -> None:
        for _ in range(4):
            time.pass_by(days=44)
            app = app.refreshed()
        time.pass_by(days=3, hours=23, minutes=40)
        arguments = {"refreshToken": app.refresh, "clientId": CLIENT_ID}
        last = call("refresh_tokens", **arguments)
        assert last["expiresIn"] == 20 * 60
        assert works(last["accessToken"])
        time.pass_by(minutes=20)
        assert not works(last["accessToken"])
        newest = ConnectedApp(app.id, app.code, last["accessToken"], last["refreshToken"])
        assert newest.refresh_refusal() == "invalid_grant"
        (connection,) = call_console(owner.workspace.id, "list_connections")["connections"]
        assert connection["state"] == "expired"
        assert connection["endsAt"] == "2027-07-14T12:00:00.000Z"
        assert connection["endedAt"] is None
        row = connections.require(app.id)
        assert row.expires == row.ends_at + connections.TTL_MARGIN

    def test_refresh_token_of_another_client_is_refused(self, app: ConnectedApp) -> None:
        assert app.refresh_refusal(clientId="https://other.example/") == "invalid_grant"
        assert app.refreshed().works

    def test_tokens_of_another_kind_are_refused(self, app: ConnectedApp) -> None:
        for wrong_token in (app.access, app.code, forged(app.id, tokens.REFRESH_PREFIX)):
            wrong = ConnectedApp(app.id, app.code, app.access, wrong_token)
            assert wrong.refresh_refusal() == "invalid_grant"
        assert not works(app.refresh)
        assert not works(app.code)
        assert app.refreshed().works

    def test_malformed_refresh_tokens_are_refused_without_a_read(self, app: ConnectedApp) -> None:
        wrong = ConnectedApp(app.id, app.code, app.access, malformed(app.refresh))
        with metering() as usage:
            assert wrong.refresh_refusal() == "invalid_grant"
        assert usage.reads == 0


@pytest.mark.store
class TestParallelRefreshes:
    def test_token_replaced_less_than_two_minutes_ago_gets_the_same_successor(
        self, app: ConnectedApp, time: Time
    ) -> None:
        first = app.refreshed()
        time.pass_by(seconds=119)
        second = app.refreshed()
        assert second.refresh == first.refresh
        assert second.access != first.access
        assert first.works
        assert second.works
        time.pass_by(hours=1)
        assert second.refreshed().works

    def test_replayed_token_starts_no_second_chain(self, app: ConnectedApp, time: Time) -> None:
        """A thief repeats a stolen token. The second use of the successor ends the connection."""
        client = app.refreshed()
        thief = app.refreshed()
        time.pass_by(minutes=50)
        client = client.refreshed()
        time.pass_by(minutes=2)
        assert thief.refresh_refusal() == "invalid_grant"
        assert connections.require(app.id).state == "ended"
        assert not client.works

    def test_token_with_a_replaced_successor_is_refused(
        self, app: ConnectedApp, time: Time
    ) -> None:
        newest = app.refreshed().refreshed()
        time.pass_by(seconds=119)
        assert app.refresh_refusal() == "invalid_grant"
        assert newest.works
        assert newest.refreshed().works

    def test_repetition_under_another_master_key_is_refused(
        self, app: ConnectedApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        newer = app.refreshed()
        monkeypatch.setattr(operations, "master_key", lambda: b"another master key")
        assert app.refresh_refusal() == "invalid_grant"
        assert newer.works
        assert newer.refreshed().works

    def test_repetition_can_have_other_scopes(self, app: ConnectedApp) -> None:
        app.refreshed()
        narrow = app.refreshed(scopes=["crm:read"])
        assert Api(narrow.access).tool("svc_list_sites")[0]
        assert not Api(narrow.refreshed().access).tool("svc_list_sites")[0]

    def test_siblings_from_before_an_upgrade_refresh_separately(self, app: ConnectedApp) -> None:
        """Former releases gave a repeated token a random successor of its own."""
        secret = tokens.successor(app.refresh, b"the former release")
        now = connections.seconds(clock.now())
        sibling = token_pairs.TokenPair("another", tokens.short_digest(secret), now)
        row = connections.require(app.id)
        actions = connections.token_actions(row, [*row.token_pairs, sibling])
        assert update_if(row, actions, connections.unchanged(row))
        other = ConnectedApp(app.id, app.code, app.access, secret).refreshed()
        assert other.works
        assert app.refreshed().works
        assert other.refreshed().works

    def test_token_replaced_two_minutes_ago_ends_the_connection(
        self, app: ConnectedApp, time: Time
    ) -> None:
        newer = app.refreshed()
        time.pass_by(seconds=120)
        assert app.refresh_refusal() == "invalid_grant"
        assert not newer.works
        assert newer.refresh_refusal() == "invalid_grant"

    def test_replay_after_many_rotations_ends_the_connection(
        self, app: ConnectedApp, time: Time
    ) -> None:
        newest = app
        for _ in range(30):
            time.pass_by(days=1)
            newest = newest.refreshed()
        assert app.refresh_refusal() == "invalid_grant"
        assert not newest.works

    def test_many_parallel_refreshes_get_one_successor(self, app: ConnectedApp, time: Time) -> None:
        first, *_, newest = repeated = [app.refreshed() for _ in range(30)]
        assert {refreshed.refresh for refreshed in repeated} == {newest.refresh}
        working = [refreshed.works for refreshed in repeated[1:]]
        assert working == sorted(working)
        assert working.count(True) == 18
        assert first.works  # The pair of this token has the refresh token that is still unused.
        time.pass_by(hours=1)
        assert newest.refreshed().works

    def test_rotations_are_limited_to_ten_in_two_minutes(
        self, app: ConnectedApp, time: Time
    ) -> None:
        newest = app
        for _ in range(10):
            newest = newest.refreshed()
        assert newest.refresh_refusal() == "invalid_grant"
        time.pass_by(minutes=2)
        assert newest.refreshed().works

    def test_processes_with_a_shared_token_store_refresh_in_parallel(
        self, app: ConnectedApp, time: Time
    ) -> None:
        """Each hour three processes refresh the stored token, and the last response is stored."""
        for _ in range(24):
            time.pass_by(hours=1)
            *_, app = [app.refreshed() for _ in range(3)]
            assert app.works

    def test_refreshes_with_a_stolen_token_do_not_hide_the_replay(
        self, app: ConnectedApp, time: Time
    ) -> None:
        """A thief refreshes as often as allowed, so that the connection drops older pairs."""
        stolen = app
        for _ in range(5):
            stolen_pairs = [stolen.refreshed() for _ in range(5)]
            time.pass_by(minutes=2)
            stolen = stolen_pairs[-1]
        assert stolen.works
        assert app.refresh_refusal() == "invalid_grant"
        assert not stolen.works


class TestNarrowerScopes:
    def test_refresh_can_narrow_the_scopes_of_the_access_token_only(
        self, app: ConnectedApp
    ) -> None:
        narrow = app.refreshed(scopes=["crm:read"])
        assert not Api(narrow.access).tool("svc_list_leads")[0]
        assert Api(narrow.access).tool("svc_list_sites")[0]
        wide = narrow.refreshed()
        assert not Api(wide.access).tool("svc_list_sites")[0]

    def test_scopes_that_were_not_granted_are_left_out(self, app: ConnectedApp) -> None:
        arguments = {"refreshToken": app.refresh, "clientId": CLIENT_ID}
        scopes = ["crm:read", "products:read", "offline_access"]
        assert call("refresh_tokens", **arguments, scopes=scopes)["scopes"] == ["crm:read"]

    def test_refresh_for_only_other_scopes_is_refused(self, app: ConnectedApp) -> None:
        assert app.refresh_refusal(scopes=["products:read"]) == "invalid_scope"
        assert app.refreshed().works


class TestRevocation:
    @pytest.mark.parametrize("kind", ["access", "refresh"])
    def test_revoking_a_token_ends_its_connection(self, app: ConnectedApp, kind: str) -> None:
        newer = app.refreshed()
        call("revoke_token", token=getattr(newer, kind), clientId=CLIENT_ID)
        assert not newer.works
        assert not app.works
        assert newer.refresh_refusal() == "invalid_grant"

    def test_revoking_a_replaced_token_ends_its_connection(
        self, app: ConnectedApp, time: Time
    ) -> None:
        newer = app.refreshed()
        time.pass_by(hours=5)
        call("revoke_token", token=app.refresh, clientId=CLIENT_ID)
        assert newer.refresh_refusal() == "invalid_grant"

    def test_revoking_unknown_tokens_changes_nothing(self, app: ConnectedApp) -> None:
        rows_before = all_rows()
        wrong = [forged(app.id, tokens.ACCESS_PREFIX), forged(app.id, tokens.REFRESH_PREFIX)]
        for token in (*wrong, malformed(app.access), "x", app.code, "svc_live_"):
            assert call("revoke_token", token=token, clientId=CLIENT_ID) == {"status": True}
        assert {k: v for k, v in all_rows().items() if "/LIMIT" not in k.upper()} == {
            k: v for k, v in rows_before.items() if "/LIMIT" not in k.upper()
        }
        assert app.works

    def test_token_of_another_client_is_not_revoked(self, app: ConnectedApp) -> None:
        arguments = {"token": app.refresh, "clientId": "https://other.example/"}
        assert refusal("revoke_token", **arguments) == "invalid_grant"
        assert app.works

    def test_revoking_twice_succeeds(self, app: ConnectedApp, owner: Owner, time: Time) -> None:
        call("revoke_token", token=app.refresh, clientId=CLIENT_ID)
        time.pass_by(hours=1)
        call("revoke_token", token=app.refresh, clientId=CLIENT_ID)
        (connection,) = call_console(owner.workspace.id, "list_connections")["connections"]
        assert connection["endedAt"] == "2027-01-15T12:00:00.000Z"
        ended = connections.require(app.id)
        assert ended.expires - ended.ended_at == connections.ENDED_LIFE
