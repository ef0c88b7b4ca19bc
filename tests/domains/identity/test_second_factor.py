"""The second factor of an account, from the account page to the calls that require a code."""

import base64
import hmac
import html
import re
import struct
from collections.abc import Callable

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.domains.identity.store import accounts
from tests.conftest import PASSWORD, Answer, Owner, Time, call_operator
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
    form = {"salt": salt, "secondFactor": code(secret), "isAsked": "yes"}
    answer = user.post(PAGE, PART | form | {"currentPassword": PASSWORD})
    return secret, read_page(answer, r'id="codes"><code>([^<]+)<').split("\n")


def use(owner: Owner, typed_code: str | None) -> None:
    """Invite a manager, which requires a code, without a session of its own."""
    caller = SessionPrincipal(
        account_id=owner.workspace.owner_id,
        workspace_id=owner.workspace.id,
        membership=Role.OWNER,
        plan="business",
        code=typed_code or "",
        password=PASSWORD,
    )
    guest = {"email": f"{new_id().lower()}@example.com", "role": "manager"}
    invoke(REGISTRY["invite_member"], caller, lambda: guest, request_id="r")


class TestSecondFactor:
    def test_without_one_the_password_is_enough(self, owner: Owner) -> None:
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
        form = {"salt": salt, "secondFactor": "000000", "currentPassword": PASSWORD}
        answer = user.post(PAGE, PART | form)
        assert answer.status == 400
        assert read_page(answer, r'id="secret"><code>([^<]+)<') in page.body.decode()
        assert accounts.get(owner.workspace.owner_id).factor_salt is None

    def test_switching_it_on_requires_the_password(self, owner: Owner) -> None:
        user = person(owner)
        page = user.get(f"{PAGE}?do=second-factor")
        secret = read_page(page, r'id="secret"><code>([^<]+)<')
        salt = read_page(page, r'name="salt" value="([^"]+)"')
        form = PART | {"salt": salt, "secondFactor": code(secret)}
        for wrong in ("", "a thief's guess"):
            answer = user.post(PAGE, form | {"currentPassword": wrong})
            assert answer.status == 400
            assert b'href="#currentPassword"' in answer.body
            assert secret in answer.body.decode()
        assert accounts.get(owner.workspace.owner_id).factor_salt is None

    def test_the_page_has_a_picture_for_the_app(self, owner: Owner) -> None:
        page = person(owner).get(f"{PAGE}?do=second-factor", Accept_Language="en").body.decode()
        assert re.search(r'role="img" aria-label="QR code[^"]*"><svg viewBox="0 0 (\d+) \1"', page)
        assert "style=" not in re.findall("<svg.*?</svg>", page.partition('class="qr"')[2])[0]

    def test_it_is_switched_off_by_a_code_or_by_the_operator(
        self, owner: Owner, time: Time
    ) -> None:
        user = person(owner)
        _, codes = switch_on(user)
        ending = PART | {"action": "end"}
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

    def test_right_codes_are_no_guesses(
        self,
        owner: Owner,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
    ) -> None:
        secret, _ = switch_on(person(owner))
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()
        for _ in range(12):
            time.pass_by(seconds=30)
            use(owner, code(secret))


def keys_path(owner: Owner) -> str:
    return f"/console/w/{owner.workspace.slug}/keys"


def create_key(user: Person, owner: Owner, **proof: str) -> int:
    """Create a key on the console's page, and return the status."""
    fields = {"name": "Till", "scopes": "crm:read", "secondFactor": "", **proof}
    return user.post(keys_path(owner), fields).status


