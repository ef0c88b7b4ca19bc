"""Lost and late answers of DynamoDB: no call acts twice, waits for ever, or fails without a reason.

Faults are injected before DynamoDB receives a request, or after it has processed the request.
"""

import json
import socket
import time as real_time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.httpsession import URLLib3Session

from chalicelib.application.context import Context
from chalicelib.application.invoke import invoke
from chalicelib.core import deadline, retry
from chalicelib.core.errors import UnavailableError
from chalicelib.core.operations import Registry, operation
from chalicelib.core.principals import ApiKeyPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import Id, NoInput, Wire
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine import cache
from chalicelib.engine.connection import CONNECT_SECONDS, READ_SECONDS, connection
from chalicelib.gateways.object_store import object_store
from tests.conftest import Answer, Api, Owner, Time
from tests.engine.test_unit import conflict, failing
from tests.support.effort import matrix
from tests.transports.conftest import Records, logged  # noqa: F401  a fixture

pytestmark = pytest.mark.store

TRANSACTION = "TransactWriteItems"
ALWAYS = 10**9
OFTEN = (1, 3, ALWAYS)
ENDPOINT = "http://nowhere"
GATEWAY_SECONDS = 28
"""An answer is due by then: API Gateway waits for 29 seconds."""

Fault = Callable[[Any, dict[str, Any]], None]
"""Replaces an answer: it raises, or changes the answer."""


def closed(_http: Any, _parsed: dict[str, Any]) -> None:
    raise ConnectionClosedError(endpoint_url=ENDPOINT)


def refusal(code: str, status: int) -> Fault:
    def refuse(http: Any, parsed: dict[str, Any]) -> None:
        http.status_code = status
        parsed.clear()
        parsed["Error"] = {"Code": code, "Message": "no"}
        parsed["ResponseMetadata"] = {"HTTPStatusCode": status}

    refuse.__name__ = code
    return refuse


crashed = refusal("InternalServerError", 500)
in_progress = refusal("TransactionInProgressException", 400)
invalid = refusal("ValidationException", 400)


@contextmanager
def faulty(api_call: str, fault: Fault, when: str, times: int = ALWAYS) -> Iterator[list[str]]:
    """Let a fault replace the next answers to a call. Yields the calls that were made."""
    seen: list[str] = []

    def before(**_: Any) -> Any:
        seen.append(api_call)
        if when == "before" and len(seen) <= times:
            http, parsed = SimpleNamespace(status_code=200), dict[str, Any]()
            fault(http, parsed)
            return http, parsed
        return None

    def after(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
        if when == "after" and len(seen) <= times:
            fault(http_response, parsed)

    events = connection().client.meta.events
    events.register_first(f"before-call.dynamodb.{api_call}", before)
    events.register_first(f"after-call.dynamodb.{api_call}", after)
    try:
        yield seen
    finally:
        events.unregister(f"before-call.dynamodb.{api_call}", before)
        events.unregister(f"after-call.dynamodb.{api_call}", after)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "sleep", lambda _: None)


@dataclass
class Change:
    """A call that must act once, and the number of times it has acted."""

    api: Api
    path: str
    body: dict[str, Any]
    done: Callable[[], int]

    def send(self, key: str | None = "order-1") -> Answer:
        headers = {"Idempotency-Key": key} if key else {}
        return self.api.call("POST", self.path, self.body, headers)


def count(api: Api, path: str, what: str) -> Callable[[], int]:
    return lambda: len(api.get(path)[what])


def create_site(api: Api) -> Change:
    sites = count(api, "/api/projects/list", "projects")
    return Change(api, "/api/projects/create", {"title": "Bakery"}, sites)


def create_product(api: Api) -> Change:
    body = {"name": "Loaf", "price": 100}
    products = count(api, "/api/products/list", "products")
    return Change(api, "/api/products/create", body, products)


def import_page(api: Api) -> Change:
    site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
    body = {"projectId": site, "html": "<title>T</title><p>Hi</p>"}
    pages = count(api, f"/api/pages/list?projectId={site}", "pages")
    return Change(api, "/api/pages/import-html", body, pages)


def upload_file(api: Api) -> Change:
    body = {"name": "a.txt", "content": "aGVsbG8="}
    return Change(api, "/api/files/upload", body, count(api, "/api/files/list", "files"))


def loaf(api: Api) -> tuple[str, Callable[[], Any]]:
    body = {"name": "Loaf", "price": 100, "stock": 100}
    made = api.post("/api/products/create", body)["product"]["id"]
    return made, lambda: api.get(f"/api/products/{made}")["product"]


def raise_prices(api: Api) -> Change:
    product, now = loaf(api)
    body = {"ids": [product], "action": "changePricePercent", "value": 10}
    raised = {100: 0, 110: 1, 121: 2, 133: 3}
    return Change(api, "/api/products/bulk", body, lambda: raised[now()["price"]])


