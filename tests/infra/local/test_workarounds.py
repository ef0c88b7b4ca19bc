"""Workarounds for differences between DynamoDB Local and DynamoDB."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from threading import Barrier
from time import monotonic, sleep
from types import SimpleNamespace

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from botocore.session import Session

from chalicelib.core import deadline, retry
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.engine import connection
from infra.local import workarounds

TRANSACTION = {
    "TransactItems": [{"Put": {"TableName": "control", "Item": {"pk": {"S": "a"}}}}],
}


class Database:
    """Answers the requests of a client that sends its transactions in turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails = False
        self.sent, self.most_at_once, self._open = 0, 0, 0
        self.client = Session().create_client(
            "dynamodb",
            region_name="eu-central-1",
            endpoint_url="http://nowhere",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=Config(retries={"total_max_attempts": 1}),
        )
        self.events = self.client.meta.events
        self.events.register("before-send.dynamodb", self._answer)
        monkeypatch.setattr(workarounds, "connection", lambda: SimpleNamespace(client=self.client))
        workarounds.apply(in_memory=True)

    def send(self, *_: object) -> None:
        self.client.transact_write_items(**TRANSACTION)

    def _answer(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        self._open += 1
        self.sent += 1
        self.most_at_once = max(self.most_at_once, self._open)
        for _turn in range(20):  # Other threads run, unless they wait.
            sleep(0)
        self._open -= 1
        if self.fails:
            raise EndpointConnectionError(endpoint_url="http://nowhere")
        raw = SimpleNamespace(stream=lambda: iter([b"{}"]))
        return AWSResponse(request.url, 200, {}, raw)


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    return Database(monkeypatch)


@pytest.mark.parametrize("fails", [False, True])
def test_a_process_sends_one_transaction_at_a_time(database: Database, *, fails: bool) -> None:
    database.fails = fails
    begin = Barrier(8)

    def send(_: int) -> None:
        begin.wait()
        with suppress(EndpointConnectionError):
            database.send()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(8)))
    assert (database.sent, database.most_at_once) == (8, 1)


@pytest.mark.parametrize("event", ["before-call", "after-call"])
@pytest.mark.parametrize("operation", ["", ".TransactWriteItems"])
def test_a_transaction_that_another_handler_ends_does_not_keep_the_turn(
    database: Database, event: str, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="http://nowhere")

    name = f"{event}.dynamodb{operation}"
    database.events.register(name, fail)
    with pytest.raises(EndpointConnectionError):
        database.send()
    database.events.unregister(name, fail)
    monkeypatch.setattr(workarounds, "TURN_SECONDS", 30.0)
    began = monotonic()
    database.send()
    assert monotonic() - began < 15


def test_a_transaction_that_another_handler_answers_ends_no_turn(database: Database) -> None:
    response = SimpleNamespace(status_code=200), {}
    database.send()
    database.events.register_first("before-call.dynamodb", answer := lambda **_: response)
    database.send()
    database.events.unregister("before-call.dynamodb", answer)
    assert database.sent == 1


def test_a_process_retries_one_contended_change_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name in (
        (retry, "turn"),
        (retry, "HIGH_CONTENTION_SECONDS"),
        (deadline, "REQUEST_SECONDS"),
        (connection, "READ_SECONDS"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(retry, "sleep", lambda _: None)
    workarounds.be_patient()
    begin, open_retries, highest_counts = Barrier(8), list[int](), list[int]()

    def change(number: int) -> int:
        attempts = count()

        def attempt() -> int:
            if next(attempts) == 0:
                begin.wait()
                raise ConcurrentUpdateError
            open_retries.append(number)
            for _ in range(20):  # Other threads run, unless they wait.
                sleep(0)
            highest_counts.append(len(open_retries))
            open_retries.remove(number)
            return number

        return retry.retry_on_conflict(attempt, retry.high_contention)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(change, range(8))) == list(range(8))
    assert highest_counts == [1] * 8
