"""Cost of a month on AWS, from measured units and round trips and from list prices.

The prices are public list prices of us-east-1 in November 2026, without free tiers. Check them
before you rely on them. Values that are assumed and not measured are marked as such.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from chalicelib.core.operations import load_all
from infra.bench.dynamodb import database
from infra.bench.dynamodb.usage import metering
from infra.bench.leads import call, make_workspace
from infra.deploy.stacks import alarms as alarms_stack

PRODUCTS = 1_000
SCALES = (1_000, 100_000, 10_000_000)
READ_UNIT, WRITE_UNIT = 0.125e-6, 0.625e-6
"""DynamoDB on demand, in dollars per request unit."""
REQUEST = 3.50e-6 + 0.20e-6 + 1.00e-6 + 0.60e-6 + 0.05 * 5.00e-6
"""Dollars per request: API Gateway (REST), Lambda, CloudFront (HTTPS), WAF, and X-Ray at 5 %.

X-Ray also records the first request of each second, which is not included.
"""
GB_SECOND = 1.66667e-5
"""Lambda on x86, in dollars."""
MEMORY_GB = 1.0
TRIP_SECONDS = 0.005
"""Duration of a request to DynamoDB in the same region. Assumed, not measured."""
OWN_SECONDS = 0.004
"""Duration of our own code in a warm request. Assumed, not measured."""
LOG_GB, LOG_BYTES = 0.50, 600
SENT_GB, SENT_BYTES = 0.085, 4_000
ALARM_METRIC, CUSTOM_METRIC = 0.10, 0.30
"""Dollars a month for each metric that an alarm reads, and for each metric made from logs."""


def _metrics() -> tuple[int, int]:
    """Return the number of metrics that alarms read, and of metrics made from logs."""
    resources = alarms_stack.template()["Resources"].values()
    alarms = [r["Properties"] for r in resources if r["Type"] == "AWS::CloudWatch::Alarm"]
    filters = [r["Properties"] for r in resources if r["Type"] == "AWS::Logs::MetricFilter"]
    read = sum("MetricStat" in metric for alarm in alarms for metric in alarm["Metrics"])
    from_logs = {m["MetricName"] for each in filters for m in each["MetricTransformations"]}
    return read, len(from_logs)


_READ, _FROM_LOGS = _metrics()
FIXED = {
    "WAF: a list and five rules": 5 + 5 * 1.0,
    "secrets": 2 * 0.40,
    f"alarms, which read {_READ} metrics": _READ * ALARM_METRIC,
    f"{_FROM_LOGS} metrics made from logs": _FROM_LOGS * CUSTOM_METRIC,
    "jobs, every minute": 43_200 * (0.2e-6 + 0.06 * 1.73 * GB_SECOND + 8 * 0.5 * READ_UNIT),
}
"""Dollars a month, independent of the number of requests."""


class Measured(NamedTuple):
    """A call, its share of all requests, and its database usage, including the key's look-up."""

    name: str
    share: float
    reads: float
    writes: float
    trips: int

    @property
    def dollars(self) -> float:
        """Cost of one call."""
        seconds = self.trips * TRIP_SECONDS + OWN_SECONDS
        database = self.reads * READ_UNIT + self.writes * WRITE_UNIT
        traffic = LOG_BYTES / 1e9 * LOG_GB + SENT_BYTES / 1e9 * SENT_GB
        return REQUEST + seconds * MEMORY_GB * GB_SECOND + database + traffic


@dataclass
class _Mix:
    """The calls of a workspace that is used by programs and by an AI client."""

    workspace: str

    def calls(self) -> Iterator[Measured]:
        created = call(self.workspace, "create_product", {"name": "One of many", "price": 100})
        product = {"id": created["product"]["id"]}
        yield Measured("`tools/list`", 0.10, 1, 0, 1)
        yield self._measure("read a product", 0.40, "get_product", product)
        yield self._measure("list products", 0.30, "list_products", {})
        changed = {**product, "price": 200}
        yield self._measure("change a product", 0.15, "update_product", changed)
        another = {"name": "Another", "price": 100}
        yield self._measure("create a product", 0.05, "create_product", another)

    def _measure(self, name: str, share: float, operation: str, args: dict[str, Any]) -> Measured:
        with metering() as usage:
            call(self.workspace, operation, args)
        # The look-up of the key adds one unit and one request.
        return Measured(name, share, usage.reads + 1, usage.writes, usage.round_trips + 1)


ABOUT = [
    "## Cost of a month",
    "",
    "A mix of calls in one workspace with 1,000 products. Units and round trips are measured and",
    "include the look-up of the key. DynamoDB Local counts up to twice the write units of a",
    "transaction, so the units are upper bounds. Dollars are computed from list prices of",
    "us-east-1 without free tiers. The computation assumes 5 ms per round trip, 4 ms of our own",
    "code, 1 GB of memory, 600 bytes of log and 4 KB of answer. The tokens of bots' answers and",
    "0.25 dollars for each stored GB are not included.",
    "",
    "| call | share | read units | write units | round trips | dollars a million |",
    "|---|---|---|---|---|---|",
]


def section() -> str:
    """Measure and return this section of the page."""
    load_all()
    with database.seeded({"products": (PRODUCTS,)}, in_memory=True):
        workspace = database.workspace(PRODUCTS)
        make_workspace(workspace)
        measured = list(_Mix(workspace).calls())
    lines = [
        f"| {m.name} | {m.share:.0%} | {m.reads:,.0f} | {m.writes:,.0f} | {m.trips} "
        f"| {m.dollars * 1e6:,.2f} |"
        for m in measured
    ]
    each = sum(m.share * m.dollars for m in measured)
    fixed = sum(FIXED.values())
    totals = [
        "| requests a month | usage | fixed | total |",
        "|---|---|---|---|",
        *(
            f"| {n:,} | ${n * each:,.2f} | ${fixed:,.2f} | ${n * each + fixed:,.2f} |"
            for n in SCALES
        ),
    ]
    parts = ", ".join(f"{name} ${price:,.2f}" for name, price in FIXED.items())
    return "\n".join([*ABOUT, *lines, "", *totals, "", f"Fixed: {parts}.", ""])