def add_stock(api: Api) -> Change:
    product, now = loaf(api)
    body = {"id": product, "stockDelta": 7}
    added = {100: 0, 107: 1, 114: 2, 121: 3}
    return Change(api, "/api/products/update", body, lambda: added[now()["stock"]])


CHANGES = [create_site, create_product, import_page, raise_prices, add_stock, upload_file]
FAULTS = [closed, crashed, in_progress]
TIMES = ["before", "after"]


@matrix("change, fault, when", CHANGES, FAULTS, TIMES)
class TestLostAnswers:
    """Answers that are lost once, three times, or until all retries are used up."""

    def test_lost_answers_of_a_call_with_a_key_are_one_effect_and_one_answer(
        self, change: Callable[[Api], Change], fault: Fault, when: str, api: Api
    ) -> None:
        made = change(api)
        for done, times in enumerate(OFTEN, start=1):
            key = f"order-{times}"
            with faulty(TRANSACTION, fault, when, times):
                first = made.send(key)
            second = made.send(key)
            assert first.status == 200 or (first.status, times) == (503, ALWAYS)
            assert second.status == 200
            assert second.body == (first if first.status == 200 else made.send(key)).body
            assert made.done() == done

    def test_lost_answers_of_a_call_without_a_key_are_at_most_one_effect(
        self, change: Callable[[Api], Change], fault: Fault, when: str, api: Api
    ) -> None:
        made = change(api)
        for done, times in enumerate(OFTEN, start=1):
            with faulty(TRANSACTION, fault, when, times):
                answer = made.send(key=None)
            assert answer.status == (503 if times == ALWAYS else 200)
            assert made.done() == done - ((times, when) == (ALWAYS, "before"))


@pytest.mark.parametrize("change", CHANGES)
def test_a_conflict_after_a_lost_answer_does_not_start_over(
    change: Callable[[Api], Change], api: Api
) -> None:
    made = change(api)
    with faulty(TRANSACTION, closed, "after", 1) as sent:

        def then_conflict(**_: Any) -> None:
            if len(sent) == 2:
                raise conflict()

        events = connection().client.meta.events
        events.register_last(f"before-call.dynamodb.{TRANSACTION}", then_conflict)
        try:
            assert made.send(key=None).status == 200
        finally:
            events.unregister(f"before-call.dynamodb.{TRANSACTION}", then_conflict)
    assert made.done() == 1


def test_a_caller_without_an_answer_is_told_that_the_outcome_is_unknown(api: Api) -> None:
    made = create_site(api)
    with faulty(TRANSACTION, closed, "after"):
        answer = made.send(key=None)
    assert (answer.status, answer.data["code"]) == (503, "unavailable")
    assert "did not say whether the change was made" in answer.data["message"]
    with faulty(TRANSACTION, refusal("ThrottlingException", 400), "before"):
        answer = made.send(key=None)
    assert "Try again in a few seconds" in answer.data["message"]


def test_a_bulk_change_cut_short_continues_under_its_key(api: Api) -> None:
    made = raise_prices(api)
    with faulty(TRANSACTION, refusal("ThrottlingException", 400), "before", 4):
        assert made.send().status == 503
    answer = made.send()
    assert answer.data["summary"] == {"ok": 1, "failed": 0}
    assert made.send().body == answer.body
    assert made.done() == 1


class TestInProgressRecords:
    """Idempotency records of calls that are still running, in operations with external effects."""

    @matrix("fault, when, times", FAULTS, TIMES, [1, 2, ALWAYS])
    def test_a_lost_answer_to_creating_a_record_costs_at_most_one_retry(
        self, fault: Fault, when: str, times: int, api: Api
    ) -> None:
        made = import_page(api)
        with faulty("PutItem", fault, when, times):
            first = made.send()
        assert first.status == (503 if times == ALWAYS else 200)
        assert made.done() == (0 if times == ALWAYS else 1)
        second = made.send()
        assert second.status == 200
        assert made.send().body == second.body
        assert made.done() == 1

    @matrix("fault, when", FAULTS, TIMES)
    def test_a_record_that_cannot_be_removed_hides_no_failure_and_expires(
        self, fault: Fault, when: str, api: Api, time: Time
    ) -> None:
        made = import_page(api)
        site, made.body["projectId"] = made.body["projectId"], "nope"
        with faulty("DeleteItem", fault, when):
            assert made.send().status == 404
        made.body["projectId"] = site
        if when == "before":
            assert made.send().status == 409
            time.pass_by(minutes=2.1)
        assert made.send().status == 200
        assert made.done() == 1


class MadeResult(Wire):
    """Response of the operation that these tests register."""

    id: Id


