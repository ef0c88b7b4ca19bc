"""Signing in from browsers in which the account signed in before, while others guess passwords."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import NotConfiguredError, UnavailableError
from chalicelib.domains.identity.flows import devices
from chalicelib.transports.console import access
from chalicelib.transports.console.routes import PREFIX
from tests.conftest import PASSWORD, Answer, Time, call_operator
from tests.factories.console import Person, cookies, invite
from tests.support.effort import examples
from tests.support.sweep import sweep

SECRET = "the-secret-of-the-edge"
OWNER, NEW_PASSWORD = "ada@example.com", "battery staple"
pytestmark = pytest.mark.usefixtures("database", "edge", "time")


@pytest.fixture
def edge(monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]) -> Iterator[None]:
    """The limits of production, and an edge that tells the addresses of visitors."""
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    monkeypatch.setenv("EDGE_SECRET", SECRET)
    reload_settings()
    yield
    monkeypatch.undo()
    reload_settings()


@pytest.fixture(autouse=True)
def owner(database: None) -> str:
    """The id of the owner's account."""
    account_id: str = call_operator("create_account", email=OWNER, password=PASSWORD)["accountId"]
    return account_id


@dataclass
class Browser(Person):
    """A browser at an address."""

    ip: str = "198.51.100.1"

    @property
    def headers(self) -> dict[str, str]:
        return super().headers | {"X-Origin-Secret": SECRET, "X-Viewer-Address": self.ip}

    def sign_in(self, password: str = PASSWORD, email: str = "") -> int:
        """Sign in as another user would, without the previous session."""
        self.token = ""
        return self.start_session(password, email=email or self.email).status


def known_browser(email: str = OWNER, ip: str = "198.51.100.1") -> Browser:
    """Return a browser in which the account signed in before."""
    browser = Browser(email, ip=ip)
    assert browser.sign_in() == 303
    assert browser.device
    return browser


def attack(email: str = OWNER, addresses: int = 5) -> list[int]:
    """Send ten wrong passwords from each of some addresses, and one more."""
    guessers = [Browser(email, ip=f"203.0.113.{number}") for number in range(addresses)]
    statuses = [guesser.sign_in("a guess") for guesser in guessers for _ in range(10)]
    return [*statuses, Browser(email, ip="203.0.113.200").sign_in("a guess")]


class TestAttack:
    def test_fifty_wrong_passwords_do_not_lock_the_owner_out_of_a_known_device(self) -> None:
        known = known_browser()
        assert attack() == [401] * 50 + [429]
        assert Browser(OWNER, ip="192.0.2.1").sign_in() == 429
        assert known.sign_in() == 303

    def test_a_known_device_is_recognised_at_another_address(self) -> None:
        known = known_browser()
        attack()
        known.ip = "192.0.2.77"
        assert known.sign_in() == 303

    def test_a_new_password_of_the_operator_ends_the_lock(self) -> None:
        assert attack()[-1] == 429
        call_operator("set_password", email=OWNER, password=NEW_PASSWORD)
        assert Browser(OWNER, ip="192.0.2.1").sign_in(NEW_PASSWORD) == 303

    def test_a_new_password_of_the_operator_ends_the_limit_of_the_owners_own_mistakes(self) -> None:
        browser = Browser(OWNER)
        assert [browser.sign_in("mistaken") for _ in range(11)] == [401] * 10 + [429]
        call_operator("set_password", email=OWNER, password=NEW_PASSWORD)
        assert browser.sign_in(NEW_PASSWORD) == 303

    def test_the_lock_is_the_same_for_an_address_without_an_account(self) -> None:
        assert attack("nobody@example.com") == attack()

    def test_guesses_of_the_shops_network_do_not_lock_its_members_out(self) -> None:
        """A guest of the shop's network uses up what one address may try."""
        members = [f"m{number}@example.com" for number in range(10)]
        for email in members:
            call_operator("create_account", email=email, password=PASSWORD)
        known = [known_browser(email) for email in members]
        guest = Browser("x@example.com")
        statuses = [guest.sign_in("a guess", f"x{number}@example.com") for number in range(91)]
        assert statuses == [401] * 90 + [429]
        assert [browser.sign_in() for browser in known] == [303] * 10


class TestShop:
    def test_ten_members_sign_in_from_one_address(self) -> None:
        for number in range(10):
            call_operator("create_account", email=f"m{number}@example.com", password=PASSWORD)
        browsers = [Browser(f"m{number}@example.com") for number in range(10)]
        assert [browser.sign_in("mistaken") for browser in browsers] == [401] * 10
        assert [browser.sign_in() for browser in browsers] == [303] * 10

    def test_one_browser_is_a_device_of_all_members_who_use_it(self) -> None:
        shared = known_browser()
        for number in range(10):
            call_operator("create_account", email=f"m{number}@example.com", password=PASSWORD)
            assert shared.sign_in(email=f"m{number}@example.com") == 303
        attack()
        attack("m3@example.com")
        shared.ip = "192.0.2.1"
        assert shared.sign_in() == 303
        assert shared.sign_in(email="m3@example.com") == 303


