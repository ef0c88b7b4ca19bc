"""Partitions at DynamoDB's limit of 10 GB are refused in time, and sizes are logged."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest
from botocore.exceptions import ClientError

from chalicelib.core.errors import StorageLimitError
from chalicelib.engine import transactions
from chalicelib.engine.connection import connection, reaching
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.transactions import MEASURE_EACH, PARTITION_SIZE
from tests.conftest import Api
from tests.engine.faults.conftest import (
    Change,
    create_product,
    create_site,
    import_page,
    raise_prices,
    upload_file,
)
from tests.fakes.dynamodb_faults import ALWAYS, TRANSACTION, closed, failing, faulty, refusal

pytestmark = pytest.mark.store
ALONE = "ItemCollectionSizeLimitExceededException"


def measured() -> UUID:
    """Return a random token of a transaction that asks for sizes."""
    return UUID(int=uuid4().int // MEASURE_EACH * MEASURE_EACH)


def not_measured() -> UUID:
    return UUID(int=measured().int + 1)


def full(*others: str) -> Callable[[], ClientError]:
    """Return the error of a transaction with a full partition, and with other reasons."""
    reasons = ["None", "ItemCollectionSizeLimitExceeded", *others]
    return lambda: ClientError(
        {
            "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
            "CancellationReasons": [{"Code": reason} for reason in reasons],
        },
        TRANSACTION,
    )


@pytest.mark.parametrize("change", [create_site, create_product, upload_file])
@pytest.mark.parametrize("key", ["order-1", None])
@pytest.mark.parametrize("others", [(), ("TransactionConflict",), ("ThrottlingError",)], ids=str)
def test_a_full_partition_is_a_conflict_that_is_not_retried(
    change: Callable[[Api], Change], key: str | None, others: tuple[str, ...], api: Api
) -> None:
    call = change(api)
    with failing(TRANSACTION, ALWAYS, full(*others)) as requests:
        answer = call.send(key)
    assert (answer.status, answer.data["code"]) == (409, "storage_limit")
    assert len(requests) == 1
    assert call.count_effects() == 0
    assert call.send(key).status == 200, "the key is free once there is room"
    assert call.count_effects() == 1


def test_a_transaction_refused_by_itself_for_a_full_partition_is_a_conflict(api: Api) -> None:
    call = create_site(api)
    with faulty(TRANSACTION, refusal(ALONE, 400), "before") as requests:
        answer = call.send()
    assert (answer.status, answer.data["code"], len(requests)) == (409, "storage_limit", 1)


def test_an_import_into_a_full_partition_can_be_repeated_with_its_key(api: Api) -> None:
    call = import_page(api)
    with failing(TRANSACTION, ALWAYS, full()):
        assert call.send().data["code"] == "storage_limit"
    assert call.send().status == 200
    assert call.count_effects() == 1


def test_products_of_a_bulk_change_that_cannot_grow_fail_one_by_one(api: Api) -> None:
    call = raise_prices(api)
    with failing(TRANSACTION, 1, full()):
        answer = call.send()
    assert answer.data["summary"] == {"ok": 0, "failed": 1}
    assert "10 GB" in answer.data["results"][0]["message"]
    assert call.count_effects() == 0


def test_a_full_partition_found_after_a_lost_answer_means_that_nothing_was_written(
    api: Api,
) -> None:
    """DynamoDB repeats its response to a known token, so a refused transaction was not done."""
    call, full_error = create_site(api), full()
    with faulty(TRANSACTION, closed, "before", 1) as requests:

        def then_full(**_: Any) -> None:
            if len(requests) == 2:
                raise full_error()

        events = connection().client.meta.events
        events.register_last(f"before-call.dynamodb.{TRANSACTION}", then_full)
        try:
            answer = call.send()
        finally:
            events.unregister(f"before-call.dynamodb.{TRANSACTION}", then_full)
    assert (answer.data["code"], len(requests)) == ("storage_limit", 2)
    assert call.count_effects() == 0


def test_a_single_write_to_a_full_partition_is_a_conflict_that_is_not_retried(
    database: None,
) -> None:
    with (
        faulty("PutItem", refusal(ALONE, 400), "before") as requests,
        pytest.raises(StorageLimitError),
        reaching(),
    ):
        ContentRow("W#w1#SITE", "a").save()
    assert len(requests) == 1


@contextmanager
def sizes(metrics: dict[str, Any] | None) -> Iterator[list[str | None]]:
    """Let the responses to transactions have sizes. Yields the metrics that each one requests."""
    requested: list[str | None] = []

    def read_parameters(params: dict[str, Any], **_: Any) -> None:
        requested.append(params.get("ReturnItemCollectionMetrics"))

    def answer(parsed: dict[str, Any], **_: Any) -> None:
        parsed.pop("ItemCollectionMetrics", None)
        if metrics is not None and requested[-1]:
            parsed["ItemCollectionMetrics"] = metrics

    events = connection().client.meta.events
    events.register_first(f"provide-client-params.dynamodb.{TRANSACTION}", read_parameters)
    events.register_last(f"after-call.dynamodb.{TRANSACTION}", answer)
    try:
        yield requested
    finally:
        events.unregister(f"provide-client-params.dynamodb.{TRANSACTION}", read_parameters)
        events.unregister(f"after-call.dynamodb.{TRANSACTION}", answer)


def collection(partition: str, low: float, high: float) -> dict[str, Any]:
    key = {"pk": {"S": partition}}
    return {"ItemCollectionKey": key, "SizeEstimateRangeGB": [low, high]}


class TestSizes:
    @pytest.fixture
    def logged_sizes(self, caplog: pytest.LogCaptureFixture) -> Callable[[], list[tuple[Any, Any]]]:
        caplog.set_level(logging.INFO, transactions.__name__)
        return lambda: [
            (vars(line)["gigabytes"], vars(line)["partition"])
            for line in caplog.records
            if line.message == PARTITION_SIZE
        ]

    def test_one_transaction_in_a_hundred_asks_for_sizes(self) -> None:
        asking = [number for number in range(1000) if transactions._is_measured(UUID(int=number))]
        assert asking == list(range(0, 1000, MEASURE_EACH))

    def test_the_largest_partition_of_a_measured_transaction_is_logged(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, logged_sizes: Callable[[], Any]
    ) -> None:
        call = create_site(api)
        monkeypatch.setattr(transactions, "uuid4", measured)
        collections = [collection("W#a#SITE", 0, 1), collection("W#a#LEAD", 4, 5)]
        with sizes({"workspace-test-content": collections}) as requested:
            assert call.send().status == 200
        assert requested == ["SIZE"]
        assert logged_sizes() == [(5, "W#a#LEAD")]

    def test_other_transactions_do_not_ask_and_log_nothing(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, logged_sizes: Callable[[], Any]
    ) -> None:
        call = create_site(api)
        monkeypatch.setattr(transactions, "uuid4", not_measured)
        with sizes({"workspace-test-content": [collection("W#a#SITE", 0, 1)]}) as requested:
            assert call.send().status == 200
        assert (requested, logged_sizes()) == ([None], [])

    @pytest.mark.parametrize("metrics", [None, {}, {"workspace-test-audit": []}], ids=str)
    def test_an_answer_without_sizes_is_accepted(
        self,
        metrics: dict[str, Any] | None,
        api: Api,
        monkeypatch: pytest.MonkeyPatch,
        logged_sizes: Callable[[], Any],
    ) -> None:
        call = create_site(api)
        monkeypatch.setattr(transactions, "uuid4", measured)
        with sizes(metrics) as requested:
            assert call.send(key=None).status == 200  # a key would replay the response
        assert (requested, logged_sizes()) == (["SIZE"], [])
