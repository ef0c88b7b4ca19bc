"""The database of a simulation, with faults that the seed of a schedule chooses.

moto is below, in the same process. It carries out one request at a time, so all concurrency and all
faults come from here.
"""

import json
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from chalicelib.engine.connection import READ_SECONDS, connection
from infra.local.quick_moto import REGION, place_of
from tests.fakes.dynamodb_faults import ENDPOINT, refusal
from tests.simulation.schedule import Process, Schedule

WRITES = {"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete"}
"""Writes of one item, and their names in a transaction."""
TRANSACTION = "TransactWriteItems"
READS = {"GetItem", "Query", "BatchGetItem"}
STALE_SECONDS = 1.0
"""Seconds in which an eventually consistent read may miss a write."""
LATE_SECONDS = 20.0
"""Longest delivery of a request, in seconds, after its sender has given up."""
RATES = (0.0, 0.02, 0.1, 0.3)
"""Shares of requests that meet a fault. A seed has one share."""

Reply = tuple[Any, dict[str, Any]]


class Sent(NamedTuple):
    """A request that botocore has prepared."""

    model: Any
    params: dict[str, Any]
    context: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the operation of DynamoDB."""
        return str(self.model.name)

    @property
    def body(self) -> dict[str, Any]:
        """The request in DynamoDB's JSON."""
        body: dict[str, Any] = json.loads(self.params["body"])
        return body

    def having(self, body: dict[str, Any]) -> "Sent":
        """Return the same request with another body."""
        params = self.params | {"body": json.dumps(body).encode()}
        return self._replace(params=params)