class TestLimitsOfDevices:
    def test_a_device_guesses_no_more_than_a_visitor(self, time: Time) -> None:
        known = known_browser()
        time.pass_by(hours=1)
        assert [known.sign_in("a guess") for _ in range(11)] == [401] * 10 + [429]
        known.ip = "192.0.2.1"
        assert known.sign_in() == 429

    def test_guesses_on_a_device_lock_neither_other_devices_nor_new_ones(self, time: Time) -> None:
        stolen, other = known_browser(), known_browser()
        time.pass_by(hours=1)
        for _ in range(4):
            assert [stolen.sign_in("a guess") for _ in range(11)][-1] == 429
            time.pass_by(minutes=14)
            assert other.sign_in() == 303
            assert Browser(OWNER, ip="192.0.2.1").sign_in() == 303
            time.pass_by(minutes=1)

    def test_many_devices_guess_together_fifty_times_an_hour(self, time: Time) -> None:
        """Whoever had the password could collect devices."""
        collected = [known_browser() for _ in range(6)]
        time.pass_by(hours=1)
        statuses = [device.sign_in("a guess") for device in collected for _ in range(10)]
        assert statuses == [401] * 50 + [429] * 10

    def test_a_device_of_another_account_counts_as_unknown(self) -> None:
        call_operator("create_account", email="eve@example.com", password=PASSWORD)
        eve = known_browser("eve@example.com")
        attack()
        assert eve.sign_in(email=OWNER) == 429

    @pytest.fixture
    def known(self) -> Browser:
        """A browser of the account, which is then under attack."""
        browser = known_browser()
        attack()
        return browser

    @sweep(
        "forge",
        [
            lambda _: "",
            lambda device: device[:-1] + ("A" if device[-1] != "A" else "Q"),
            lambda device: "A" * 22 + device[22:],
            lambda device: device[:22],
            lambda device: f"{device}.{'A' * 22}" * 5,
            lambda device: device.replace(".", ".." ),
            lambda device: device + "." + "A" * 5_000,
            lambda device: f'"{device}"',
        ],
    )  # fmt: skip
    def test_a_forged_cookie_is_no_device(
        self, forge: Callable[[str], str], known: Browser
    ) -> None:
        assert replace(known, device=forge(known.device)).sign_in() == 429


class TestCookie:
    def test_it_is_for_this_host_and_names_nobody(self, owner: str) -> None:
        browser = Browser(OWNER)
        header = started(browser)
        pair, *attributes = header.split("; ")
        assert re.fullmatch(r"__Host-device=[\w-]{22}\.[\w-]{22}", pair, re.ASCII)
        assert sorted(attributes) == [
            *("HttpOnly", "Max-Age=34560000", "Path=/", "SameSite=Lax", "Secure")
        ]
        assert owner not in pair

    def test_a_failed_attempt_sets_none(self) -> None:
        answer = Browser(OWNER).start_session("a guess")
        assert access.DEVICE_COOKIE not in cookies(answer)

    def test_it_stays_after_signing_out(self) -> None:
        browser = known_browser()
        assert access.DEVICE_COOKIE not in cookies(browser.post("/console/sign-out"))

    def test_it_is_checked_as_often_for_an_address_without_an_account(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known, checked_passwords = known_browser(), []
        derived = devices.derived_token
        monkeypatch.setattr(
            devices, "derived_token", lambda of: checked_passwords.append(of) or derived(of)
        )
        for email in (OWNER, "nobody@example.com"):
            assert known.sign_in("a guess", email) == 401
        assert len(checked_passwords) == 2

    def test_it_gives_no_access(self) -> None:
        known = known_browser()
        known.token = ""
        assert known.get(f"{PREFIX}/account").status == 303

    def test_a_new_account_and_a_new_password_set_one(self) -> None:
        home = call_operator("create_workspace", owner=OWNER, name="Bakery")["workspaceId"]
        ivy = Browser("ivy@example.com")
        path = f"/console/invitations/{invite(home, ivy.email)}"
        ivy.get(path)
        ivy.post(path, {"name": "Ivy", "password": PASSWORD, "once": "1"})
        assert ivy.device
        ivy.device = ""
        ivy.post(f"{PREFIX}/account/password", {"current": PASSWORD, "password": NEW_PASSWORD})
        assert ivy.device
        attack(ivy.email)
        assert ivy.sign_in(NEW_PASSWORD) == 303

    @pytest.mark.parametrize("failure", [NotConfiguredError("none"), UnavailableError()])
    def test_without_the_master_key_people_sign_in_all_the_same(
        self, failure: Exception, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known = known_browser()
        fresh = Browser(OWNER, ip="192.0.2.1")

        def unreadable(_: str) -> str:
            raise failure

        monkeypatch.setattr(devices, "derived_token", unreadable)
        assert (known.sign_in(), fresh.sign_in()) == (303, 303)
        assert fresh.device == ""

    @examples(200)
    @given(accounts=st.lists(st.sampled_from([f"a{number}" for number in range(30)]), min_size=1))
    def test_it_proves_the_accounts_that_signed_in_last(self, accounts: list[str]) -> None:
        cookie = ""
        for account in accounts:
            cookie = devices.add_account(cookie, account_id=account)
        latest = list(dict.fromkeys(reversed(accounts)))[: devices.MAX_ACCOUNTS]
        proved = {
            f"a{number}" for number in range(30) if devices.id_for(cookie, account_id=f"a{number}")
        }
        assert proved == set(latest)
        assert len(cookie) <= 500
        assert len({devices.id_for(cookie, account_id=account) for account in latest}) == 1


def started(browser: Browser) -> str:
    """Sign in, and return the header of the device cookie."""
    answer: Answer = browser.start_session()
    (header,) = [h for h in answer.headers["Set-Cookie"] if h.startswith(access.DEVICE_COOKIE)]
    return header
