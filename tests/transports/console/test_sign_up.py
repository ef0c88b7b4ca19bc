"""Signing up: the request, its e-mail, the page behind the link, and further workspaces."""

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.principals import PLATFORM
from chalicelib.core.settings import read
from chalicelib.domains.identity.operations.sign_ups import MAX_WORKSPACES
from chalicelib.domains.identity.rules.consent_texts import CONSENTS, VERSIONS
from chalicelib.domains.identity.store import accounts, consents, workspaces
from chalicelib.engine import audit
from infra.bench.dynamodb.usage import metering
from tests.conftest import PASSWORD, Answer, Time, all_rows, call_operator, run_concurrently
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.console import Person, begun, invite
from tests.factories.event_runs import run_until_idle
from tests.factories.people import accept_as_new
from tests.transports.console.test_console_sessions import lives
from tests.transports.console.test_device_cookies import Browser, edge  # noqa: F401  a fixture

KNOWN, NEW = "ada@example.com", "grace@example.com"
SIGN_UP, FURTHER = "/console/sign-up", "/console/account/workspaces"
FORM = {
    "name": "Grace",
    "password": "battery staple",
    "workspace": "Grace's salon",
    "country": "GB",
    "terms": "yes",
    "personalData": "yes",
}
pytestmark = pytest.mark.usefixtures("database", "inbox", "time")


