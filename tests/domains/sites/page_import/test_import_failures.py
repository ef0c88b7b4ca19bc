"""Failed and conflicting imports leave no objects, and repeated calls replay their response."""

import re
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import plans
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.settings import settings
from chalicelib.domains.files.flows import rehosting
from chalicelib.domains.files.store import files
from chalicelib.engine import idempotency, limits
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import fetch
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time
from tests.domains.sites.page_import.helpers import (
    IMAGE_SERVER,
    IMPORT,
    MIB,
    html_of,
    images,
    import_page,
    page,
)
from tests.factories.files import list_stored_files
from tests.factories.products import png
from tests.fakes.internet import Server, http_response

SAVE = "/api/pages/save-html"


class TestFailures:
    def test_a_commit_that_fails_leaves_no_object(
        self, image_server: Server, api: Api, owner: Owner, site: str
    ) -> None:
        import_page(api, site, html="<p>", slug="taken")
        image_server.pages = {"/a.png": http_response(png())}
        keys_before = list_stored_files()
        body = {"projectId": site, "html": images(f"{IMAGE_SERVER}/a.png"), "slug": "taken"}
        assert api.call_refused("POST", IMPORT, body).status == 409
        assert image_server.paths == ["/a.png"]
        assert list_stored_files() == keys_before
        assert files.used_bytes(owner.workspace.id) == len("<p>")

    def test_a_retry_after_a_conflict_fetches_nothing_again(
        self, image_server: Server, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        image_server.pages = {"/": page(images("a.png")), "/a.png": http_response(png())}
        commit, lost = UnitOfWork.commit, []
        keys_before = list_stored_files()

        def lose_twice(self: UnitOfWork, *arguments: Any) -> None:
            if len(lost) < 2:
                lost.append(self)
                raise ConcurrentUpdateError
            commit(self, *arguments)

        monkeypatch.setattr(UnitOfWork, "commit", lose_twice)
        assert import_page(api, site, url=IMAGE_SERVER)["imported"]["images"] == 1
        assert image_server.paths == ["/", "/a.png"]
        assert len(list_stored_files() - keys_before) == 3

    @pytest.mark.parametrize("room", [(9999, 0), (0, 9999), (9999, 0, 9999), (9999, 9999)])
    @pytest.mark.parametrize("replaces_page", [False, True], ids=["new page", "page there"])
    def test_response_after_conflicts_matches_the_stored_page(
        self,
        replaces_page: bool,
        room: tuple[int, ...],
        image_server: Server,
        api: Api,
        site: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        place = {"projectId": site}
        if replaces_page:
            place = {"pageId": import_page(api, site, html="<p>before")["page"]["id"]}
        image_server.pages = {
            "/": page("<title>T</title>" + images("a.png")),
            "/a.png": http_response(png()),
        }
        commit, storage_left = UnitOfWork.commit, [MIB + size for size in room]
        keys_before = list_stored_files()

        def lose_while_the_quota_changes(self: UnitOfWork, *arguments: Any) -> None:
            if len(storage_left) > 1:
                storage_left.pop(0)
                monkeypatch.setitem(plans.STORAGE_BYTES, "business", storage_left[0])
                raise ConcurrentUpdateError
            commit(self, *arguments)

        monkeypatch.setitem(plans.STORAGE_BYTES, "business", storage_left[0])
        monkeypatch.setattr(UnitOfWork, "commit", lose_while_the_quota_changes)
        answer = api.post(IMPORT, {**place, "url": IMAGE_SERVER})
        assert answer["imported"]["images"] == (room[-1] > 0)
        assert (f"{IMAGE_SERVER}/a.png" in html_of(api, answer)) == (room[-1] == 0)
        read = api.get(f"/api/pages/{answer['page']['id']}")["page"]
        assert read == answer["page"] | {"html": html_of(api, answer), "sections": None}
        assert len(list_stored_files()) == len(keys_before) + 1 + 2 * answer["imported"]["images"]

    def test_large_response_is_replayed_from_an_expiring_object(
        self, time: Time, api: Api, owner: Owner, site: str
    ) -> None:
        new_page = import_page(api, site, html="<p>")["page"]
        body = {"id": new_page["id"], "html": "<p>" + "ё" * idempotency.MAX_INLINE_BYTES}
        headers = {"Idempotency-Key": "large"}
        first, repeated = (api.call("POST", SAVE, body, headers) for _ in range(2))
        assert first.body == repeated.body
        assert repeated.headers["Idempotency-Replayed"] == "true"
        replays = re.compile(rf"{owner.workspace.id}/answers/.+")
        assert len(list(filter(replays.match, list_stored_files()))) == 1
        other = api.call_refused("POST", SAVE, body | {"html": "<p>"}, **headers)
        assert other.data["code"] == "idempotency_mismatch"
        time.pass_by(hours=23)
        run_jobs()
        assert api.call("POST", SAVE, body, headers).body == first.body
        time.pass_by(hours=3)
        run_jobs()
        assert not list(filter(replays.match, list_stored_files()))
        assert api.post(SAVE, body, key="large")["page"]["version"] == 3

    def test_large_response_of_a_failed_commit_leaves_no_object(
        self, api: Api, site: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        new_page = import_page(api, site, html="<p>")["page"]
        keys_before = list_stored_files()
        monkeypatch.setitem(plans.STORAGE_BYTES, "business", 100_000)
        body = {"id": new_page["id"], "html": "x" * 200_000}
        assert api.call_refused("POST", SAVE, body, **{"Idempotency-Key": "k"}).status == 409
        assert list_stored_files() == keys_before

    def test_all_external_calls_end_before_api_gateways_29_seconds(
        self, image_server: Server, api: Api, site: str
    ) -> None:
        assert rehosting.SECONDS + 5 <= 29
        assert fetch.TOTAL_SECONDS <= rehosting.SECONDS


def test_imports_count_as_heavy_calls_and_are_limited(
    api: Api, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "settings", lambda: replace(settings(), rate_limit_scale=0))
    answer = api.call_refused("POST", IMPORT, {"projectId": site, "html": "<p>"})
    assert (answer.status, answer.data["code"]) == (429, "rate_limited")
    assert int(answer.headers["Retry-After"]) <= 60
