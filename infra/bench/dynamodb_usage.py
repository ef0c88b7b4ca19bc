"""Measurement of DynamoDB round trips and capacity units, using the events of botocore."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

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


@dataclass
class DatabaseUsage:
    """The operations sent to DynamoDB, in order, and their capacity units."""

    calls: list[str] = field(default_factory=list)
    reads: float = 0.0
    writes: float = 0.0

    @property
    def units(self) -> float:
        """Read and write units together."""
        return self.reads + self.writes

    @property
    def round_trips(self) -> int:
        """Number of requests sent to DynamoDB."""
        return len(self.calls)


@contextmanager
def metering() -> Iterator[DatabaseUsage]:
    """Count the requests of all threads during a ``with`` block.

    The units of DynamoDB Local are exact for reads and plain writes, but not for transactions. The
    units of moto are meaningless.
    """
    usage, events = DatabaseUsage(), connection().client.meta.events

    def request_units(params: dict[str, Any], **_: object) -> None:
        params["ReturnConsumedCapacity"] = "INDEXES"

    def count(model: Any, parsed: Mapping[str, Any], **_: object) -> None:  # noqa: ANN401
        usage.calls.append(model.name)
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
    events.register("after-call.dynamodb", count)
    try:
        yield usage
    finally:
        for name in names:
            events.unregister(name, request_units)
        events.unregister("after-call.dynamodb", count)
