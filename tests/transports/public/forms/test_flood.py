"""Floods of submissions, and the identity of visitors."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.operations import REGISTRY
from chalicelib.engine import visitors
from chalicelib.transports import cors, public
from chalicelib.transports.http import HttpRequest, HttpResponse
from tests.conftest import Api, Owner, Time, all_rows, run_concurrently
from tests.transports.conftest import Records
from tests.transports.public.forms.helpers import ANNA, FIELDS

IP = "203.0.113.77"


@pytest.fixture
def production_limits(monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]) -> None:
    """The rate limits of production."""
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()


def from_ip(ip: str, form: Any, body: dict[str, Any], **headers: str) -> HttpResponse:
    """Send JSON from an IP address."""
    request = HttpRequest(
        "POST",
        "/api/public/forms/{id}/submit",
        {"content-type": "application/json", **headers},
        path={"id": form["id"]},
        body=json.dumps(body).encode(),
        client_ip=ip,
    )
    return cors.PUBLIC.handle(request, partial(public.serve, REGISTRY["submit_form"]))


@pytest.mark.usefixtures("production_limits", "time")
class TestFlood:
    """A thousand submissions. Invalid ones count as well, and are faster to test."""

    @pytest.mark.parametrize(
        ("ours", "status"), [({"_url": "https://spam.example"}, 200), ({"_elapsed": 150}, 429)]
    )
    def test_a_flood_from_programs_stores_nothing(
        self, form: Any, log_records: Records, ours: dict[str, Any], status: int
    ) -> None:
        rows_before = all_rows()
        for number in range(333):
            assert from_ip(IP, form, ANNA | {"comment": f"bot {number}"} | ours).status == status
        assert all_rows() == rows_before
        assert len(log_records.lines) >= 333
        assert IP not in "".join(log_records.lines)

    @pytest.mark.slow
    def test_submissions_beyond_the_limit_store_only_the_count(
        self, form: Any, api: Api, time: Time, log_records: Records
    ) -> None:
        statuses = [from_ip(IP, form, ANNA | {"comment": f"post {n}"}).status for n in range(30)]
        assert statuses == [200] * 30
        rows_before = all_rows()
        for number in range(304):
            assert from_ip(IP, form, ANNA | {"comment": f"more {number}"}).status == 429
        assert all_rows() == rows_before
        assert api.get("/api/forms/collection-list")["total"] == 30
        assert IP not in json.dumps(all_rows(), default=repr)
        assert IP not in "".join(log_records.lines)
        time.pass_by(minutes=1)
        assert from_ip(IP, form, ANNA).status == 200

    def test_the_limit_counts_each_visitor_and_form(self, form: Any, api: Api) -> None:
        other = api.post("/api/forms/create", {"title": "Отзыв", "fields": FIELDS})["form"]
        assert {from_ip("2001:db8:1:2::1", form, {}).status for _ in range(30)} == {400}
        assert from_ip("2001:db8:1:2:ffff::9", form, {}).status == 429  # the same network
        assert from_ip("2001:db8:1:3::1", form, {}).status == 400
        assert from_ip("2001:db8:1:2::1", other, {}).status == 400
        assert from_ip("203.0.113.1", form, {}).status == 400

    def test_forged_headers_do_not_evade_the_limit(self, form: Any) -> None:
        def status(number: int) -> int:
            forged = f"198.51.100.{number}"
            headers = {"x-forwarded-for": forged, "forwarded": f"for={forged}"}
            return from_ip(IP, form, {}, **headers).status

        assert [status(number) for number in range(32)] == [400] * 30 + [429] * 2

    def test_a_refusal_states_when_to_retry(self, form: Any) -> None:
        for _ in range(30):
            from_ip(IP, form, {})
        refusal = from_ip(IP, form, ANNA)
        assert refusal.headers["Access-Control-Allow-Origin"] == "*"
        assert refusal.headers["Retry-After"] == "60"
        assert json.loads(refusal.body)["data"]["key"] == "form"


class TestVisitors:
    def test_a_visitor_has_the_same_id_all_day_and_another_the_next(
        self, database: None, time: Time
    ) -> None:
        today = visitors.visitor_hash(IP)
        time.pass_by(hours=11)
        assert visitors.visitor_hash(IP) == today
        time.pass_by(hours=1)
        assert visitors.visitor_hash(IP) != today

    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ("203.0.113.1", "203.0.113.2", False),
            ("203.0.113.1", "::ffff:203.0.113.1", True),
            ("203.0.113.1", "2002:cb00:7101:7::1", True),
            ("2002:cb00:7101::1", "2002:cb00:7102::1", False),
            ("203.0.113.1", "2001:0:4136:e378:8000:63bf:34ff:8efe", True),
            ("2001:db8::1", "2001:db8::ffff:0:0:2", True),
            ("2001:db8::1", "2001:db8:0:1::1", False),
            ("fe80::1%eth0", "fe80::2%eth1", True),
            ("", "unknown", False),
        ],
    )
    def test_visitors_are_distinguished_by_network(
        self, database: None, one: str, other: str, same: bool
    ) -> None:
        assert (visitors.visitor_hash(one) == visitors.visitor_hash(other)) is same

    @pytest.mark.store
    def test_processes_that_start_a_day_concurrently_agree_on_ids(self, database: None) -> None:
        def begin(_: int) -> str:
            visitors.forget()
            return visitors.visitor_hash(IP)

        assert len(set(run_concurrently(8, begin))) == 1

    def test_the_salt_is_deleted_when_the_day_is_over_in_all_zones(
        self, database: None, time: Time
    ) -> None:
        visitors.visitor_hash(IP)
        (salt,) = [row for key, row in all_rows().items() if key.startswith("control/SALT#")]
        ends = clock.now().replace(hour=12, day=16)
        assert int(salt["expires"]["N"]) == int(ends.timestamp())

    def test_visitors_appear_as_a_hash_in_the_audit_log(self, form: Any, owner: Owner) -> None:
        assert from_ip(IP, form, ANNA).status == 200
        (event,) = [
            row
            for key, row in all_rows().items()
            if key.startswith("audit/") and row["operation"]["S"] == "submit_form"
        ]
        assert re.fullmatch(r"visitor:[0-9a-f]{32}", event["actor"]["S"])
        assert event["client_ip"]["S"] == ""
