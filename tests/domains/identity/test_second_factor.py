"""The second factor of an account, from the account page to the calls that require a code."""

import base64
import hmac
import html
import re
import struct
from collections.abc import Callable

import pytest

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError, ValidationError
from chalicelib.core.principals import SessionPrincipal
from chalicelib.domains.identity.flows.second_factor import require_code
from chalicelib.domains.identity.store import accounts
from chalicelib.engine.unit import UnitOfWork, run_unit
from tests.conftest import Answer, Owner, Time, call_operator
from tests.factories.console import Person, person

PAGE = "/console/account"
PART = {"do": "second-factor"}


def code(secret: str, steps: int = 0) -> str:
    """Return the code that an app shows, by RFC 6238 with the parameters of every app."""
    step = int(clock.now().timestamp()) // 30 + steps
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", step), "sha1")
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4]) & 0x7FFFFFFF
    return f"{number % 10**6:06}"


def read_page(answer: Answer, pattern: str) -> str:
    """Return what a page shows."""
    match = re.search(pattern, answer.body.decode())
    assert match, answer.body.decode()
    return html.unescape(match[1])


def switch_on(user: Person) -> tuple[str, list[str]]:
    """Switch the factor on. Return the secret in the app, and the recovery codes."""
    page = user.get(f"{PAGE}?do=second-factor")
    secret = read_page(page, r'id="secret"><code>([A-Z2-7]{32})<')
    salt = read_page(page, r'name="salt" value="([^"]+)"')
    answer = user.post(PAGE, PART | {"salt": salt, "secondFactor": code(secret)})
    return secret, read_page(answer, r'id="codes"><code>([^<]+)<').split("\n")


def use(owner: Owner, typed_code: str | None) -> None:
    """Call what requires a code, as a refund does."""
    home = owner.workspace.id
    caller = SessionPrincipal(account_id=owner.workspace.owner_id, workspace_id=home)

    def stage(unit: UnitOfWork) -> None:
        require_code(Context(caller, unit, "request"), typed_code)

    run_unit(home, None, stage)


class TestSecondFactor:
    def test_without_one_no_code_is_required(self, owner: Owner) -> None:
        use(owner, None)

    def test_an_app_shows_the_codes_that_are_required(self, owner: Owner, time: Time) -> None:
        user = person(owner)
        secret, _ = switch_on(user)
        assert "otpauth" not in user.get(f"{PAGE}?do=second-factor").body.decode()
        for wrong in (None, "", "000000", code(secret, -9)):
            with pytest.raises(ValidationError):
                use(owner, wrong)
        time.pass_by(seconds=60)
        use(owner, f" {code(secret)[:3]} {code(secret)[3:]}")

    def test_a_code_counts_once_and_a_clock_may_be_half_a_minute_off(
        self, owner: Owner, time: Time
    ) -> None:
        secret, _ = switch_on(person(owner))
        with pytest.raises(ValidationError):
            use(owner, code(secret))  # It has switched the factor on.
        use(owner, code(secret, 1))
        with pytest.raises(ValidationError):
            use(owner, code(secret, 1))
        time.pass_by(minutes=5)
        for steps in (-2, 2):
            with pytest.raises(ValidationError):
                use(owner, code(secret, steps))
        use(owner, code(secret, -1))

    def test_each_recovery_code_works_once(self, owner: Owner, time: Time) -> None:
        _, codes = switch_on(person(owner))
        assert len(set(codes)) == 8
        assert all(re.fullmatch("[a-z2-7]{4}(-[a-z2-7]{4}){3}", text) for text in codes)
        use(owner, codes[3].upper())
        use(owner, codes[0])
        with pytest.raises(ValidationError):
            use(owner, codes[3])

    def test_a_wrong_first_code_keeps_the_secret(self, owner: Owner, time: Time) -> None:
        user = person(owner)
        page = user.get(f"{PAGE}?do=second-factor")
        salt = read_page(page, r'name="salt" value="([^"]+)"')
        answer = user.post(PAGE, PART | {"salt": salt, "secondFactor": "000000"})
        assert answer.status == 400
        assert read_page(answer, r'id="secret"><code>([^<]+)<') in page.body.decode()
        assert accounts.get(owner.workspace.owner_id).factor_salt is None

    def test_it_is_switched_off_by_a_code_or_by_the_operator(
        self, owner: Owner, time: Time
    ) -> None:
        user = person(owner)
        _, codes = switch_on(user)
        ending = PART | {"ends": "yes"}
        assert user.post(PAGE, ending | {"secondFactor": "000000"}).status == 400
        assert user.post(PAGE, ending | {"secondFactor": codes[1]}).status == 303
        use(owner, None)
        time.pass_by(minutes=1)
        switch_on(user)
        call_operator("remove_second_factor", email=user.email)
        use(owner, None)

    def test_guesses_are_limited(
        self,
        owner: Owner,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
    ) -> None:
        switch_on(person(owner))
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()
        for _ in range(10):
            with pytest.raises(ValidationError):
                use(owner, "000000")
        with pytest.raises(RateLimitedError):
            use(owner, "000000")