def test_warnings_of_an_attempt_that_conflicted_are_dropped(owner: Owner) -> None:
    registry, attempts = Registry(), iter(["first", "second", "third"])

    @operation(
        tool="svc_warn",
        rest="POST /api/warn",
        scope=Scope.PROJECTS_WRITE,
        title="Warn",
        registry=registry,
    )
    def warn(ctx: Context, args: NoInput) -> MadeResult:
        """Add a warning."""
        ctx.warn(next(attempts))
        site = SITES.new(ctx.workspace_id, title="x", slug="x", status="active")
        ctx.unit.create(site)
        return MadeResult(id=site.id)

    principal = ApiKeyPrincipal(
        workspace_id=owner.workspace.id,
        account_id=owner.workspace.owner_id,
        plan="business",
        scopes=frozenset(Scope),
        key_id="k",
    )
    with failing(TRANSACTION, 1, conflict):
        reply = invoke(registry["warn"], principal, dict, request_id="r", idempotency_key="k")
    assert json.loads(reply.body)["data"]["warnings"] == ["second"]


READS = [("GET", "/api/projects/list"), ("GET", "/api/products/list?q=loaf&sort=price")]


class TestHangingDatabase:
    """A database that accepts connections and never answers."""

    @pytest.fixture
    def waited(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """Total seconds spent waiting for the database and between attempts.

        No real time passes.
        """
        waits: list[float] = []
        monkeypatch.setattr(deadline, "monotonic", lambda: sum(waits))
        monkeypatch.setattr(retry, "sleep", waits.append)
        monkeypatch.setattr(retry.random, "uniform", lambda _low, high: high)
        return waits

    @contextmanager
    def hanging(self, waited: list[float], after: int, *, seconds: float) -> Iterator[list[str]]:
        """Let requests hang after some have been answered, each for ``seconds``."""
        asked: list[str] = []

        def hang(model: Any, **_: Any) -> None:
            asked.append(model.name)
            if len(asked) > after:
                waited.append(CONNECT_SECONDS + READ_SECONDS)
                raise ReadTimeoutError(endpoint_url=ENDPOINT)
            waited.append(seconds)

        events = connection().client.meta.events
        events.register_first("before-call.dynamodb", hang)
        try:
            yield asked
        finally:
            events.unregister("before-call.dynamodb", hang)

    @matrix(
        "change, slow",
        [create_product, import_page, raise_prices, upload_file],
        [0.0, READ_SECONDS - 0.1],
    )
    def test_a_write_is_answered_in_time_wherever_the_database_hangs(
        self, change: Callable[[Api], Change], slow: float, api: Api, waited: list[float]
    ) -> None:
        made = change(api)
        for answered in range(30):
            waited.clear()
            with self.hanging(waited, answered, seconds=slow) as asked:
                answer = made.send(key=f"order-{answered}")
            assert sum(waited) < GATEWAY_SECONDS
            if len(asked) <= answered:
                break
            assert answer.status == 503
        assert answer.status == 200

    @pytest.mark.parametrize("slow", [0.0, READ_SECONDS - 0.1], ids=["quick", "slow"])
    @pytest.mark.parametrize(("method", "path"), READS)
    def test_a_read_is_answered_in_time_wherever_the_database_hangs(
        self, method: str, path: str, slow: float, api: Api, waited: list[float]
    ) -> None:
        loaf(api)
        for answered in range(20):
            waited.clear()
            with self.hanging(waited, answered, seconds=slow) as asked:
                answer = api.call(method, path)
            assert sum(waited) < GATEWAY_SECONDS
            if len(asked) <= answered:
                break
            assert answer.status == 503
            assert answer.data["code"] == "unavailable"
        assert answer.status == 200

    @pytest.mark.parametrize("change", [None, create_product, import_page])
    def test_a_hanging_database_over_real_sockets_is_a_503_in_time(
        self, change: Callable[[Api], Change] | None, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All clocks run twenty times as fast."""
        config, rate = connection().client.meta.config, 20
        assert (config.connect_timeout, config.read_timeout) == (CONNECT_SECONDS, READ_SECONDS)
        session = URLLib3Session(timeout=(CONNECT_SECONDS / rate, READ_SECONDS / rate))
        made = change(api) if change else None
        waited: list[float] = []

        def pause(seconds: float) -> None:
            waited.append(seconds)
            real_time.sleep(seconds / rate)

        event = f"before-send.dynamodb.{TRANSACTION}" if change else "before-send.dynamodb"
        with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:

            def redirect(request: Any, **_: Any) -> Any:
                waited.append(READ_SECONDS)
                request.url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
                return session.send(request)

            events = connection().client.meta.events
            events.register_first(event, redirect)
            try:
                with monkeypatch.context() as quick:
                    quick.setattr(deadline, "monotonic", lambda: real_time.monotonic() * rate)
                    quick.setattr(retry, "sleep", pause)
                    answer = made.send() if made else api.call("GET", "/api/projects/list")
            finally:
                events.unregister(event, redirect)
                session.close()
        assert (answer.status, answer.data["code"]) == (503, "unavailable")
        # The sum of the waits, not the real time: a slow machine waits less.
        assert sum(waited) < GATEWAY_SECONDS
        assert made is None or made.send().status == 200

    def test_an_object_that_may_be_in_use_is_kept_when_time_is_up(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made, now = upload_file(api), [0.0]
        monkeypatch.setattr(deadline, "monotonic", lambda: now[0])

        def lost_at_the_end(http: Any, parsed: dict[str, Any]) -> None:
            now[0] += deadline.REQUEST_SECONDS
            closed(http, parsed)

        with faulty(TRANSACTION, lost_at_the_end, "after") as sent:
            assert made.send().status == 503
        assert len(sent) == 1
        file = made.send().data["file"]
        assert object_store().get(file["url"].removeprefix(f"{settings().public_url}/")) == b"hello"
        assert made.done() == 1

    def test_threads_of_a_request_share_its_deadline(self) -> None:
        assert deadline.map_in_threads(lambda _: deadline.passed(), [1, 2], 2) == [False, False]
        with deadline.within(0):
            assert deadline.map_in_threads(lambda _: deadline.passed(), [1, 2], 2) == [True, True]

    def test_a_cache_is_skipped_when_no_time_is_left(self, database: None) -> None:
        with deadline.within(0):
            assert cache.cached("kind", "key", Time().now - Time().now, lambda: "found") == "found"
            with pytest.raises(UnavailableError):
                SITES.find("w", "s")


class TestErrorLog:
    @pytest.mark.parametrize(
        ("fault", "cause"),
        [
            (closed, "ConnectionClosedError"),
            (crashed, "(InternalServerError)"),
            (in_progress, "(TransactionInProgressException)"),
            (refusal("ThrottlingException", 400), "(ThrottlingException)"),
        ],
    )
    @pytest.mark.parametrize("api_call", ["GetItem", TRANSACTION])
    @pytest.mark.parametrize("way", ["rest", "mcp"])
    def test_the_log_has_the_cause_of_a_503_and_no_secret(
        self,
        way: str,
        api_call: str,
        fault: Fault,
        cause: str,
        api: Api,
        logged: Records,  # noqa: F811
    ) -> None:
        with faulty(api_call, fault, "before"):
            if way == "rest" or api_call == "GetItem":
                path = "/api/projects/create" if way == "rest" else "/api/mcp"
                assert api.refused("POST", path, {"title": "Hidden words"}).status == 503
            else:
                failed, answer = api.tool("svc_create_site", title="Hidden words")
                assert (failed, answer["httpStatus"]) == (True, 503)
        (line,) = [json.loads(line) for line in logged.lines if '"message": "request"' in line]
        assert line["code"] == "unavailable"
        assert cause in line["cause"]
        assert "Error <" in line["cause"]
        assert api.token is not None
        assert not any(s in line for line in logged.lines for s in ("Hidden words", api.token))

    def test_the_log_has_the_cause_of_repeated_conflicts(self, api: Api, logged: Records) -> None:  # noqa: F811
        with failing(TRANSACTION, ALWAYS, conflict):
            api.refused("POST", "/api/projects/create", {"title": "Bakery"})
        causes = json.loads(logged.lines[-1])["cause"]
        assert causes.startswith("UnavailableError < ConcurrentUpdateError < TransactWriteError")
        assert "(TransactionCanceledException)" in causes

    def test_the_log_has_no_entry_for_errors_of_the_caller(self, api: Api, logged: Records) -> None:  # noqa: F811
        api.refused("POST", "/api/projects/create", {})
        assert "cause" not in json.loads(logged.lines[-1])

    @pytest.mark.parametrize(
        ("api_call", "change"),
        [
            ("GetItem", create_site),
            ("BatchGetItem", raise_prices),
            ("Query", None),
            ("PutItem", import_page),
            (TRANSACTION, create_product),
            (TRANSACTION, import_page),
        ],
    )
    def test_a_request_that_aws_calls_invalid_is_logged_and_a_500_without_a_retry(
        self,
        api_call: str,
        change: Callable[[Api], Change] | None,
        api: Api,
        logged: Records,  # noqa: F811
    ) -> None:
        made = change(api) if change else None
        with faulty(api_call, invalid, "before") as seen:
            answer = made.send() if made else api.call("GET", "/api/projects/list")
        assert (answer.status, answer.data["code"]) == (500, "internal_error")
        assert len(seen) == 1
        assert "Retry-After" not in answer.headers
        assert any("ValidationException" in line for line in logged.errors)
        assert made is None or made.send().status == 200
