"""Measurement of DynamoDB requests, waves and capacity units, using the events of botocore."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from time import monotonic, sleep
from typing import Any, NamedTuple

from chalicelib.engine.connection import connection

_SUPPORTED = (
    "BatchGetItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "TransactWriteItems",
    "UpdateItem",
)
_READS = frozenset({"BatchGetItem", "GetItem", "Query"})


class Request(NamedTuple):
    """A request to DynamoDB, with its start and end by a monotonic clock."""

    operation: str
    start: float
    end: float


@dataclass
class DatabaseUsage:
    """The requests sent to DynamoDB, in the order of their ends, and their capacity units."""

    requests: list[Request] = field(default_factory=list)
    reads: float = 0.0
    writes: float = 0.0

    @property
    def calls(self) -> list[str]:
        """The operations of the requests."""
        return [request.operation for request in self.requests]

    @property
    def units(self) -> float:
        """Read and write units together."""
        return self.reads + self.writes

    @property
    def round_trips(self) -> int:
        """Number of requests sent to DynamoDB."""
        return len(self.requests)

    @property
    def waves(self) -> int:
        """Length of the longest chain of requests in which each started after the end of another.

        Requests that are sent side by side belong to one wave. So the waves, and not the requests,
        decide how long a call waits for the database.
        """
        depths: list[tuple[float, int]] = []
        for request in sorted(self.requests, key=lambda request: request.start):
            earlier_depths = [depth for end, depth in depths if end <= request.start]
            depths.append((request.end, max(earlier_depths, default=0) + 1))
        return max((depth for _, depth in depths), default=0)


@contextmanager
def metering(latency: float = 0.0) -> Iterator[DatabaseUsage]:
    """Count the requests of all threads during a ``with`` block.

    Each request is delayed by ``latency`` seconds. With some milliseconds, requests that are sent
    side by side overlap, so that ``waves`` does not depend on the machine. The units of DynamoDB
    Local are exact for reads and plain writes, but not for transactions. The units of moto are
    meaningless.
    """
    usage, events, thread = DatabaseUsage(), connection().client.meta.events, local()

    def request_units(params: dict[str, Any], **_: object) -> None:
        params["ReturnConsumedCapacity"] = "INDEXES"

    def begin(**_: object) -> None:
        thread.start = monotonic()
        sleep(latency)

    def count(model: Any, parsed: Mapping[str, Any], **_: object) -> None:  # noqa: ANN401
        usage.requests.append(Request(model.name, thread.start, monotonic()))
        consumed = parsed.get("ConsumedCapacity") or []
        for entry in consumed if isinstance(consumed, list) else [consumed]:
            units = entry.get("CapacityUnits", 0)
            if model.name in _READS:
                usage.reads += units
            else:
                usage.writes += units

    names = [f"provide-client-params.dynamodb.{name}" for name in _SUPPORTED]
    for name in names:
        events.register(name, request_units)
    events.register("before-call.dynamodb", begin)
    events.register("after-call.dynamodb", count)
    try:
        yield usage
    finally:
        for name in names:
            events.unregister(name, request_units)
        events.unregister("before-call.dynamodb", begin)
        events.unregister("after-call.dynamodb", count)
