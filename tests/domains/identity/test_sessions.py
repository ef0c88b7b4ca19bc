"""Sessions of the console, from sign-in to sign-out and password changes."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from argon2 import PasswordHasher

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import (
    AppError,
    NotFoundError,
    RateLimitedError,
    UnauthorizedError,
    ValidationError,
)
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import SessionPrincipal
from chalicelib.core.settings import settings
from chalicelib.domains.identity.operations import sessions
from chalicelib.domains.identity.rules import passwords
from chalicelib.domains.identity.store import accounts, console_sessions
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.console_sessions import ConsoleSessionRow
from tests.conftest import Time, all_rows, call_operator, run_concurrently
from tests.factories.console import begun

EMAIL, PASSWORD = "ada@example.com", "correct horse"
HASHER = passwords.hasher
"""The hasher of the service. The tests themselves use a cheap one."""


@pytest.fixture
def account(database: None) -> str:
    """The id of an account."""
    account_id: str = call_operator("create_account", email=EMAIL, password=PASSWORD)["accountId"]
    return account_id


@pytest.fixture
def production_limits(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[None]:
    """Apply the rate limits of production."""
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    assert settings().rate_limit_scale == 1
    yield
    monkeypatch.undo()
    reload_settings()


def live(token: str) -> ConsoleSessionRow | None:
    """Return the live session of a token, or None."""
    session = console_sessions.find(token)
    return session if session and session.lives(accounts.get(session.account_id)) else None


def call_signed_in(token: str, operation: str, /, **arguments: Any) -> Any:
    """Run an operation as the signed-in account."""
    session = live(token)
    assert session
    person = SessionPrincipal(account_id=session.account_id, session_id=session.session_id)
    reply = invoke(REGISTRY[operation], person, lambda: arguments, request_id="r")
    return json.loads(reply.body)["data"]


def refusal(email: str = EMAIL, password: str = PASSWORD, visitor: str = "v") -> AppError:
    with pytest.raises(AppError) as caught:
        begun(email, password, visitor=visitor)
    return caught.value


class TestSignIn:
    def test_sign_in_starts_a_session(self, account: str) -> None:
        first, second = begun(EMAIL), begun(" Ada@Example.com ")
        assert first != second
        for token in (first, second):
            session = live(token)
            assert session
            assert session.account_id == account
        assert len(first) == 43  # 256 bits

    def test_every_failed_sign_in_gets_the_same_error(self, account: str) -> None:
        call_operator("create_account", email="off@example.com", password=PASSWORD)
        call_operator("disable_account", email="off@example.com")
        errors = [
            refusal("nobody@example.com"),
            refusal(password="correct horsf"),
            refusal("off@example.com"),
            refusal("off@example.com", "correct horsf"),
        ]
        assert {type(error) for error in errors} == {UnauthorizedError}
        assert len({(error.message, error.status, str(error.details)) for error in errors}) == 1

    def test_unknown_addresses_take_as_long_as_known_ones(
        self, account: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Argon2 takes most of the time. It runs once in either case, with the same cost."""
        verified: list[str] = []

        class Watched(PasswordHasher):
            def verify(self, hash: str | bytes, password: str | bytes) -> Any:  # noqa: A002  theirs
                verified.append(str(hash).rpartition("$")[0].rpartition("$")[0])
                return super().verify(hash, password)

        watched = Watched(time_cost=1, memory_cost=8, parallelism=1)
        passwords._nobodys.cache_clear()
        monkeypatch.setattr(passwords, "hasher", lambda: watched)
        refusal("nobody@example.com")
        refusal(password="wrong")
        begun(EMAIL)
        passwords._nobodys.cache_clear()
        assert len(verified) == 3
        assert len(set(verified)) == 1  # the parameters

    def test_dummy_password_of_unknown_addresses_signs_no_user_in(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        passwords._nobodys.cache_clear()
        monkeypatch.setattr(passwords, "token_urlsafe", lambda _: PASSWORD)
        assert not passwords.matches(None, PASSWORD)
        passwords._nobodys.cache_clear()

    def test_passwords_are_hashed_with_argon2id_parameters_of_the_rfc(self) -> None:
        """RFC 9106, 4: 64 MiB, three passes and four lanes if memory is low."""
        assert HASHER().hash(PASSWORD).startswith("$argon2id$v=19$m=65536,t=3,p=4$")

    def test_only_a_hash_of_the_session_token_is_stored(self, account: str) -> None:
        token = begun(EMAIL, browser="Firefox")
        stored_json = json.dumps(all_rows(), default=str)
        assert "Firefox" in stored_json
        assert token not in stored_json
        assert PASSWORD not in stored_json

    def test_sign_in_rehashes_a_password_with_outdated_parameters(
        self, account: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old_hash = accounts.get(account).password_hash
        begun(EMAIL)
        assert accounts.get(account).password_hash == old_hash
        stronger = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1)
        monkeypatch.setattr(passwords, "hasher", lambda: stronger)
        token = begun(EMAIL)
        new_hash = accounts.get(account).password_hash
        assert new_hash != old_hash
        assert "t=2" in new_hash
        assert live(token)
        assert begun(EMAIL)

    def test_long_user_agent_is_cut(self, account: str) -> None:
        session = live(begun(EMAIL, browser="x" * 5000))
        assert session
        assert len(session.browser) == 200


@pytest.mark.store
@pytest.mark.usefixtures("production_limits")
class TestThrottle:
    def test_ten_attempts_are_allowed_in_fifteen_minutes(self, account: str, time: Time) -> None:
        for _ in range(10):
            assert isinstance(refusal(password="wrong"), UnauthorizedError)
        error = refusal()  # the right one
        assert isinstance(error, RateLimitedError)
        assert int(error.headers["Retry-After"]) == 900
        time.pass_by(minutes=14, seconds=59)
        assert isinstance(refusal(), RateLimitedError)
        time.pass_by(seconds=1)
        assert live(begun(EMAIL))

    def test_limit_applies_to_one_visitor_and_one_account(self, account: str, time: Time) -> None:
        call_operator("create_account", email="eve@example.com", password=PASSWORD)
        for _ in range(11):
            refusal(password="wrong", visitor="attacker")
        assert isinstance(refusal(visitor="attacker"), RateLimitedError)
        assert live(begun(EMAIL, visitor="another"))
        assert live(begun("eve@example.com", visitor="attacker"))

    def test_attempts_for_unknown_addresses_are_limited_too(self, account: str, time: Time) -> None:
        error_types = [type(refusal("nobody@example.com", "x")) for _ in range(11)]
        assert error_types == [UnauthorizedError] * 10 + [RateLimitedError]

    def test_spellings_of_one_address_share_a_limit(self, account: str, time: Time) -> None:
        for number in range(10):
            refusal("ADA@example.com" if number % 2 else " ada@EXAMPLE.com", "wrong")
        assert isinstance(refusal(), RateLimitedError)

    def test_one_visitor_may_try_a_hundred_addresses(self, database: None, time: Time) -> None:
        error_types = [type(refusal(f"a{number}@example.com", "x")) for number in range(101)]
        assert error_types == [UnauthorizedError] * 100 + [RateLimitedError]

    @pytest.mark.parametrize("email", [EMAIL, "nobody@example.com"])
    def test_fifty_failures_in_an_hour_lock_an_account(
        self, email: str, account: str, time: Time
    ) -> None:
        errors = [refusal(email, "x", visitor=f"v{number % 7}") for number in range(51)]
        assert {type(error) for error in errors[:50]} == {UnauthorizedError}
        assert isinstance(errors[50], RateLimitedError)
        assert errors[50].key == "sign_in_failures"
        assert errors[50].headers["RateLimit-Limit"] == "50"
        assert errors[50].headers["Retry-After"] == "3600"
        assert isinstance(refusal(email, visitor="the owner"), RateLimitedError)  # the right one
        time.pass_by(hours=1)
        assert isinstance(refusal(email, "x"), UnauthorizedError)

    def test_locked_account_keeps_its_sessions_and_locks_no_other(
        self, account: str, time: Time
    ) -> None:
        call_operator("create_account", email="eve@example.com", password=PASSWORD)
        token = begun(EMAIL)
        for number in range(51):
            refusal(password="x", visitor=f"v{number % 7}")
        assert live(token)
        assert begun("eve@example.com")

    def test_successful_attempts_never_lock_an_account(self, account: str, time: Time) -> None:
        for number in range(60):
            assert begun(EMAIL, visitor=f"v{number % 8}")
        for number in range(50):
            error = refusal(password="x", visitor=f"w{number % 7}")
            assert isinstance(error, UnauthorizedError)

    def test_concurrent_attempts_do_not_exceed_the_limit_of_an_account(
        self, account: str, time: Time
    ) -> None:
        error_types = run_concurrently(
            60, lambda number: type(refusal(password="x", visitor=f"v{number}"))
        )
        assert error_types.count(UnauthorizedError) == 50
        assert error_types.count(RateLimitedError) == 10

    def test_limit_counter_does_not_store_the_address(self, account: str) -> None:
        refusal("nobody@example.com")
        assert "nobody@example.com" not in json.dumps(all_rows(), default=str)

    def test_password_guesses_within_a_session_are_limited(self, account: str, time: Time) -> None:
        token = begun(EMAIL)
        new_password = {"password": "another one"}
        for _ in range(10):
            with pytest.raises(ValidationError):
                call_signed_in(token, "change_password", current="guess", **new_password)
        with pytest.raises(RateLimitedError):
            call_signed_in(token, "change_password", current=PASSWORD, **new_password)


class TestSessionLifetime:
    def test_session_ends_after_twelve_idle_hours(self, account: str, time: Time) -> None:
        token = begun(EMAIL)
        time.pass_by(hours=11, minutes=59)
        assert live(token)
        time.pass_by(minutes=1)
        assert not live(token)

    def test_used_session_ends_thirty_days_after_its_start(self, account: str, time: Time) -> None:
        token = begun(EMAIL)
        for _ in range(30 * 24 // 8):
            session = live(token)
            assert session
            console_sessions.touch(session)
            time.pass_by(hours=8)
        assert not live(token)

    def test_session_use_is_written_at_most_once_in_ten_minutes(
        self, account: str, time: Time
    ) -> None:
        token = begun(EMAIL)
        began = time.now
        for minutes, seen in ((9, 0), (1, 10), (9, 10), (1, 20)):
            time.pass_by(minutes=minutes)
            session = live(token)
            assert session
            console_sessions.touch(session)
            used_session = live(token)
            assert used_session
            assert (used_session.seen_at - began).total_seconds() == seen * 60

    def test_write_of_last_use_does_not_restore_an_ended_session(
        self, account: str, time: Time
    ) -> None:
        token = begun(EMAIL)
        session = live(token)
        assert session
        call_signed_in(token, "end_session", id=session.session_id)
        time.pass_by(minutes=11)
        console_sessions.touch(session)
        assert console_sessions.find(token) is None

    def test_session_ends_when_the_operator_sets_the_password(self, account: str) -> None:
        tokens = [begun(EMAIL), begun(EMAIL)]
        call_operator("set_password", email=EMAIL, password="a new password")
        assert not any(map(live, tokens))
        assert isinstance(refusal(), UnauthorizedError)
        assert live(begun(EMAIL, "a new password"))

    def test_session_ends_when_the_account_is_disabled(self, account: str) -> None:
        token = begun(EMAIL)
        call_operator("disable_account", email=EMAIL)
        assert not live(token)


class TestOwnSessions:
    def test_session_list_shows_all_live_sessions(self, account: str, time: Time) -> None:
        call_operator("create_account", email="eve@example.com", password=PASSWORD)
        begun("eve@example.com")
        first = begun(EMAIL, browser="Firefox")
        time.pass_by(minutes=1)
        begun(EMAIL, browser="Chrome")
        sessions = call_signed_in(first, "list_sessions")["sessions"]
        rows = [
            (session["browser"], session["current"], session["createdAt"]) for session in sessions
        ]
        assert rows == [
            ("Chrome", False, "2027-01-15T12:01:00.000Z"),
            ("Firefox", True, "2027-01-15T12:00:00.000Z"),
        ]
        assert first not in json.dumps(sessions)
        time.pass_by(hours=11, minutes=59, seconds=30)
        third = begun(EMAIL)
        assert len(call_signed_in(third, "list_sessions")["sessions"]) == 2

    def test_ending_one_session_keeps_the_others(self, account: str) -> None:
        first, second = begun(EMAIL), begun(EMAIL)
        session = live(second)
        assert session
        call_signed_in(first, "end_session", id=session.session_id)
        assert live(first)
        assert not live(second)
        with pytest.raises(NotFoundError):
            call_signed_in(first, "end_session", id=session.session_id)

    def test_session_of_another_account_cannot_be_ended(self, account: str) -> None:
        call_operator("create_account", email="eve@example.com", password=PASSWORD)
        own_token, token = begun(EMAIL), begun("eve@example.com")
        theirs = live(token)
        assert theirs
        with pytest.raises(NotFoundError) as foreign:
            call_signed_in(own_token, "end_session", id=theirs.session_id)
        with pytest.raises(NotFoundError) as unknown:
            call_signed_in(own_token, "end_session", id="01KDVDNA00B3S3R1913KPENF65")
        assert str(foreign.value) == str(unknown.value)
        assert live(token)

    def test_sign_out_everywhere_ends_all_sessions(self, account: str) -> None:
        tokens = [begun(EMAIL) for _ in range(3)]
        call_signed_in(tokens[0], "sign_out_everywhere")
        assert not any(map(live, tokens))
        assert live(begun(EMAIL))

    def test_password_change_ends_all_sessions_and_starts_a_new_one(self, account: str) -> None:
        own_token, other = begun(EMAIL, browser="Firefox"), begun(EMAIL)
        response = call_signed_in(
            own_token, "change_password", current=PASSWORD, password="a new password"
        )
        assert not live(own_token)
        assert not live(other)
        session = live(response["token"])
        assert session
        assert session.browser == "Firefox"
        assert isinstance(refusal(), UnauthorizedError)
        assert live(begun(EMAIL, "a new password"))

    @pytest.mark.parametrize(
        ("field", "arguments"),
        [
            ("current", {"current": "wrong", "password": "a new password"}),
            ("current", {"current": "", "password": "a new password"}),
            ("password", {"current": PASSWORD, "password": "short"}),
        ],
    )
    def test_refused_password_change_changes_nothing(
        self, field: str, arguments: dict[str, str], account: str
    ) -> None:
        token = begun(EMAIL)
        attributes_before = accounts.get(account).attribute_values
        with pytest.raises(ValidationError) as caught:
            call_signed_in(token, "change_password", **arguments)
        assert [error.field for error in caught.value.errors] == [field]
        assert not any(secret in str(caught.value.errors) for secret in ("wrong", 'short"'))
        assert accounts.get(account).attribute_values == attributes_before
        assert live(token)


@pytest.mark.store
class TestRaces:
    def test_sign_in_fails_if_the_password_changes_before_the_commit(
        self, account: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The password changes between its check and the commit of the session."""
        require = sessions.begin_session
        changes: list[str] = []

        def late(ctx: Any, row: AccountRow, browser: str) -> str:
            if not changes:
                changes.append("now")
                call_operator("set_password", email=EMAIL, password="a new password")
            return require(ctx, row, browser)

        monkeypatch.setattr(sessions, "begin_session", late)
        assert isinstance(refusal(), UnauthorizedError)
        assert console_sessions.read_live(accounts.get(account)) == []

    def test_password_change_fails_after_a_concurrent_change(
        self, account: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token = begun(EMAIL)
        hashed = passwords.hashed
        changes: list[str] = []

        def late(password: str) -> str:
            if not changes:
                changes.append("now")
                call_operator("set_password", email=EMAIL, password="the operator's")
            return hashed(password)

        monkeypatch.setattr(passwords, "hashed", late)
        with pytest.raises(ValidationError):
            call_signed_in(token, "change_password", current=PASSWORD, password="the thief's")
        assert live(begun(EMAIL, "the operator's"))

    def test_concurrent_sign_ins_leave_no_session_of_the_old_password(self, account: str) -> None:
        owner = begun(EMAIL)

        def act(number: int) -> str:
            if number == 0:
                response = call_signed_in(
                    owner, "change_password", current=PASSWORD, password="another one"
                )
                return str(response["token"])
            try:
                return begun(EMAIL, visitor=str(number))
            except UnauthorizedError:
                return ""

        owner_token, *others = run_concurrently(6, act)
        assert live(owner_token)
        assert not any(live(token) for token in others if token)

    def test_concurrent_sign_ins_leave_no_session_of_a_disabled_account(self, account: str) -> None:
        def act(number: int) -> str:
            if number == 0:
                call_operator("disable_account", email=EMAIL)
                return ""
            try:
                return begun(EMAIL, visitor=str(number))
            except UnauthorizedError:
                return ""

        tokens = [begun(EMAIL), *run_concurrently(6, act)]
        assert not any(live(token) for token in tokens if token)
        assert isinstance(refusal(), UnauthorizedError)

    def test_one_of_two_concurrent_password_changes_succeeds(self, account: str) -> None:
        tokens = [begun(EMAIL), begun(EMAIL)]

        def change(number: int) -> str | None:
            new_password = {"current": PASSWORD, "password": f"password {number}"}
            try:
                return str(
                    call_signed_in(tokens[number], "change_password", **new_password)["token"]
                )
            except (ValidationError, AssertionError):  # refused, or its session has just ended
                return None

        new_tokens = run_concurrently(2, change)
        assert sum(token is not None for token in new_tokens) == 1
        won = next(number for number, token in enumerate(new_tokens) if token)
        assert live(new_tokens[won])
        assert live(begun(EMAIL, f"password {won}"))