class TestMinute:
    """A code counts for a minute, in its session only."""

    def test_one_code_confirms_what_one_session_does_in_a_minute(
        self, owner: Owner, time: Time
    ) -> None:
        user, other = person(owner), person(owner)
        secret, _ = switch_on(user)
        time.pass_by(minutes=2)
        assert create_key(user, owner) == 400
        used = code(secret)
        assert create_key(user, owner, secondFactor=used) == 200
        time.pass_by(seconds=59)
        assert create_key(user, owner) == 200
        assert create_key(other, owner) == 400
        assert create_key(other, owner, secondFactor=used) == 400
        time.pass_by(seconds=1)
        assert create_key(user, owner) == 400

    def test_the_password_counts_for_a_minute_too(self, owner: Owner, time: Time) -> None:
        user = person(owner)
        assert create_key(user, owner, currentPassword="a guess") == 400
        assert create_key(user, owner, currentPassword=PASSWORD) == 200
        page = user.get(f"{keys_path(owner)}/new", Accept_Language="en").body.decode()
        assert "you have confirmed a moment ago" in page
        assert create_key(user, owner) == 200
        time.pass_by(minutes=1)
        assert create_key(user, owner) == 400

    def test_a_form_that_fails_for_another_reason_needs_no_second_code(
        self, owner: Owner, time: Time
    ) -> None:
        user = person(owner)
        secret, _ = switch_on(user)
        time.pass_by(minutes=2)
        guest = {"email": user.email, "role": "manager", "secondFactor": code(secret)}
        members = f"/console/w/{owner.workspace.slug}/members"
        assert user.post(members, guest).status == 409  # The owner is a member.
        assert create_key(user, owner) == 200

    def test_the_factor_itself_needs_a_new_code(self, owner: Owner, time: Time) -> None:
        user = person(owner)
        secret, _ = switch_on(user)
        time.pass_by(minutes=2)
        assert create_key(user, owner, secondFactor=code(secret)) == 200
        for action in ("end", "ask", "stop_asking"):
            answer = user.post(PAGE, PART | {"action": action, "secondFactor": ""})
            assert answer.status == 400
        assert accounts.get(owner.workspace.owner_id).factor_salt is not None


