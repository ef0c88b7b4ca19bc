"""Requests are answered in time while DynamoDB hangs, and the cause is logged."""

import json
import socket
import time as real_time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.httpsession import URLLib3Session

from chalicelib.core import deadline, retry
from chalicelib.core.errors import UnavailableError
from chalicelib.core.settings import settings
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine import cache
from chalicelib.engine.connection import CONNECT_SECONDS, READ_SECONDS, connection
from chalicelib.gateways.object_store import object_store
from tests.conftest import Api, Time
from tests.engine.faults.conftest import (
    Change,
    create_product,
    create_site,
    import_page,
    loaf,
    raise_prices,
    upload_file,
)
from tests.fakes.dynamodb_faults import (
    ALWAYS,
    ENDPOINT,
    TRANSACTION,
    Fault,
    closed,
    conflict,
    crashed,
    failing,
    faulty,
    in_progress,
    refusal,
)
from tests.support.effort import matrix
from tests.transports.conftest import Records, log_records  # noqa: F401  a fixture

pytestmark = pytest.mark.store
GATEWAY_SECONDS = 28
"""Maximum seconds until a response, because API Gateway waits for 29 seconds."""
invalid = refusal("ValidationException", 400)


READS = [("GET", "/api/projects/list"), ("GET", "/api/products/list?q=loaf&sort=price")]


