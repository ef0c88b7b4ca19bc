"""Random histories of saves, deletions, restores and purges, compared with a model."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from chalicelib.domains.files.store import files
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Answer, Api, Owner, Time, call_console
from tests.factories.pages import create, list_pages, new_site, objects
from tests.support.effort import examples

MONTH = timedelta(days=30)
DAY = timedelta(days=1)
PAUSE = timedelta(minutes=10)
PAGES = st.integers(0, 3)
HTMLS = st.sampled_from(["", "a", "bb", "ccc", "ё"])


@dataclass
class Page:
    """The expected state of a page. Versions are listed from the latest on."""

    id: str
    html: str | None = None
    saved_at: datetime | None = None
    replaced: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    """The HTML of each version, and from when to when the page had it."""
    deleted_at: datetime | None = None
    with_site: bool = False

    def save(self, html: str, now: datetime) -> None:
        if html == self.html:
            return
        if self.html is not None and self.saved_at is not None:
            self.replaced.insert(0, (self.html, self.saved_at, now))
        self.html, self.saved_at = html, now

    def versions(self, now: datetime) -> list[str]:
        """Return each version of the last day, and older ones that the page had for a while."""
        return [
            html for html, begin, end in self.replaced if now - end < DAY or end - begin >= PAUSE
        ]


class Histories(RuleBasedStateMachine):
    """Random actions on a site and its pages. Each must be answered as the model expects."""

    api: Api
    owner: Owner
    time: Time

    @initialize()
    def open(self) -> None:
        self.site = new_site(self.api, "Bakery")
        self.pages: list[Page] = []
        self.deleted_at: datetime | None = None

    @property
    def live(self) -> list[Page]:
        return [page for page in self.pages if page.deleted_at is None]

    def post(self, call: str, **body: Any) -> Answer:
        return self.api.call("POST", f"/api/{call}", body)

    def is_kept(self, since: datetime | None) -> bool:
        return since is not None and self.time.now - since < MONTH

    @precondition(lambda self: self.deleted_at is None and len(self.pages) < 4)
    @rule()
    def create_page(self) -> None:
        self.pages.append(Page(create(self.api, self.site)["id"]))

    @precondition(lambda self: self.pages)
    @rule(which=PAGES, html=HTMLS)
    def save(self, which: int, html: str) -> None:
        page = self.pages[which % len(self.pages)]
        status = self.post("pages/save-html", id=page.id, html=html).status
        assert status == (404 if page.deleted_at else 200)
        if status == 200:
            page.save(html, self.time.now)

    @precondition(lambda self: any(page.versions(self.time.now) for page in self.live))
    @rule(which=PAGES, number=st.integers(0, 5))
    def restore_version(self, which: int, number: int) -> None:
        edited = [page for page in self.live if page.versions(self.time.now)]
        page = edited[which % len(edited)]
        versions = self.api.get(f"/api/pages/{page.id}/versions")["versions"]
        number %= len(versions)
        answer = self.post("pages/restore-version", id=page.id, versionId=versions[number]["id"])
        assert answer.status == 200, answer.body
        page.save(page.versions(self.time.now)[number], self.time.now)

    @precondition(lambda self: self.pages)
    @rule(which=PAGES)
    def delete_page(self, which: int) -> None:
        page = self.pages[which % len(self.pages)]
        home = next((p["id"] for p in self.listed_pages() if p["isHome"]), None)
        blocked = page.id == home and len(self.live) > 1
        answer = self.post("pages/delete", id=page.id, confirm=True)
        expected = 404 if page.deleted_at else 409 if blocked else 200
        assert answer.status == expected, answer.body
        if expected == 200:
            page.deleted_at, page.with_site = self.time.now, False

    @precondition(lambda self: self.pages)
    @rule(which=PAGES)
    def restore_page(self, which: int) -> None:
        page = self.pages[which % len(self.pages)]
        answer = self.post("pages/restore", id=page.id)
        if page.deleted_at is None:
            assert answer.status == 409
        elif not self.is_kept(page.deleted_at):
            assert answer.status == 404
        elif self.deleted_at is not None:
            assert answer.status == 409
        else:
            assert answer.status == 200, answer.body
            page.deleted_at = None

    @rule()
    def delete_site(self) -> None:
        answer = self.post("projects/delete", id=self.site)
        assert answer.status == (404 if self.deleted_at else 200)
        if self.deleted_at is None:
            assert answer.data["cascade"]["pages"] == len(self.live)
            self.deleted_at = self.time.now
            for page in self.live:
                page.deleted_at, page.with_site = self.time.now, True

    @rule()
    def restore_site(self) -> None:
        answer = self.post("projects/restore", id=self.site)
        if self.deleted_at is None:
            assert answer.status == 409
        elif not self.is_kept(self.deleted_at):
            assert answer.status == 404
        else:
            assert answer.status == 200, answer.body
            self.deleted_at = None
            for page in self.pages:
                if page.with_site:
                    page.deleted_at, page.with_site = None, False

    @rule(
        length=st.sampled_from(
            [
                timedelta(minutes=4),
                timedelta(minutes=10),
                timedelta(hours=2),
                timedelta(days=14),
                timedelta(days=29),
            ]
        )
    )
    def wait(self, length: timedelta) -> None:
        self.time.now += length
        run_jobs()

    def listed_pages(self) -> list[Any]:
        return list_pages(self.api, self.site) if self.deleted_at is None else []

    @invariant()
    def pages_and_versions_are_those_of_the_model(self) -> None:
        if not hasattr(self, "site"):
            return
        assert {page["id"] for page in self.listed_pages()} == {page.id for page in self.live}
        for page in self.live:
            read = self.api.get(f"/api/pages/{page.id}")
            assert read["page"]["html"] == (page.html or "")
            versions = self.api.get(f"/api/pages/{page.id}/versions")["versions"]
            assert [self.html_of(page, version["id"]) for version in versions] == (
                page.versions(self.time.now)
            )

    def html_of(self, page: Page, version: str) -> str:
        html: str = call_console(
            self.owner.workspace.id, "get_page_version", id=page.id, versionId=version
        )["versionHtml"]
        return html

    @invariant()
    def the_storage_in_use_is_that_of_the_live_pages(self) -> None:
        if hasattr(self, "site"):
            used = sum(len((page.html or "").encode()) for page in self.live)
            assert files.used_bytes(self.owner.workspace.id) == used

    def teardown(self) -> None:
        """Delete the rest. After a month, no object is left."""
        if not hasattr(self, "site"):
            return
        self.post("projects/delete", id=self.site)
        self.time.now += timedelta(days=31)
        for _ in range(2):
            run_jobs()
        assert objects(self.owner) == []


def test_histories_of_pages_match_the_model(api: Api, owner: Owner, time: Time) -> None:
    machine = type("Machine", (Histories,), {"api": api, "owner": owner, "time": time})
    run_state_machine_as_test(machine, settings=examples(100, 3, stateful_step_count=30))
