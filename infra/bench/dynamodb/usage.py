"""Measurement of DynamoDB requests, waves and capacity units, using the events of botocore."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from threading import local
from time import monotonic, sleep
from typing import Any, NamedTuple

from chalicelib.engine.connection import connection
from infra.bench.dynamodb.write_units import Item, WriteMeter, WrittenRow

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
    rows: list[WrittenRow] = field(default_factory=list)
    """The rows that were written, if they are measured."""

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


@dataclass
class _Hooks:
    """The handlers of botocore's events during one measurement."""

    usage: DatabaseUsage
    latency: float
    measures_rows: bool
    thread: local = field(default_factory=local)

    def __post_init__(self) -> None:
        """Create the meter of rows."""
        self._meter = WriteMeter(self._read, self.usage.rows)

    def request_units(self, params: dict[str, Any], model: Any, **_: object) -> None:  # noqa: ANN401
        if self._is_measuring:
            return
        params["ReturnConsumedCapacity"] = "INDEXES"
        if self.measures_rows:
            self.thread.targets = self._meter.read_targets(model.name, params)

    def begin(self, **_: object) -> None:
        if not self._is_measuring:
            self.thread.start = monotonic()
            sleep(self.latency)

    def count(self, model: Any, parsed: Mapping[str, Any], **_: object) -> None:  # noqa: ANN401
        if self._is_measuring:
            return
        if self.measures_rows and "Error" not in parsed:
            self._meter.record(model.name, self.thread.targets)
        self.usage.requests.append(Request(model.name, self.thread.start, monotonic()))
        consumed = parsed.get("ConsumedCapacity") or []
        for entry in consumed if isinstance(consumed, list) else [consumed]:
            units = entry.get("CapacityUnits", 0)
            if model.name in _READS:
                self.usage.reads += units
            else:
                self.usage.writes += units

    @property
    def _is_measuring(self) -> bool:
        """Whether the request is one of the measurement itself."""
        return getattr(self.thread, "is_measuring", False)

    def _read(self, table: str, key: Item) -> Item | None:
        """Read a row by a request that is neither counted nor part of the running function."""
        read = partial(connection().client.get_item, TableName=table, Key=key, ConsistentRead=True)
        self.thread.is_measuring = True
        try:
            row: Item | None = Context().run(read).get("Item")
        finally:
            self.thread.is_measuring = False
        return row


@contextmanager
def metering(latency: float = 0.0, *, rows: bool = False) -> Iterator[DatabaseUsage]:
    """Count the requests of all threads during a ``with`` block.

    Each request is delayed by ``latency`` seconds. With some milliseconds, requests that are sent
    side by side overlap, so that ``waves`` does not depend on the machine. The units of DynamoDB
    Local are exact for reads and plain writes, but not for transactions. The units of moto are
    meaningless. With ``rows``, each written row is read before and after its request, which is not
    counted.
    """
    usage, events = DatabaseUsage(), connection().client.meta.events
    hooks = _Hooks(usage, latency, rows)
    registered = [
        *((f"provide-client-params.dynamodb.{name}", hooks.request_units) for name in _SUPPORTED),
        ("before-call.dynamodb", hooks.begin),
        ("after-call.dynamodb", hooks.count),
    ]
    for name, handler in registered:
        events.register(name, handler)
    try:
        yield usage
    finally:
        for name, handler in registered:
            events.unregister(name, handler)