class TestHangingDatabase:
    """A database that accepts connections and never responds."""

    @pytest.fixture
    def waited_seconds(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """Total seconds spent waiting for the database and between attempts.

        No real time passes.
        """
        waits: list[float] = []
        monkeypatch.setattr(deadline, "monotonic", lambda: sum(waits))
        monkeypatch.setattr(retry, "sleep", waits.append)
        monkeypatch.setattr(retry.random, "uniform", lambda _low, high: high)
        return waits

    @contextmanager
    def hanging(self, waited: list[float], answered: int, *, seconds: float) -> Iterator[list[str]]:
        """Let requests hang after some have been answered, each for ``seconds``."""
        operations: list[str] = []

        def hang(model: Any, **_: Any) -> None:
            operations.append(model.name)
            if len(operations) > answered:
                waited.append(CONNECT_SECONDS + READ_SECONDS)
                raise ReadTimeoutError(endpoint_url=ENDPOINT)
            waited.append(seconds)

        events = connection().client.meta.events
        events.register_first("before-call.dynamodb", hang)
        try:
            yield operations
        finally:
            events.unregister("before-call.dynamodb", hang)

    @matrix(
        "change, slow",
        [create_product, import_page, raise_prices, upload_file],
        [0.0, READ_SECONDS - 0.1],
    )
    def test_a_write_is_answered_in_time_wherever_the_database_hangs(
        self, change: Callable[[Api], Change], slow: float, api: Api, waited_seconds: list[float]
    ) -> None:
        call = change(api)
        for answered in range(30):
            waited_seconds.clear()
            with self.hanging(waited_seconds, answered, seconds=slow) as operations:
                answer = call.send(key=f"order-{answered}")
            assert sum(waited_seconds) < GATEWAY_SECONDS
            if len(operations) <= answered:
                break
            assert answer.status == 503
        assert answer.status == 200

    @pytest.mark.parametrize("slow", [0.0, READ_SECONDS - 0.1], ids=["quick", "slow"])
    @pytest.mark.parametrize(("method", "path"), READS)
    def test_a_read_is_answered_in_time_wherever_the_database_hangs(
        self, method: str, path: str, slow: float, api: Api, waited_seconds: list[float]
    ) -> None:
        loaf(api)
        for answered in range(20):
            waited_seconds.clear()
            with self.hanging(waited_seconds, answered, seconds=slow) as operations:
                answer = api.call(method, path)
            assert sum(waited_seconds) < GATEWAY_SECONDS
            if len(operations) <= answered:
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
        call = change(api) if change else None
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
                    answer = call.send() if call else api.call("GET", "/api/projects/list")
            finally:
                events.unregister(event, redirect)
                session.close()
        assert (answer.status, answer.data["code"]) == (503, "unavailable")
        # The sum of the waits, not the real time: a slow machine waits less.
        assert sum(waited) < GATEWAY_SECONDS
        assert call is None or call.send().status == 200

    def test_an_object_that_may_be_in_use_is_kept_when_time_is_up(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        call, now = upload_file(api), [0.0]
        monkeypatch.setattr(deadline, "monotonic", lambda: now[0])

        def lost_at_the_end(http: Any, parsed: dict[str, Any]) -> None:
            now[0] += deadline.REQUEST_SECONDS
            closed(http, parsed)

        with faulty(TRANSACTION, lost_at_the_end, "after") as requests:
            assert call.send().status == 503
        assert len(requests) == 1
        file = call.send().data["file"]
        assert object_store().get(file["url"].removeprefix(f"{settings().public_url}/")) == b"hello"
        assert call.count_effects() == 1

    def test_threads_of_a_request_share_its_deadline(self) -> None:
        assert deadline.map_in_threads(lambda _: deadline.passed(), [1, 2], 2) == [False, False]
        with deadline.within(0):
            assert deadline.map_in_threads(lambda _: deadline.passed(), [1, 2], 2) == [True, True]

    def test_a_cache_is_skipped_when_no_time_is_left(self, database: None) -> None:
        with deadline.within(0):
            assert (
                cache.cached(
                    "kind", key="key", ttl=Time().now - Time().now, produce=lambda: "found"
                )
                == "found"
            )
            with pytest.raises(UnavailableError):
                SITES.find("w", record_id="s")


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
        log_records: Records,  # noqa: F811
    ) -> None:
        with faulty(api_call, fault, "before"):
            if way == "rest" or api_call == "GetItem":
                path = "/api/projects/create" if way == "rest" else "/api/mcp"
                assert api.call_refused("POST", path, {"title": "Hidden words"}).status == 503
            else:
                failed, answer = api.tool("svc_create_site", title="Hidden words")
                assert (failed, answer["httpStatus"]) == (True, 503)
        (line,) = [json.loads(line) for line in log_records.lines if '"message": "request"' in line]
        assert line["code"] == "unavailable"
        assert cause in line["cause"]
        assert "Error <" in line["cause"]
        assert api.token is not None
        assert not any(s in line for line in log_records.lines for s in ("Hidden words", api.token))

    def test_the_log_has_the_cause_of_repeated_conflicts(
        self,
        api: Api,
        log_records: Records,  # noqa: F811
    ) -> None:
        with failing(TRANSACTION, ALWAYS, conflict):
            api.call_refused("POST", "/api/projects/create", {"title": "Bakery"})
        causes = json.loads(log_records.lines[-1])["cause"]
        assert causes.startswith("UnavailableError < ConcurrentUpdateError < TransactWriteError")
        assert "(TransactionCanceledException)" in causes

    def test_the_log_has_no_entry_for_errors_of_the_caller(
        self,
        api: Api,
        log_records: Records,  # noqa: F811
    ) -> None:
        api.call_refused("POST", "/api/projects/create", {})
        assert "cause" not in json.loads(log_records.lines[-1])

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
        log_records: Records,  # noqa: F811
    ) -> None:
        call = change(api) if change else None
        with faulty(api_call, invalid, "before") as seen:
            answer = call.send() if call else api.call("GET", "/api/projects/list")
        assert (answer.status, answer.data["code"]) == (500, "internal_error")
        # The 500 itself is stored for the owner of the key, if its row can be written.
        assert len(seen) == (2 if api_call == "PutItem" else 1)
        assert "Retry-After" not in answer.headers
        assert any("ValidationException" in line for line in log_records.errors)
        assert call is None or call.send().status == 200