class TestSignIn:
    """Signing in to an account with a second factor."""

    def test_the_password_alone_starts_no_session(self, owner: Owner, time: Time) -> None:
        user = person(owner)
        secret, codes = switch_on(user)
        time.pass_by(minutes=1)
        assert user.post("/console/sign-out").status == 303
        asked = user.start_session()
        assert asked.status == 200
        assert user.get("/console/account").status == 303
        form = {"proof": read_page(asked, 'name="proof" value="([^"]+)"')}
        for wrong in ("", "000000"):
            again = user.post("/console/sign-in", form | {"secondFactor": wrong})
            assert again.status == 400
            assert form["proof"] in again.body.decode()
        right = form | {"secondFactor": code(secret)}
        assert user.post("/console/sign-in", right).status == 303
        assert user.get("/console/account").status == 200
        assert create_key(user, owner) == 200  # The code of the sign-in counts for a minute.
        thief = Person(user.email)
        thief.get("/console/sign-in")
        assert thief.post("/console/sign-in", right).status == 400
        assert thief.post("/console/sign-in", form | {"secondFactor": codes[0]}).status == 303
        other = Person(user.email)
        other.get("/console/sign-in")
        assert other.post("/console/sign-in", form | {"secondFactor": codes[0]}).status == 400

    def test_a_code_must_follow_within_ten_minutes(self, owner: Owner, time: Time) -> None:
        user = person(owner)
        _, codes = switch_on(user)
        user.post("/console/sign-out")
        form = {"proof": read_page(user.start_session(), 'name="proof" value="([^"]+)"')}
        time.pass_by(minutes=10)
        answer = user.post("/console/sign-in", form | {"secondFactor": codes[0]})
        assert answer.status == 401
        assert b'name="password"' in answer.body

    @pytest.mark.parametrize("proof", ["x", "0.0.0", f"{'0' * 26}.9999999999.{'a' * 43}"])
    def test_no_invented_proof_replaces_the_password(
        self, proof: str, owner: Owner, time: Time
    ) -> None:
        user = person(owner)
        _, codes = switch_on(user)
        account_id = owner.workspace.owner_id
        user.post("/console/sign-out")
        user.get("/console/sign-in")
        form = {"proof": proof.replace("0" * 26, account_id), "secondFactor": codes[0]}
        assert user.post("/console/sign-in", form).status == 401

    def test_guesses_of_a_code_do_not_lock_sessions(
        self,
        owner: Owner,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
    ) -> None:
        user = person(owner)
        _, codes = switch_on(user)
        thief = Person(user.email)
        form = {"proof": read_page(thief.start_session(), 'name="proof" value="([^"]+)"')}
        monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
        reload_settings()
        guesses = [form | {"secondFactor": f"{number:06}"} for number in range(11)]
        statuses = [thief.post("/console/sign-in", guess).status for guess in guesses]
        assert statuses == [400] * 10 + [429]
        assert create_key(user, owner, secondFactor=codes[0]) == 200

    @pytest.mark.parametrize("end", ["time", "password", "everywhere", "forgotten", "another"])
    def test_a_remembered_browser_needs_no_code_until_it_is_forgotten(
        self, end: str, owner: Owner, time: Time
    ) -> None:
        user = person(owner)
        _, codes = switch_on(user)
        user.post("/console/sign-out")
        form = {"proof": read_page(user.start_session(), 'name="proof" value="([^"]+)"')}
        form |= {"secondFactor": codes[0], "remember": "yes"}
        assert user.post("/console/sign-in", form).status == 303
        user.post("/console/sign-out")
        assert user.start_session().status == 303
        assert person_elsewhere(user).start_session().status == 200
        password = PASSWORD
        if end == "time":
            time.pass_by(days=30)
        elif end == "password":
            password = "a new password"
            fields = {"current": PASSWORD, "password": password}
            assert user.post("/console/account/password", fields).status == 303
        elif end == "everywhere":
            user.post("/console/account/sign-out")
        elif end == "forgotten":
            assert user.post(PAGE, PART | {"action": "forget"}).status == 303
        else:
            time.pass_by(minutes=2)
            ending = PART | {"action": "end", "secondFactor": codes[1]}
            assert user.post(PAGE, ending).status == 303
            switch_on(user)
        user.post("/console/sign-out")
        assert user.start_session(password).status == 200

    def test_the_owner_decides_whether_it_is_asked_for(self, owner: Owner, time: Time) -> None:
        user = person(owner)
        _, codes = switch_on(user)
        stop = PART | {"action": "stop_asking", "secondFactor": codes[0]}
        assert user.post(PAGE, stop).status == 303
        assert person_elsewhere(user).start_session().status == 303
        assert user.post(PAGE, PART | {"action": "ask", "secondFactor": codes[1]}).status == 303
        assert person_elsewhere(user).start_session().status == 200

    def test_a_factor_of_an_earlier_release_is_asked_for(self, owner: Owner, time: Time) -> None:
        user = person(owner)
        switch_on(user)
        account = accounts.get(owner.workspace.owner_id)
        account.update([accounts.AccountRow.sign_in_factor.remove()])
        assert person_elsewhere(user).start_session().status == 200

    def test_a_form_is_kept_through_both_steps(self, owner: Owner, time: Time) -> None:
        user = person(owner)
        _, codes = switch_on(user)
        former, path = user.token, keys_path(owner)
        user.post("/console/sign-out")
        user.token = former
        page = user.post(path, {"name": "Till", "scopes": "crm:read", "secondFactor": codes[0]})
        for fields in ({"email": user.email, "password": PASSWORD}, {"secondFactor": codes[1]}):
            hidden = re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', page.body.decode())
            carried = {name: html.unescape(value) for name, value in hidden if name != "csrf"}
            page = user.post("/console/sign-in", carried | fields)
            assert page.status == 200
        assert f'action="{path}"' in page.body.decode()
        assert "Till" in page.body.decode()


def person_elsewhere(user: Person) -> Person:
    """Return the same user at another browser, which is a known device but not remembered."""
    return Person(user.email, device=user.device)
