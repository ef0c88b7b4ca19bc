"""Requesting a password reset, its e-mail, and the page behind the link."""

import html
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.identity.rules.job_kinds import MAIL_PASSWORD_RESET, MAIL_PASSWORD_SET
from chalicelib.domains.identity.store import accounts, connections, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.engine import audit, jobs
from chalicelib.gateways import mail
from infra.bench.dynamodb.usage import metering
from tests.conftest import PASSWORD, Answer, Time, all_rows, call_operator, run_concurrently
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.console import Person, begun, invite, reset_link
from tests.factories.event_runs import run_until_idle
from tests.factories.oauth import connect
from tests.transports.console.test_console_sessions import lives
from tests.transports.console.test_device_cookies import Browser, attack, edge  # noqa: F401  a fixture

OWNER, NOBODY, NEW_PASSWORD = "ada@example.com", "nobody@example.com", "battery staple"
FORGOT = "/console/forgot-password"
GONE = "This link does not work"
pytestmark = pytest.mark.usefixtures("database", "inbox", "time")


@pytest.fixture
def inbox(
    tmp_path: Path, database: None, reload_settings: Callable[[], None], time: Time
) -> Iterator[Inbox]:
    """Mail is on, and there is an account that is a minute old."""
    call_operator("create_account", email=OWNER, password=PASSWORD)
    time.pass_by(minutes=1)
    os.environ |= {"MAIL": "file", "MAIL_FOLDER": str(tmp_path)}
    reload_settings()
    yield Inbox(tmp_path)
    del os.environ["MAIL"], os.environ["MAIL_FOLDER"]
    reload_settings()


def text(answer: Answer) -> str:
    return html.unescape(answer.body.decode())


def request(email: str = OWNER, person: Person | None = None, **headers: str) -> Answer:
    """Type an address into the form."""
    person = person or Browser("")
    person.get(FORGOT)
    return person.post(FORGOT, {"email": email}, **headers)


def links(inbox: Inbox) -> list[str]:
    """Return the paths of the links in all e-mails, after the jobs have run."""
    run_until_idle()
    texts = " ".join(map(text_of, inbox.mails))
    return re.findall(r"http://[^/ ]+(/console/reset-password/[\w-]{43})\s", texts)


def mailed_link(inbox: Inbox) -> str:
    """Request a new password, and return the path of the mailed link."""
    inbox.clear()
    request()
    (path,) = links(inbox)
    return path


def use(path: str, password: str = NEW_PASSWORD, person: Person | None = None) -> Answer:
    """Open a link, and type a new password."""
    person = person or Browser("")
    person.get(path)
    return person.post(path, {"password": password})


