"""Concurrent requests, and lost responses of the database."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core import retry
from chalicelib.core.errors import AppError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.domains.identity.flows import connection_changes
from chalicelib.domains.identity.store import accounts, connections, console_sessions
from chalicelib.domains.oauth.operations import grants
from tests.conftest import PASSWORD, Owner, Time, call_console, call_operator, run_concurrently
from tests.factories.oauth import (
    CLIENT_ID,
    GRANT,
    ConnectedApp,
    attempt,
    connect,
    exchange_arguments,
    grant,
    works,
)
from tests.fakes.dynamodb_faults import ALWAYS, FAULTS, TIMES, TRANSACTION, Fault, faulty
from tests.support.effort import matrix

pytestmark = pytest.mark.store


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "sleep", lambda _: None)


class TestAtTheSameMoment:
    def test_code_used_twice_ends_the_connection(self, owner: Owner) -> None:
        consent = grant(owner.workspace)
        arguments = exchange_arguments(consent["code"])
        answers = run_concurrently(4, lambda _: attempt("exchange_code", **arguments))
        (token_response,) = filter(None, answers)
        assert not works(token_response["accessToken"])
        assert connections.require(consent["connectionId"]).state == "ended"

    def test_refreshes_with_one_token_get_one_successor(self, owner: Owner, time: Time) -> None:
        app = connect(owner.workspace)
        arguments = {"refreshToken": app.refresh, "clientId": CLIENT_ID}
        answers = run_concurrently(10, lambda _: attempt("refresh_tokens", **arguments))
        assert all(answers)
        assert len({response["accessToken"] for response in answers}) == 10
        (successor,) = {response["refreshToken"] for response in answers}
        time.pass_by(minutes=5)
        assert all(works(response["accessToken"]) for response in answers)
        assert ConnectedApp(app.id, app.code, app.access, successor).refreshed().works

    @pytest.mark.parametrize("ends", ["end_connection", "revoke_token", "sign_out_everywhere"])
    def test_refresh_during_the_end_leaves_no_working_token(self, owner: Owner, ends: str) -> None:
        for _ in range(3):
            app = connect(owner.workspace)

            def act(turn: int, app: ConnectedApp = app) -> Any:
                arguments = {"refreshToken": app.refresh, "clientId": CLIENT_ID}
                return attempt("refresh_tokens", **arguments) if turn else end(app)

            def end(app: ConnectedApp) -> None:
                if ends == "revoke_token":
                    attempt(ends, token=app.refresh, clientId=CLIENT_ID)
                elif ends == "end_connection":
                    call_operator(ends, id=app.id)
                else:
                    person = owner.workspace.owner_id
                    call_console(owner.workspace.id, ends, account_id=person)

            answers = run_concurrently(4, act)[1:]
            assert not app.works
            assert not any(works(response["accessToken"]) for response in filter(None, answers))

    @pytest.mark.parametrize("ends", ["remove_member", "disable_account", "sign_out_everywhere"])
    def test_consent_during_the_loss_of_access_leaves_no_connection(
        self, owner: Owner, ends: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The app is connected after the connections were read, before their end is committed."""
        email = "manager@example.com"
        call_operator("create_account", email=email, password=PASSWORD)
        where = {"workspaceId": owner.workspace.id, "email": email}
        call_operator("add_member", **where, role="manager")
        person = accounts.require_by_email(email).id
        connect(owner.workspace, person)
        tried: list[object] = []
        stage = connection_changes.stage_endings

        def late(*arguments: Any, **options: Any) -> None:
            if not tried:
                tried.append(None)
                try:
                    tried.append(grant(owner.workspace, person))
                except AppError as error:
                    tried.append(error)
            stage(*arguments, **options)

        for module in ("flows.connection_changes", "flows.memberships", "operations.accounts"):
            monkeypatch.setattr(f"chalicelib.domains.identity.{module}.stage_endings", late)
        if ends == "sign_out_everywhere":
            call_console(owner.workspace.id, ends, account_id=person)
        else:
            call_operator(ends, **where if ends == "remove_member" else {"email": email})
        assert len(tried) == 2
        assert connections.live(owner.workspace.id) == []

    @pytest.mark.parametrize("ends", ["disable_account", "set_password"])
    def test_consent_of_a_session_that_ends_before_the_commit_is_refused(
        self, owner: Owner, ends: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session = console_sessions.find(owner.start_session())
        assert session is not None
        email = accounts.get(owner.workspace.owner_id).email
        password = {"password": "battery staple"} if ends == "set_password" else {}
        removals: list[object] = []
        check = grants._check_limits

        def late(*arguments: Any, **options: Any) -> None:
            if not removals:
                removals.append(call_operator(ends, email=email, **password))
            check(*arguments, **options)

        monkeypatch.setattr(grants, "_check_limits", late)
        person = SessionPrincipal(
            account_id=owner.workspace.owner_id,
            workspace_id=owner.workspace.id,
            membership=Role.OWNER,
            session_id=session.session_id,
            password=PASSWORD,
        )
        with pytest.raises(AppError) as refused:
            invoke(REGISTRY["grant_access"], person, lambda: GRANT, request_id="r")
        assert refused.value.key in {"account_disabled", "session_ended"}
        assert removals
        assert connections.live(owner.workspace.id) == []

    def test_consents_at_the_same_moment_keep_the_limit(
        self, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connections, "MAX_LIVE", 3)

        def consent(_: int) -> bool:
            try:
                grant(owner.workspace)
            except AppError:
                return False
            return True

        assert sum(run_concurrently(6, consent)) == 3

    def test_plan_change_during_consent_reaches_the_new_connection(self, owner: Owner) -> None:
        def act(turn: int) -> Any:
            if turn:
                return grant(owner.workspace)
            return call_operator("set_plan", workspaceId=owner.workspace.id, plan="enterprise")

        run_concurrently(4, act)
        plans = {connection.plan for connection in connections.live(owner.workspace.id)}
        assert plans == {"enterprise"}


@matrix("fault, when", FAULTS, TIMES)
class TestLostAnswers:
    """Responses of the database that are lost once, or for all attempts."""

    def test_exchange_after_lost_responses_gives_working_tokens(
        self, fault: Fault, when: str, owner: Owner
    ) -> None:
        arguments = exchange_arguments(grant(owner.workspace)["code"])
        with faulty(TRANSACTION, fault, when, 3):
            response = attempt("exchange_code", **arguments)
        assert works(response["accessToken"])

    def test_client_can_repeat_a_refresh_with_a_lost_response(
        self, fault: Fault, when: str, owner: Owner
    ) -> None:
        app = connect(owner.workspace)
        with faulty(TRANSACTION, fault, when, ALWAYS):
            assert attempt("refresh_tokens", refreshToken=app.refresh, clientId=CLIENT_ID) is None
        newer = app.refreshed()
        assert newer.works
        assert app.works
        assert newer.refreshed().works

    def test_end_is_final_after_lost_responses(
        self, fault: Fault, when: str, owner: Owner, new_owner: Callable[..., Owner]
    ) -> None:
        app, other = connect(owner.workspace), connect(new_owner().workspace)
        with faulty(TRANSACTION, fault, when, 3):
            call_operator("end_connection", id=app.id)
        assert not app.works
        assert other.works