class SimulatedDatabase:
    """Responds to the requests of a schedule's threads. Other threads reach moto directly."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.faults = Counter[str]()
        self.rate = schedule.random.choice(RATES)
        self._network = Process("network", can_die=False)
        self._written: list[tuple[float, list[tuple[Any, Any]]]] = []

    def answer(self, **event: Any) -> Reply | None:
        """Respond to a request in place of botocore (its event ``before-call``)."""
        task = self.schedule.task
        if task is None:
            return None
        request = Sent(event["model"], event["params"], event["context"])
        self.schedule.seam(f"{task.process.name} {request.name}")
        reply = self._carry_out(request)
        self.schedule.seam(f"{task.process.name} got its answer")
        return reply

    def _carry_out(self, request: Sent) -> Reply:
        random = self.schedule.random
        if random.random() >= self.rate:
            return self._send(request)
        fault = random.choice(self._possible(request))
        self.faults[fault.__name__.strip("_")] += 1
        self.schedule.trace.append(fault.__name__)
        return fault(request)

    def _possible(self, request: Sent) -> list[Callable[[Sent], Reply]]:
        faults = [self._throttled, self._failed, self._unreachable, self._answer_lost]
        if request.name in READS:
            faults += [] if _is_consistent(request) else [self._stale]
            faults += [] if request.name == "GetItem" else [self._torn]
            faults += [self._unprocessed] if request.name == "BatchGetItem" else []
        else:
            faults += [self._late, self._conflict]
        if self.schedule.task.process.can_die:  # type: ignore[union-attr]  # ``answer`` has a task
            faults += [self._dead_before, self._dead_after]
        return faults

    def _send(self, request: Sent) -> Reply:
        """Carry out a request, and remember the items that it replaces."""
        places = list(map(_place_of, _actions(request)))
        old_rows = [(place, place.rows.get(place.sk)) for place in places]
        if old_rows:
            self._written.append((self.schedule.now, old_rows))
        reply: Reply = connection().client._make_request(
            request.model, request.params, request.context
        )
        return reply

    def _throttled(self, _: Sent) -> Reply:
        return _error_reply("ProvisionedThroughputExceededException", 400)

    def _failed(self, _: Sent) -> Reply:
        return _error_reply("InternalServerError", 500)

    def _unreachable(self, _: Sent) -> Reply:
        raise EndpointConnectionError(endpoint_url=ENDPOINT)

    def _answer_lost(self, request: Sent) -> Reply:
        self._send(request)
        raise ConnectionClosedError(endpoint_url=ENDPOINT)

    def _late(self, request: Sent) -> Reply:
        """Carry out a request after its sender has given up, perhaps after its next attempt."""
        delay = self.schedule.random.uniform(0, LATE_SECONDS)

        def deliver() -> None:
            self.schedule.pause(delay)
            self._send(request)

        self.schedule.start(self._network, deliver)
        self.schedule.pause(READ_SECONDS)
        raise ReadTimeoutError(endpoint_url=ENDPOINT)

    def _conflict(self, request: Sent) -> Reply:
        if request.name != TRANSACTION:
            return _error_reply("TransactionConflictException", 400)
        http, parsed = _error_reply("TransactionCanceledException", 400)
        reasons = [{"Code": "None"} for _ in request.body["TransactItems"]]
        self.schedule.random.choice(reasons)["Code"] = "TransactionConflict"
        return http, parsed | {"CancellationReasons": reasons}

    def _dead_before(self, _: Sent) -> Reply:
        self.schedule.die()
        raise AssertionError("unreachable")

    def _dead_after(self, request: Sent) -> Reply:
        self._send(request)
        return self._dead_before(request)

    def _stale(self, request: Sent) -> Reply:
        """Respond to a read as it was before some of the writes of the last second."""
        recent = [write for at, write in self._written if at > self.schedule.now - STALE_SECONDS]
        missed = recent[len(recent) - self.schedule.random.randint(0, len(recent)) :]
        undone = [pair for write in reversed(missed) for pair in reversed(write)]
        redo = [(place, _exchange(place, item)) for place, item in undone]
        try:
            return self._send(request)
        finally:
            for place, item in reversed(redo):
                _exchange(place, item)

    def _torn(self, request: Sent) -> Reply:
        """Respond to a read of many items in two parts, between which other threads may write."""
        if request.name == "Query":
            return self._torn_query(request)
        body = request.body
        parts: list[dict[str, Any]] = [{}, {}]
        for table, table_request in body["RequestItems"].items():
            for key in table_request["Keys"]:
                part = self.schedule.random.choice(parts)
                part.setdefault(table, table_request | {"Keys": []})["Keys"].append(key)
        replies = []
        for part in filter(None, parts):
            replies.append(self._send(request.having(body | {"RequestItems": part})))
            self.schedule.seam("between two parts of a read")
        http, parsed = replies[-1]
        for _, earlier in replies[:-1]:
            for table, items in earlier.get("Responses", {}).items():
                parsed["Responses"].setdefault(table, []).extend(items)
        return http, parsed

    def _torn_query(self, request: Sent) -> Reply:
        _, first = self._send(request)
        self.schedule.seam("between two parts of a read")
        http, second = self._send(request)
        items = first.get("Items", [])
        if len(items) < 2 or any("sk" not in item for item in items):
            return http, second
        pivot = self.schedule.random.choice(items)["sk"]["S"]
        forward = request.body.get("ScanIndexForward", True)
        early = [i for i in items if (i["sk"]["S"] <= pivot) == forward or i["sk"]["S"] == pivot]
        seen = {item["sk"]["S"] for item in early}
        remaining_rows = [
            item
            for item in second["Items"]
            if item["sk"]["S"] not in seen and (item["sk"]["S"] > pivot) == forward
        ]
        merged = [*early, *remaining_rows]
        return http, second | {"Items": merged, "Count": len(merged)}

    def _unprocessed(self, request: Sent) -> Reply:
        """Leave some keys of a batch unread."""
        body, unprocessed, read = request.body, dict[str, Any](), dict[str, Any]()
        for table, table_request in body["RequestItems"].items():
            keys = table_request["Keys"]
            cut = self.schedule.random.randint(0, len(keys))
            for part, part_keys in ((read, keys[:cut]), (unprocessed, keys[cut:])):
                if part_keys:
                    part[table] = table_request | {"Keys": part_keys}
        if not read:
            return _error_reply("ProvisionedThroughputExceededException", 400)
        http, parsed = self._send(request.having(body | {"RequestItems": read}))
        return http, parsed | {"UnprocessedKeys": unprocessed}


def _is_consistent(request: Sent) -> bool:
    body = request.body
    parts = body["RequestItems"].values() if request.name == "BatchGetItem" else [body]
    return any(part.get("ConsistentRead") for part in parts)


def _actions(request: Sent) -> list[tuple[str, dict[str, Any]]]:
    """Return the writes of a request as actions of a transaction."""
    if request.name == TRANSACTION:
        return [pair for item in request.body["TransactItems"] for pair in item.items()]
    return [(WRITES[request.name], request.body)] if request.name in WRITES else []


def _place_of(action: tuple[str, dict[str, Any]]) -> Any:
    place = place_of(dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION], *action)
    assert place is not None
    return place


def _exchange(place: Any, item: Any) -> Any:
    """Put an item, or None, in a place, and return what was there."""
    there = place.rows.pop(place.sk, None)
    if item is not None:
        place.rows[place.sk] = item
    return there


def _error_reply(code: str, status: int) -> Reply:
    http, parsed = SimpleNamespace(status_code=status), dict[str, Any]()
    refusal(code, status)(http, parsed)
    return http, parsed