class TestAttack:
    @pytest.mark.usefixtures("edge")
    def test_an_owner_signs_in_from_a_new_device_while_others_guess(self, inbox: Inbox) -> None:
        attack()
        new = Browser(OWNER, ip="192.0.2.1")
        assert new.sign_in() == 429
        request(person=new)
        (path,) = links(inbox)
        assert use(path, person=new).status == 303
        attack()  # on the counts that the new password began
        assert Browser(OWNER, ip="192.0.2.2").sign_in(NEW_PASSWORD) == 429
        assert new.sign_in(NEW_PASSWORD) == 303

    @pytest.mark.usefixtures("edge")
    def test_requests_of_strangers_leave_mails_of_the_account_for_others(
        self, inbox: Inbox, time: Time
    ) -> None:
        """Three of five an hour: an invitation is mailed all the same, and the links work."""
        for number in range(9):
            assert request(person=Browser("", ip=f"203.0.113.{number}")).status == 303
        reset_links = links(inbox)
        assert len(reset_links) == 3
        call_operator("create_account", email="boss@example.com", password=PASSWORD)
        home = call_operator("create_workspace", owner="boss@example.com", name="Bakery")
        invite(home["workspaceId"], OWNER)
        run_until_idle()
        assert [mail["To"] for mail in inbox.mails].count(OWNER) == 4
        assert use(reset_links[0]).status == 303

    @pytest.mark.usefixtures("edge")
    def test_a_visitor_makes_ten_requests_in_fifteen_minutes(self, time: Time) -> None:
        statuses = [request(f"a{number}@example.com").status for number in range(11)]
        assert statuses == [303] * 10 + [429]
        time.pass_by(minutes=15)
        assert request().status == 303

    @pytest.mark.usefixtures("edge")
    def test_an_ipv6_network_makes_a_hundred_requests_in_fifteen_minutes(self) -> None:
        """Each makes a row and a job, whether an account has the address or not."""
        for number in range(10):
            for part in range(10):
                person = Browser("", ip=f"2001:db8:1:{number}::1")
                assert request(f"a{number}{part}@example.com", person).status == 303
        assert request("b@example.com", Browser("", ip="2001:db8:1:ffff::1")).status == 429
        assert request("b@example.com", Browser("", ip="2001:db8:2::1")).status == 303

    def test_requests_of_anybody_leave_no_record_in_the_audit_log(self) -> None:
        known = len(audit.latest(PLATFORM))
        for email in (OWNER, NOBODY):
            assert request(email).status == 303
        assert len(audit.latest(PLATFORM)) == known

    @pytest.mark.usefixtures("edge")
    def test_tokens_are_guessed_ten_times_in_fifteen_minutes(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        statuses = [use(f"/console/reset-password/{number:043}").status for number in range(10)]
        assert statuses == [404] * 10
        assert use(path).status == 429
        assert use(path, person=Browser("", ip="192.0.2.1")).status == 303


class TestEnumeration:
    def test_every_address_gets_the_same_answer(self, inbox: Inbox) -> None:
        call_operator("create_account", email="off@example.com", password=PASSWORD)
        call_operator("disable_account", email="off@example.com")
        unproved("new@example.com")
        pages = []
        for email in (OWNER, NOBODY, "off@example.com", "new@example.com"):
            person = Person("", "A" * 43)
            answer = person.post(FORGOT, {"email": email})
            page = person.get(answer.headers["Location"])
            pages.append((answer.status, answer.headers["Location"], page.status, page.body))
        assert len(set(pages)) == 1
        assert b"we have sent an e-mail" in pages[0][3]
        run_until_idle()
        assert [mail["To"] for mail in inbox.mails] == [OWNER]

    def test_every_address_takes_the_same_requests_to_the_database(self, inbox: Inbox) -> None:
        def cost(email: str) -> tuple[Any, ...]:
            with metering() as usage:
                assert request(email).status == 303
            return usage.round_trips, usage.reads, usage.writes

        request("first@example.com")  # reads what the process keeps
        assert cost(OWNER) == cost(NOBODY)

    def test_refused_attempts_to_sign_in_take_the_same_requests(self, inbox: Inbox) -> None:
        def cost(email: str) -> tuple[Any, ...]:
            with metering() as usage:
                assert Person(email).start_session("a guess").status == 401
            return usage.round_trips, usage.writes

        cost("first@example.com")
        assert cost(OWNER) == cost(NOBODY)

    def test_the_form_refuses_only_what_is_no_address(self) -> None:
        answer = request("nonsense")
        assert answer.status == 400
        assert 'value="nonsense"' in text(answer)

    @pytest.mark.parametrize(
        "email", ["ADA@EXAMPLE.COM", " ada@example.com ", "\u200bada@example.com"]
    )
    def test_an_address_is_found_as_at_sign_in(self, email: str, inbox: Inbox) -> None:
        request(email)
        assert len(links(inbox)) == 1

    @pytest.mark.parametrize("email", ["ada+x@example.com", "aďa@example.com", "a.da@example.com"])
    def test_a_similar_address_gets_no_mail(self, email: str, inbox: Inbox) -> None:
        request(email)
        assert links(inbox) == []

    def test_neither_the_row_nor_the_job_has_the_address_or_the_token(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        request(NOBODY)
        rows = json.dumps(
            {k: v for k, v in all_rows().items() if "PASSWORD-RESET" in k or "JOB" in k},
            default=str,
        )
        assert "PASSWORD-RESET#" in rows
        for secret in (OWNER, NOBODY, path.rpartition("/")[2]):
            assert secret not in rows
        assert path.rpartition("/")[2] not in json.dumps(all_rows(), default=str)


class TestMail:
    def test_the_link_is_mailed_in_both_languages(self, inbox: Inbox) -> None:
        request(person=Person(""), accept_language="en")
        request(person=Person(""), accept_language="ru")
        run_until_idle()
        assert inbox.subjects == ["Set a new password", "Новый пароль"]
        for message in inbox.mails:
            plain, page = text_of(message), text_of(message, "html")
            (link,) = re.findall(r"http://\S+", plain)
            assert re.findall(r'(?:href|src)="([^"]+)"', page) == [link]
            assert OWNER in plain
            assert message["To"] == OWNER

    def test_the_accounts_language_wins(self, inbox: Inbox) -> None:
        account = accounts.require_by_email(OWNER)
        account.update([AccountRow.language.set("ru")])
        request(accept_language="en")
        run_until_idle()
        assert inbox.only()["Subject"] == "Новый пароль"

    def test_an_address_that_nobody_has_proved_gets_no_link(self, inbox: Inbox) -> None:
        unproved("new@example.com")
        request("new@example.com")
        assert links(inbox) == []
        path = f"/console/reset-password/{reset_link('new@example.com')}"
        assert use(path).status == 404

    def test_a_job_that_runs_again_mails_nothing_more(
        self, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request()
        (job,) = [
            job for job in jobs.read_workspace_jobs("platform") if job.kind == MAIL_PASSWORD_RESET
        ]
        sent_ids: list[str] = []
        monkeypatch.setattr(mail, "send", lambda mail: sent_ids.append(mail.id))
        for _ in range(2):
            JOB_HANDLERS[MAIL_PASSWORD_RESET](job)
        assert len(sent_ids) == 1

    def test_a_job_that_comes_too_late_mails_nothing(self, inbox: Inbox, time: Time) -> None:
        request()
        time.pass_by(hours=1)
        assert links(inbox) == []

    @pytest.mark.parametrize("language", ["en", "ru"])
    def test_every_new_password_is_told_to_the_owner(self, language: str, inbox: Inbox) -> None:
        accounts.require_by_email(OWNER).update([AccountRow.language.set(language)])
        path, ada = mailed_link(inbox), Person(OWNER)
        inbox.clear()
        use(path)
        ada.start_session(NEW_PASSWORD)
        ada.post("/console/account/password", {"current": NEW_PASSWORD, "password": PASSWORD})
        call_operator("set_password", email=OWNER, password=NEW_PASSWORD)
        run_until_idle()
        title = {"en": "Your password was changed", "ru": "Пароль изменён"}[language]
        assert inbox.subjects == [title] * 3
        for message in inbox.mails:
            assert NEW_PASSWORD not in text_of(message)
            assert f"{FORGOT}\r\n" in text_of(message)

    def test_a_disabled_account_is_told_nothing(self, inbox: Inbox) -> None:
        call_operator("set_password", email=OWNER, password=NEW_PASSWORD)
        call_operator("disable_account", email=OWNER)
        (job,) = [
            job for job in jobs.read_workspace_jobs("platform") if job.kind == MAIL_PASSWORD_SET
        ]
        JOB_HANDLERS[MAIL_PASSWORD_SET](job)
        assert inbox.mails == []


class TestLink:
    def test_it_sets_the_password_and_ends_all_sessions(self, inbox: Inbox) -> None:
        path, sessions = mailed_link(inbox), [begun(OWNER), begun(OWNER)]
        person = Person(OWNER, sessions[0])
        answer = use(path, person=person)
        assert answer.headers["Location"] == "/console/sign-in?done=password_reset"
        assert "Your new password is set" in text(person.get(answer.headers["Location"]))
        assert not any(map(lives, sessions))
        assert person.start_session().status == 401
        assert person.start_session(NEW_PASSWORD).status == 303

    def test_opening_it_changes_nothing(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        for _ in range(3):  # as programs that scan e-mails do
            page = Person("").get(path)
            assert page.status == 200
            assert OWNER in text(page)
        assert use(path).status == 303

    def test_it_works_once(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        use(path)
        second_use = use(path, "another password")
        assert second_use.status == 404
        assert GONE in text(second_use)
        assert GONE in text(Person("").get(path))
        assert begun(OWNER, NEW_PASSWORD)

    def test_it_works_for_an_hour(self, inbox: Inbox, time: Time) -> None:
        path = mailed_link(inbox)
        time.pass_by(minutes=59, seconds=59)
        assert Person("").get(path).status == 200
        time.pass_by(seconds=1)
        assert Person("").get(path).status == 404
        assert use(path).status == 404

    @pytest.mark.parametrize("way", ["link", "operator", "person", "disabled"])
    def test_it_ends_with_another_new_password(self, way: str, inbox: Inbox, time: Time) -> None:
        path = mailed_link(inbox)
        time.pass_by(minutes=1)
        if way == "link":
            use(mailed_link(inbox))
        elif way == "operator":
            call_operator("set_password", email=OWNER, password=NEW_PASSWORD)
        elif way == "person":
            ada = Person(OWNER, begun(OWNER))
            form = {"current": PASSWORD, "password": NEW_PASSWORD}
            assert ada.post("/console/account/password", form).status == 303
        else:
            call_operator("disable_account", email=OWNER)
        assert use(path, "the thief's").status == 404

    def test_earlier_links_work_until_one_is_used(self, inbox: Inbox, time: Time) -> None:
        first = mailed_link(inbox)
        time.pass_by(minutes=1)
        mailed_link(inbox)
        time.pass_by(minutes=1)
        assert use(first).status == 303

    @pytest.mark.store
    def test_it_works_once_at_the_same_moment(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        statuses = run_concurrently(6, lambda n: use(path, f"password {n}").status)
        assert sorted(statuses) == [303] + [404] * 5
        assert sum(can_sign_in(f"password {n}") for n in range(6)) == 1

    @pytest.mark.parametrize("end", [True, False])
    def test_apps_are_disconnected_if_the_person_says_so(self, end: bool, inbox: Inbox) -> None:
        home = call_operator("create_workspace", owner=OWNER, name="Bakery")["workspaceId"]
        connect(workspaces.get(home))
        person, path = Person(""), mailed_link(inbox)
        person.get(path)
        box = {"end_connections": "yes"} if end else {}
        assert person.post(path, {"password": NEW_PASSWORD} | box).status == 303
        live = connections.live(home, accounts.require_by_email(OWNER).id)
        assert len(live) == (0 if end else 1)

    @pytest.mark.parametrize("password", ["", "short", "x" * 1_001])
    def test_a_refused_password_leaves_the_link_working(self, password: str, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        answer = use(path, password)
        assert answer.status == 400
        assert 'class="field wrong"' in text(answer)
        assert use(path).status == 303

    @pytest.mark.parametrize("token", ["x", "A" * 43, "A" * 400, "..", "%2e%2e", "\u043f" * 43])
    def test_unknown_tokens_look_like_used_ones(self, token: str, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        use(path)
        used = Person("", "A" * 43).get(path)
        unknown = Person("", "A" * 43).get(f"/console/reset-password/{token}")
        assert unknown.status == 404
        if "." not in token and "%" not in token:
            assert unknown.body == used.body

    def test_the_session_of_another_account_stays(self, inbox: Inbox) -> None:
        call_operator("create_account", email="eve@example.com", password=PASSWORD)
        eve = Person("eve@example.com", begun("eve@example.com"))
        assert use(mailed_link(inbox), person=eve).status == 303
        assert lives(eve.token)
        assert begun(OWNER, NEW_PASSWORD)

    def test_it_is_made_of_the_public_url_whatever_the_host(self, inbox: Inbox) -> None:
        request(host="evil.example", x_forwarded_host="evil.example")
        run_until_idle()
        assert "evil" not in text_of(inbox.only())


class TestPages:
    @pytest.mark.parametrize(
        ("language", "words"), [("en", "new password"), ("ru", "новый пароль")]
    )
    def test_they_are_in_both_languages(self, language: str, words: str, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        for url in (FORGOT, path, f"{FORGOT}?done=reset_requested"):
            page = Person("").get(f"{url}{'&' if '?' in url else '?'}lang={language}")
            assert f'<html lang="{language}"' in text(page)
        assert words in text(Person("").get(path, accept_language=language))
        person = Person("")
        person.get(f"{FORGOT}?lang={language}")
        response = person.post(FORGOT, {"email": OWNER, "lang": language})
        assert response.headers["Location"].endswith(f"&lang={language}")

    def test_the_links_page_leaks_its_path_to_nobody(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        page, gone = Person("").get(path), Person("").get(f"/console/reset-password/{'A' * 43}")
        for response in (page, gone):
            assert response.headers["Referrer-Policy"] == "strict-origin"
            assert response.headers["Cache-Control"] == "no-store"
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "//" not in policy
            assert not re.search(r'(?:src|href|action)="(?:https?:)?//', response.body.decode())

    def test_a_form_of_another_site_sets_no_password(self, inbox: Inbox) -> None:
        path, person = mailed_link(inbox), Person("")
        person.get(path)
        form = {"password": NEW_PASSWORD}
        assert person.post(path, form, csrf="").status == 403
        assert person.post(path, form, origin="https://evil.example").status == 403
        assert begun(OWNER)

    def test_the_sign_in_page_leads_to_the_form(self) -> None:
        page = text(Person("").get("/console/sign-in?lang=ru"))
        assert f'<a href="{FORGOT}?lang=ru">Забыли пароль?</a>' in page

    def test_without_mail_the_operator_sets_passwords(
        self, inbox: Inbox, reload_settings: Callable[[], None]
    ) -> None:
        os.environ["MAIL"] = "off"
        reload_settings()
        for path in ("/console/sign-in", FORGOT):
            page = text(Person("").get(path))
            assert "operator of the service can set a new one" in page
        assert request().status == 503
        assert not list(jobs.read_workspace_jobs("platform"))


def can_sign_in(password: str) -> bool:
    return Person(OWNER).start_session(password).status == 303


def unproved(email: str) -> None:
    """Create an account whose address nobody has proved."""
    call_operator("create_account", email=email, password=PASSWORD)
    accounts.require_by_email(email).update([AccountRow.awaits_proof.set(True)])