@pytest.fixture
def settings(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[Callable[..., None]]:
    def change(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        reload_settings()

    yield change
    monkeypatch.undo()
    reload_settings()


@pytest.fixture
def inbox(tmp_path: Path, database: None, settings: Callable[..., None], time: Time) -> Inbox:
    """Sign-up is open, mail is on, and there is an account that is a minute old."""
    call_operator("create_account", email=KNOWN, password=PASSWORD)
    time.pass_by(minutes=1)
    settings(MAIL="file", MAIL_FOLDER=str(tmp_path), SIGN_UP="open", SIGN_UP_PLAN="start")
    return Inbox(tmp_path)


def text(answer: Answer) -> str:
    return html.unescape(answer.body.decode())


def request(email: str = NEW, person: Person | None = None, **headers: str) -> Answer:
    """Type an address into the form."""
    person = person or Browser("")
    person.get(SIGN_UP)
    return person.post(SIGN_UP, {"email": email}, **headers)


def links(inbox: Inbox) -> list[str]:
    """Return the paths of the links in all e-mails, after the jobs have run."""
    run_until_idle()
    texts = " ".join(map(text_of, inbox.mails))
    return re.findall(r"http://[^/ ]+(/console/sign-up/[\w-]{43})\s", texts)


def mailed_link(inbox: Inbox, email: str = NEW) -> str:
    """Ask to sign up, and return the path of the mailed link."""
    inbox.clear()
    request(email)
    (path,) = links(inbox)
    return path


def use(path: str, person: Person | None = None, **fields: str) -> Answer:
    """Open a link, and send the form. An empty field is left out."""
    person = person or Browser("")
    person.get(path)
    form = {name: value for name, value in {**FORM, **fields}.items() if value}
    return person.post(path, form)


def home_of(answer: Answer) -> workspaces.WorkspaceRow:
    """Return the workspace to which a browser is redirected after signing up."""
    assert answer.status == 303, text(answer)
    slug = re.match(r"/console/w/([\w-]+)", answer.headers["Location"])
    assert slug is not None
    account = accounts.require_by_email(NEW)
    (found,) = [row for row, _ in workspaces.read_by_account(account.id) if row.slug == slug[1]]
    return found


class TestSigningUp:
    def test_an_address_leads_to_an_account_a_workspace_and_its_first_steps(
        self, inbox: Inbox, time: Time
    ) -> None:
        person = Browser("")
        answer = use(mailed_link(inbox), person)
        home, account = home_of(answer), accounts.require_by_email(NEW)
        assert (home.name, home.country, home.timezone) == ("Grace's salon", "GB", "Europe/London")
        assert (home.plan, home.owner_id, home.awaits_review) == ("start", account.id, True)
        assert (account.name, account.role, account.is_proved) == ("Grace", "user", True)
        overview = person.get(answer.headers["Location"])
        assert overview.status == 200
        assert "/services/new" in text(overview)
        assert "create_sign_up" not in text(overview)
        assert begun(NEW, FORM["password"])

    def test_what_a_person_agrees_to_is_kept_with_version_time_and_hash(
        self, inbox: Inbox, time: Time
    ) -> None:
        use(mailed_link(inbox))
        account = accounts.require_by_email(NEW)
        rows = {row.consent: row for row in consents.read(account.id)}
        assert rows.keys() == {"terms", "personal_data"}
        for row in rows.values():
            assert row.version == VERSIONS[row.consent]
            assert row.address_hash == accounts.email_hash(NEW)
            assert row.at == time.now
            assert NEW not in json.dumps(row.attribute_values, default=str)

    def test_advertising_is_agreed_to_by_a_box_of_its_own(self, inbox: Inbox) -> None:
        use(mailed_link(inbox), advertising="yes")
        rows = consents.read(accounts.require_by_email(NEW).id)
        assert {row.consent for row in rows} == set(CONSENTS)

    @pytest.mark.parametrize("missing", ["terms", "personalData"])
    def test_without_an_agreement_nothing_is_made(self, missing: str, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        answer = use(path, **{missing: ""})
        assert answer.status == 400
        assert f'href="#{missing}"' in text(answer)
        assert 'value="Grace\'s salon"' in text(answer)
        assert accounts.find_by_email(NEW) is None
        assert use(path).status == 303

    def test_no_box_is_ticked_and_each_has_its_own_text(self, inbox: Inbox) -> None:
        page = text(Browser("").get(mailed_link(inbox)))
        boxes = re.findall(r'<input type="checkbox"[^>]+>', page)
        assert len(boxes) == len(CONSENTS)
        assert not any("checked" in box for box in boxes)
        paths = re.findall(r'href="(/console/consents/[^"]+)"', page)
        bodies = {Browser("").get(path).body for path in paths}
        assert len(bodies) == len(CONSENTS)

    @pytest.mark.parametrize(
        ("place", "country", "zone"),
        [
            ("RU Asia/Vladivostok", "RU", "Asia/Vladivostok"),
            ("US America/Denver", "US", "America/Denver"),
            ("DE", "DE", "Europe/Berlin"),
        ],
    )
    def test_the_country_gives_the_zone(
        self, place: str, country: str, zone: str, inbox: Inbox
    ) -> None:
        home = home_of(use(mailed_link(inbox), country=place))
        assert (home.country, home.timezone) == (country, zone)

    @pytest.mark.parametrize("place", ["", "XX", "RU Mars/Olympus", "US", "' OR 1"])
    def test_another_place_is_refused(self, place: str, inbox: Inbox) -> None:
        assert use(mailed_link(inbox), country=place).status == 400
        assert accounts.find_by_email(NEW) is None

    @pytest.mark.parametrize(
        ("header", "first"),
        [
            ("en-GB,en;q=0.9", "GB"),
            ("ru", "RU Europe/Moscow"),
            ("de-Latn-AT,de;q=0.8", "AT"),
            ("en", ""),
            ("nonsense" * 50, ""),
        ],
    )
    def test_the_country_of_the_browser_is_offered_first(
        self, header: str, first: str, inbox: Inbox
    ) -> None:
        path = mailed_link(inbox)
        page = text(Browser("").get(path, accept_language=header))
        chosen = re.findall(r'<option value="([^"]*)" selected>', page)
        assert chosen == ([first] if first else [])

    def test_pages_are_small(self, inbox: Inbox) -> None:
        for language in ("en-US", "ru"):
            page = Browser("").get(
                mailed_link(inbox, f"{language}@x.org"), accept_language=language
            )
            assert len(page.body) < 60_000

    def test_only_countries_of_the_operator_are_offered(
        self, inbox: Inbox, settings: Callable[..., None]
    ) -> None:
        path = mailed_link(inbox)
        settings(SIGN_UP_COUNTRIES="KZ GB")
        page = text(Browser("").get(path))
        assert set(re.findall(r'<option value="(\w\w)[^"]*"', page)) == {"KZ", "GB"}
        assert use(path, country="DE").status == 400
        assert use(path).status == 303


class TestLink:
    def test_opening_it_changes_nothing(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        for _ in range(3):  # as programs that scan e-mails do
            assert Person("").get(path).status == 200
        assert Person("").request("HEAD", path).status in {200, 405}
        assert use(path).status == 303

    def test_a_second_click_signs_in_to_the_same_account(self, inbox: Inbox) -> None:
        path, first, second = mailed_link(inbox), Browser(""), Browser("")
        answers = [use(path, first), use(path, second)]
        assert home_of(answers[0]).id == home_of(answers[1]).id
        account = accounts.require_by_email(NEW)
        assert len(workspaces.owned(account.id)) == 1
        assert lives(first.token)
        assert lives(second.token)

    def test_a_replayed_link_without_the_password_does_nothing(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        use(path)
        before = workspaces.owned(accounts.require_by_email(NEW).id)
        answer = use(path, password="another password", workspace="Stolen")
        assert answer.status == 404
        assert Person("").get(path).status == 404
        assert workspaces.owned(accounts.require_by_email(NEW).id) == before
        assert begun(NEW, FORM["password"])

    def test_a_replayed_link_does_not_pass_by_a_second_factor(
        self, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = mailed_link(inbox)
        use(path)
        account = accounts.require_by_email(NEW)
        account.update([accounts.AccountRow.factor_salt.set("salt")])
        assert use(path).status == 404

    def test_back_leads_into_the_console(self, inbox: Inbox) -> None:
        person, path = Browser(""), mailed_link(inbox)
        use(path, person)
        assert person.get(path).headers["Location"] == "/console"

    def test_it_works_for_a_day(self, inbox: Inbox, time: Time) -> None:
        path = mailed_link(inbox)
        time.pass_by(hours=23, minutes=59)
        assert Person("").get(path).status == 200
        time.pass_by(minutes=1)
        assert Person("").get(path).status == 404
        assert use(path).status == 404
        assert accounts.find_by_email(NEW) is None

    def test_an_account_that_was_made_meanwhile_keeps_its_password(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        call_operator("create_account", email=NEW, password=PASSWORD)
        assert use(path).status == 404
        assert begun(NEW)
        assert workspaces.owned(accounts.require_by_email(NEW).id) == []

    def test_a_link_makes_an_account_for_its_own_address_only(self, inbox: Inbox) -> None:
        """A link that somebody else mailed to themselves makes nothing for the one who opens it."""
        ada = Browser(KNOWN, begun(KNOWN))
        path = mailed_link(inbox)
        page = text(ada.get(path))
        assert NEW in page
        assert KNOWN in page  # The page says who is signed in.
        former = ada.token
        assert use(path, ada).status == 303
        assert not lives(former)
        assert workspaces.owned(accounts.require_by_email(KNOWN).id) == []

    def test_an_unproved_account_goes_to_the_reader_of_the_mail(self, inbox: Inbox) -> None:
        place = call_operator("create_workspace", owner=KNOWN, name="Bakery")
        accept_as_new(invite(place["workspaceId"], NEW), password="the inviter's")
        assert not accounts.require_by_email(NEW).is_proved
        squatter = begun(NEW, "the inviter's")
        run_until_idle()
        answer = use(mailed_link(inbox))
        assert answer.status == 303
        assert accounts.require_by_email(NEW).is_proved
        assert not lives(squatter)
        assert begun(NEW, FORM["password"])

    def test_two_clicks_at_once_make_one_account(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        people = [Browser("") for _ in range(6)]
        for person in people:
            person.get(path)
        answers = run_concurrently(6, lambda number: people[number].post(path, FORM))
        assert {answer.status for answer in answers} == {303}
        assert len({answer.headers["Location"] for answer in answers}) == 1
        account = accounts.require_by_email(NEW)
        assert len(workspaces.owned(account.id)) == 1
        assert sum("/ACCOUNT#" in key and key.endswith("/account") for key in all_rows()) <= 2
        assert all(lives(person.token) for person in people)

    def test_two_links_of_one_address_make_one_account(self, inbox: Inbox, time: Time) -> None:
        paths = [mailed_link(inbox)]
        time.pass_by(hours=1)
        paths.append(mailed_link(inbox))
        answers = run_concurrently(2, lambda number: use(paths[number]))
        assert sorted(answer.status for answer in answers) == [303, 404]
        assert len(workspaces.owned(accounts.require_by_email(NEW).id)) == 1

    def test_neither_database_nor_log_has_the_token(self, inbox: Inbox, caplog: Any) -> None:
        token = mailed_link(inbox).rpartition("/")[2]
        assert token not in json.dumps(all_rows(), default=str)
        assert token not in caplog.text

    def test_no_page_sends_the_path_to_others(self, inbox: Inbox) -> None:
        answer = Person("").get(mailed_link(inbox))
        assert answer.headers["Referrer-Policy"] == "strict-origin"
        assert answer.headers["Cache-Control"] == "no-store"


class TestEnumeration:
    def test_every_address_gets_the_same_answer(self, inbox: Inbox) -> None:
        call_operator("create_account", email="off@example.com", password=PASSWORD)
        call_operator("disable_account", email="off@example.com")
        pages = []
        for email in (KNOWN, NEW, "off@example.com", KNOWN):
            person = Person("", "A" * 43)
            answer = person.post(SIGN_UP, {"email": email})
            page = person.get(answer.headers["Location"])
            headers = {k: v for k, v in answer.headers.items() if k != "X-Request-Id"}
            pages.append((answer.status, answer.body, str(headers), page.status, page.body))
        assert len(set(pages)) == 1
        run_until_idle()
        assert {str(mail["To"]) for mail in inbox.mails} == {KNOWN, NEW}

    def test_every_address_takes_the_same_requests_to_the_database(self, inbox: Inbox) -> None:
        def cost(email: str) -> tuple[Any, ...]:
            with metering() as usage:
                assert request(email).status == 303
            return usage.round_trips, usage.reads, usage.writes

        request("first@example.com")  # reads what the process keeps
        assert cost(KNOWN) == cost(NEW)

    @pytest.mark.parametrize("language", ["en", "ru"])
    def test_a_known_address_gets_a_mail_that_leads_to_the_sign_in(
        self, language: str, inbox: Inbox
    ) -> None:
        request(KNOWN, accept_language=language)
        assert links(inbox) == []
        message = inbox.only()
        assert re.findall(r"http://\S+(/console/\S*)", text_of(message)) == ["/console/sign-in"]
        request(NEW, accept_language=language)
        run_until_idle()
        assert len(set(inbox.subjects)) == 2

    def test_requests_of_anybody_leave_no_record_in_the_audit_log(self, inbox: Inbox) -> None:
        known = len(audit.latest(PLATFORM))
        for email in (KNOWN, NEW):
            assert request(email).status == 303
        assert len(audit.latest(PLATFORM)) == known


class TestFlood:
    @pytest.mark.usefixtures("edge")
    def test_a_mailbox_gets_one_mail_an_hour_in_all_spellings(
        self, inbox: Inbox, time: Time
    ) -> None:
        spellings = ["a.b@gmail.com", "ab@gmail.com", "AB+x@googlemail.com", "a.b+y@gmail.com"]
        for number, email in enumerate(spellings):
            assert request(email, Browser("", ip=f"203.0.113.{number}")).status == 303
        assert len(links(inbox)) == 1
        time.pass_by(hours=1)
        request(spellings[1], Browser("", ip="203.0.113.9"))
        assert len(links(inbox)) == 2

    @pytest.mark.usefixtures("edge")
    def test_a_network_asks_ten_times_a_day(self, inbox: Inbox, time: Time) -> None:
        statuses = [request(f"a{number}@example.com").status for number in range(11)]
        assert statuses == [303] * 10 + [429]
        assert len(links(inbox)) == 10
        assert request(person=Browser("", ip="192.0.2.1")).status == 303
        time.pass_by(days=1)
        assert request("b@example.com").status == 303

    @pytest.mark.usefixtures("edge")
    def test_a_home_network_of_ipv6_asks_as_one(self) -> None:
        statuses = [
            request(f"a{n}@example.com", Browser("", ip=f"2001:db8:1:1::{n}")).status
            for n in range(11)
        ]
        assert statuses == [303] * 10 + [429]

    @pytest.mark.usefixtures("edge")
    def test_tokens_are_guessed_twenty_times_in_fifteen_minutes(self, inbox: Inbox) -> None:
        path = mailed_link(inbox)
        statuses = [use(f"{SIGN_UP}/{number:043}").status for number in range(20)]
        assert statuses == [404] * 20
        assert use(path).status == 429
        assert use(path, Browser("", ip="192.0.2.1")).status == 303

    @pytest.mark.usefixtures("edge")
    def test_one_mailbox_makes_three_accounts_a_month(self, inbox: Inbox, time: Time) -> None:
        statuses = []
        for number in range(5):
            path = mailed_link(inbox, f"eve+{number}@example.com")
            statuses.append(use(path, Browser("", ip=f"203.0.113.{number}")).status)
            time.pass_by(hours=1)
        assert statuses == [303, 303, 303, 429, 429]


class TestClosed:
    @pytest.mark.parametrize("variable", [{"SIGN_UP": "closed"}, {"MAIL": "off"}])
    def test_nobody_signs_up(
        self, variable: dict[str, str], inbox: Inbox, settings: Callable[..., None]
    ) -> None:
        settings(**variable)
        page = text(Person("").get(SIGN_UP))
        assert 'name="email"' not in page
        assert SIGN_UP not in text(Person("").get("/console/sign-in"))
        assert request().status in {403, 503}

    def test_a_link_makes_nothing_after_the_operator_has_closed_sign_up(
        self, inbox: Inbox, settings: Callable[..., None]
    ) -> None:
        path = mailed_link(inbox)
        settings(SIGN_UP="closed")
        assert use(path).status == 403
        assert accounts.find_by_email(NEW) is None

    def test_a_deployed_stage_names_its_countries_and_who_helps(self) -> None:
        stage = {"OBJECT_STORE": "s3://bucket", "SIGN_UP": "open"}
        with pytest.raises(ValueError, match="SIGN_UP_COUNTRIES"):
            read(stage)
        with pytest.raises(ValueError, match="SUPPORT_URL"):
            read({**stage, "SIGN_UP_COUNTRIES": "GB"})
        settings = read({**stage, "SIGN_UP_COUNTRIES": "GB IE", "SUPPORT_URL": "mailto:a@b.org"})
        assert settings.is_sign_up_open
        assert settings.sign_up_countries == ("GB", "IE")
        assert settings.sign_up_plan == "free"
        assert not read({"OBJECT_STORE": "s3://bucket"}).is_sign_up_open

    @pytest.mark.parametrize(
        "variable",
        [
            {"SIGN_UP": "yes"},
            {"SIGN_UP_COUNTRIES": "gb"},
            {"SIGN_UP_PLAN": "gold"},
            {"SUPPORT_URL": "javascript:alert(1)"},
        ],
    )
    def test_a_wrong_setting_fails_at_the_start(self, variable: dict[str, str]) -> None:
        (name,) = variable
        with pytest.raises(ValueError, match=name):
            read(variable)


class TestNames:
    @pytest.mark.parametrize("field", ["name", "workspace"])
    @pytest.mark.parametrize("value", ["see https://evil.example", "a" * 201, " ", "a\x00b"])
    def test_hostile_names_are_refused(self, field: str, value: str, inbox: Inbox) -> None:
        answer = use(mailed_link(inbox), **{field: value})
        assert answer.status == 400
        assert accounts.find_by_email(NEW) is None

    @pytest.mark.parametrize("name", ["Admin", "api", "Console!", "WWW"])
    def test_a_reserved_slug_is_not_given(self, name: str, inbox: Inbox) -> None:
        home = home_of(use(mailed_link(inbox), workspace=name))
        assert home.slug not in {"admin", "api", "console", "www"}

    def test_two_businesses_of_one_name_have_their_own_slugs(self, inbox: Inbox) -> None:
        paths = [mailed_link(inbox, f"{n}@example.com") for n in ("a", "b", "c")]
        answers = run_concurrently(3, lambda number: use(paths[number]))
        assert len({answer.headers["Location"] for answer in answers}) == 3

    def test_a_name_is_shown_as_text(self, inbox: Inbox) -> None:
        person = Browser("")
        answer = use(mailed_link(inbox), person, workspace="<script>alert(1)</script>")
        assert b"<script>alert" not in person.get(answer.headers["Location"]).body


class TestFurtherWorkspaces:
    @pytest.fixture
    def grace(self, inbox: Inbox) -> Browser:
        person = Browser(NEW)
        assert use(mailed_link(inbox), person).status == 303
        return person

    def test_an_account_owns_three(self, grace: Browser) -> None:
        form = {"name": "Second", "country": "RU Asia/Omsk"}
        answer = grace.post(FURTHER, form)
        home = home_of(answer)
        assert (home.timezone, home.plan, home.awaits_review) == ("Asia/Omsk", "start", True)
        assert grace.post(FURTHER, {"name": "Third", "country": "GB"}).status == 303
        refused = grace.post(FURTHER, {"name": "Fourth", "country": "GB"})
        assert refused.status == 409
        assert str(MAX_WORKSPACES) in text(refused)
        assert len(workspaces.owned(accounts.require_by_email(NEW).id)) == 3

    def test_a_test_workspace_does_not_count(self, grace: Browser) -> None:
        for name in ("a", "b", "c"):
            assert grace.post("/console/account/test-workspaces", {"name": name}).status == 303
        assert grace.post(FURTHER, {"name": "Second", "country": "GB"}).status == 303

    def test_a_double_click_makes_one(self, grace: Browser) -> None:
        form = {"name": "Second", "country": "GB", "once": "one-click"}
        answers = run_concurrently(2, lambda _: grace.post(FURTHER, form))
        assert {answer.status for answer in answers} == {303}
        assert len(workspaces.owned(accounts.require_by_email(NEW).id)) == 2

    def test_clicks_at_once_do_not_pass_the_maximum(self, grace: Browser) -> None:
        forms = [{"name": f"n{n}", "country": "GB", "once": f"click-{n}"} for n in range(5)]
        answers = run_concurrently(5, lambda number: grace.post(FURTHER, forms[number]))
        assert sorted(answer.status for answer in answers) == [303, 303, 409, 409, 409]
        assert len(workspaces.owned(accounts.require_by_email(NEW).id)) == 3

    def test_without_sign_up_the_operator_makes_them(
        self, grace: Browser, settings: Callable[..., None]
    ) -> None:
        settings(SIGN_UP="closed")
        assert b"<select" not in grace.get(FURTHER).body
        assert grace.post(FURTHER, {"name": "Second", "country": "GB"}).status == 403

    def test_the_page_is_for_people_who_are_signed_in(self) -> None:
        assert Person("").get(FURTHER).headers["Location"].startswith("/console/sign-in")
