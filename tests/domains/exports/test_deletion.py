"""A workspace is closed by its owner, reopened, and deleted after 30 days."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.errors import (
    ConflictError,
    ForbiddenError,
    InTestWorkspaceError,
    SlugTakenError,
)
from chalicelib.domains.exports.flows.deletion import KEPT
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine import audit
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import PASSWORD, Api, Owner, Time, all_rows, call_console, call_operator
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.domains.notifications.inbox import Inbox
from tests.domains.payments.checkout import Checkout
from tests.domains.payments.conftest import checkout  # noqa: F401  a fixture
from tests.factories.console import Person, person
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things
from tests.factories.people import Account
from tests.factories.salon import Salon, bookings_of
from tests.fakes.payment_shop import shop  # noqa: F401  a fixture

pytestmark = pytest.mark.usefixtures("database")
LEFT = (
    # Who did what, and money.
    *("^audit/", "^ledger/", "#PAYMENT", "#MERCHANT"),
    # The slugs and domains, and the account that may have them.
    *("^identity/WORKSPACE#", "^identity/CLAIM#", "#SITE", "#METRICS#spending/"),
    # Links, keys and tokens that no longer work.
    *("^identity/KEY", "^identity/W#", "^identity/CONNECTION", "^identity/INVITATION"),
    *("^identity/ACCOUNT#.*#CONNECTIONS",),
    # What expires by itself, counts and locks.
    *("^control/", "#COUNT#", "#LOCK/", "#DELIVERY#", "#LEAD#SUBMITTED/", "#UPLOAD/", "#USAGE/"),
    *("#KNOWLEDGE#INDEX/", "#CLIENT-MAIL", "#MAIL-DAYS", "#KEY-ERRORS", "#NOTIFY", "#WITHHELD"),
)


def close(owner: Owner) -> Any:
    return call_console(owner.workspace.id, "close_workspace", account_id=owner.workspace.owner_id)


def reopen(owner: Owner) -> Any:
    return call_console(owner.workspace.id, "reopen_workspace", account_id=owner.workspace.owner_id)


def statuses(workspace_id: str) -> list[str]:
    return sorted(row.status for row in bookings_of(workspace_id))


class TestClosing:
    def test_it_is_gone_for_visitors_and_keys_and_is_back_when_reopened(
        self, owner: Owner, api: Api
    ) -> None:
        salon = Salon.opened(api)
        call_console(owner.workspace.id, "set_booking_page", isOn=True, offer=[salon.service])
        page = f"/book/{owner.workspace.slug}"
        assert Person("").get(page).status == 200
        answer = close(owner)
        assert answer["closedAt"] < answer["deletionAt"]
        assert Person("").get(page).status == 404
        refused = api.call("GET", "/api/services/list")
        assert (refused.status, refused.data["key"]) == (403, "workspace_closed")
        assert close(owner) == answer  # A second click changes nothing.
        reopen(owner)
        assert Person("").get(page).status == 200
        assert api.call("GET", "/api/services/list").status == 200

    def test_future_bookings_are_cancelled_and_past_ones_stay(
        self, owner: Owner, api: Api, time: Time
    ) -> None:
        salon = Salon.opened(api, [{"capacity": 5}])
        for day in (16, 17, 18):
            salon.book(f"2027-01-{day}T12:00:00Z", f"Client {day}")
        time.pass_by(days=1, hours=6)
        close(owner)
        run_until_idle()
        run_jobs()
        assert statuses(owner.workspace.id) == ["cancelled", "cancelled", "confirmed"]

    def test_members_and_clients_are_told(
        self,
        owner: Owner,
        api: Api,
        inbox: Inbox,  # noqa: F811  the fixture
    ) -> None:
        Account.create("grace").joins(owner.workspace.id, "member")
        salon = Salon.opened(api)
        salon.book("2027-01-18T12:00:00Z", "Eve")
        run_until_idle()
        inbox.clear()
        close(owner)
        run_jobs()
        run_until_idle()
        told = [str(mail["To"]) for mail in inbox.mails]
        assert "eve@example.com" in told
        assert "grace@example.com" in told

    def test_a_booking_that_is_paid_is_refunded(
        self,
        checkout: Checkout,  # noqa: F811  the fixture
    ) -> None:
        checkout.click(checkout.hold())
        checkout.shop.pay()
        checkout.hook()
        assert checkout.refunds == []
        close(checkout.owner)
        run_jobs()
        run_until_idle()
        (refund,) = checkout.refunds
        assert refund.amount == checkout.payments[0].amount
        assert checkout.booking.status == "cancelled"

    def test_only_the_owner_closes(self, owner: Owner) -> None:
        for membership in ("member", "manager"):
            for operation in ("close_workspace", "reopen_workspace"):
                with pytest.raises(ForbiddenError):
                    call_console(owner.workspace.id, operation, membership=membership)

    def test_a_test_workspace_is_not_closed(self, tester: Owner) -> None:
        with pytest.raises(InTestWorkspaceError):
            close(tester)

    def test_a_suspended_workspace_is_neither_closed_nor_reopened(self, owner: Owner) -> None:
        call_operator("suspend_workspace", workspaceId=owner.workspace.id)
        with pytest.raises(ConflictError):
            close(owner)
        reopen(owner)
        assert workspaces.get(owner.workspace.id).halt == "suspended"

    def test_a_closed_workspace_is_not_suspended(self, owner: Owner) -> None:
        close(owner)
        with pytest.raises(ConflictError):
            call_operator("suspend_workspace", workspaceId=owner.workspace.id)

    def test_the_owner_closes_and_reopens_in_the_console(self, owner: Owner) -> None:
        boss, path = person(owner), f"/console/w/{owner.workspace.slug}"
        assert f'href="{path}/close"' in boss.get(f"{path}/settings").body.decode()
        question = boss.get(f"{path}/close").body.decode()
        assert f"{path}/exports" in question
        assert "currentPassword" in question
        refused = boss.post(f"{path}/close", {"currentPassword": "a guess"})
        assert refused.status == 400
        assert workspaces.get(owner.workspace.id).closed_at is None
        assert boss.post(f"{path}/close", {}).status == 303
        assert boss.get(f"{path}/close").headers["Location"] == f"{path}/reopen"
        assert f'href="{path}/reopen"' in boss.get(path).body.decode()
        assert boss.post(f"{path}/reopen", {}).status == 303
        assert workspaces.get(owner.workspace.id).closed_at is None


class TestDeletion:
    def test_after_thirty_days_only_money_log_and_names_are_left(
        self, owner: Owner, api: Api, things: Things, time: Time
    ) -> None:
        home = owner.workspace.id
        known = len(audit.latest(home))
        close(owner)
        run_jobs()
        run_until_idle()
        time.pass_by(days=29, hours=23)
        run_jobs()
        assert workspaces.members(home)
        time.pass_by(hours=1)
        run_jobs()
        run_until_idle()
        left = {str(key) for key in all_rows() if home in str(key)}
        assert {key for key in left if not any(re.search(kept, key) for kept in LEFT)} == set()
        assert workspaces.members(home) == []
        assert workspaces.read_by_account(owner.workspace.owner_id) == []
        assert len(audit.latest(home)) > known
        row = workspaces.get(home)
        assert (row.name, row.halt) == (row.slug, "closed")

    def test_reopening_keeps_everything(self, owner: Owner, api: Api, time: Time) -> None:
        salon = Salon.opened(api)
        close(owner)
        run_jobs()
        time.pass_by(days=29)
        reopen(owner)
        time.pass_by(days=2)
        run_jobs()
        assert api.get("/api/services/list")["services"][0]["id"] == salon.service

    def test_a_workspace_closed_again_has_its_thirty_days(
        self, owner: Owner, api: Api, time: Time
    ) -> None:
        Salon.opened(api)
        close(owner)
        run_jobs()
        time.pass_by(days=29)
        reopen(owner)
        close(owner)
        run_jobs()
        time.pass_by(days=2)
        run_jobs()
        reopen(owner)
        assert len(api.get("/api/services/list")["services"]) == 1

    def test_after_thirty_days_it_does_not_open(self, owner: Owner, time: Time) -> None:
        close(owner)
        run_jobs()
        time.pass_by(days=30)
        with pytest.raises(ConflictError):
            reopen(owner)

    def test_a_job_that_is_cut_off_continues(
        self, owner: Owner, things: Things, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from chalicelib.domains.overview.flows import emptying

        close(owner)
        run_jobs()
        time.pass_by(days=30)
        wipe, count = emptying._wipe_parts, iter(range(100))

        def cut(*arguments: Any) -> None:
            if next(count) == 3:
                raise RuntimeError
            wipe(*arguments)

        monkeypatch.setattr(emptying, "_wipe_parts", cut)
        run_jobs()
        assert workspaces.members(owner.workspace.id)
        time.pass_by(hours=1)
        run_jobs()
        assert workspaces.members(owner.workspace.id) == []

    def test_no_other_account_gets_its_slugs(self, owner: Owner, api: Api, time: Time) -> None:
        slug = owner.workspace.slug
        api.post("/api/projects/create", {"title": "Bakery", "slug": "bakery"})
        close(owner)
        run_jobs()
        time.pass_by(days=30)
        run_jobs()
        run_until_idle()
        call_operator("create_account", email="eve@example.com", password=PASSWORD)
        other = call_operator("create_workspace", owner="eve@example.com", name=slug)
        assert other["slug"] != slug
        with pytest.raises(SlugTakenError):
            call_console(other["workspaceId"], "create_site", title="Bakery", slug="bakery")
        assert Person("").get("/s/bakery/").status == 404


def test_rows_of_money_are_few() -> None:
    assert {row.__name__ for row in KEPT} == {"PaymentRow", "RefundRow", "MerchantRow"}


class TestReview:
    @pytest.fixture
    def newcomer(self, owner: Owner, api: Api) -> Owner:
        owner.workspace.refresh()
        owner.workspace.awaits_review = True
        owner.workspace.save()
        return owner

    def test_search_engines_list_nothing_until_the_operator_admits_it(
        self,
        newcomer: Owner,
        api: Api,
        monkeypatch: pytest.MonkeyPatch,
        reload_settings: Callable[[], None],
        tmp_path: Path,
    ) -> None:
        monkeypatch.setenv("SUPPORT_URL", "https://help.example/report")
        reload_settings()
        site = api.post("/api/projects/create", {"title": "Bakery", "slug": "bakery"})["project"]
        page = api.post("/api/pages/create", {"projectId": site["id"], "title": "Home"})["page"]
        api.post("/api/pages/save-html", {"id": page["id"], "html": "<h1>Rye</h1>"})
        shown = Person("").get("/s/bakery/")
        assert shown.headers["X-Robots-Tag"] == "noindex"
        assert b"https://help.example/report" in shown.body
        refused = api.call(
            "POST", "/api/projects/set-domain", {"id": site["id"], "domain": "www.example.com"}
        )
        assert (refused.status, refused.data["key"]) == (403, "awaits_review")
        call_operator("admit_workspace", workspaceId=newcomer.workspace.id)
        shown = Person("").get("/s/bakery/")
        assert "X-Robots-Tag" not in shown.headers
        assert b"https://help.example/report" not in shown.body
        call_operator("admit_workspace", workspaceId=newcomer.workspace.id)
