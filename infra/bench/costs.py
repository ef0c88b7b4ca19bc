"""What a month on AWS costs, from measured units and round trips and from listed prices.

Prices are those of us-east-1 in November 2026 as far as public listings say, without free tiers:
look them up before you rely on them. What is assumed rather than measured says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from chalicelib.core.operations import load_all
from infra.bench import database
from infra.bench.dynamodb_usage import metering
from infra.bench.leads import call, make_workspace
from infra.deploy.stacks import alarms as alarms_stack

PRODUCTS = 1_000
SCALES = (1_000, 100_000, 10_000_000)
READ_UNIT, WRITE_UNIT = 0.125e-6, 0.625e-6
"""DynamoDB on demand, dollars a request unit."""
REQUEST = 3.50e-6 + 0.20e-6 + 1.00e-6 + 0.60e-6 + 0.05 * 5.00e-6
"""API Gateway (REST), Lambda, CloudFront (HTTPS), WAF, and X-Ray, which keeps 5 % (a second's first
request besides, which is not counted), dollars a request."""
GB_SECOND = 1.66667e-5
"""Lambda, x86, dollars."""
MEMORY_GB = 1.0
TRIP_SECONDS = 0.005
"""Of a request to DynamoDB in the same region: assumed."""
OWN_SECONDS = 0.004
"""Of our own code and Lambda's share of a processor, a warm request: assumed."""
LOG_GB, LOG_BYTES = 0.50, 600
SENT_GB, SENT_BYTES = 0.085, 4_000
ALARM_METRIC, CUSTOM_METRIC = 0.10, 0.30
"""Dollars a month: of each metric that an alarm reads, and of each that is made of logs."""


def _metrics() -> tuple[int, int]:
    """Return how many metrics the alarms read, and how many are made of logs."""
    resources = alarms_stack.template()["Resources"].values()
    alarms = [r["Properties"] for r in resources if r["Type"] == "AWS::CloudWatch::Alarm"]
    filters = [r["Properties"] for r in resources if r["Type"] == "AWS::Logs::MetricFilter"]
    read = sum("MetricStat" in metric for alarm in alarms for metric in alarm["Metrics"])
    made = {m["MetricName"] for each in filters for m in each["MetricTransformations"]}
    return read, len(made)


_READ, _MADE = _metrics()
FIXED = {
    "WAF: a list and five rules": 5 + 5 * 1.0,
    "secrets": 2 * 0.40,
    f"alarms, which read {_READ} metrics": _READ * ALARM_METRIC,
    f"{_MADE} metrics made of logs": _MADE * CUSTOM_METRIC,
    "jobs, every minute": 43_200 * (0.2e-6 + 0.06 * GB_SECOND + 8 * 0.5 * READ_UNIT),
}
"""Dollars a month, whatever comes in."""


class Measured(NamedTuple):
    """A call, its share of the requests, and what it asks of the database, the key included."""

    name: str
    share: float
    reads: float
    writes: float
    trips: int

    @property
    def dollars(self) -> float:
        """What one costs."""
        seconds = self.trips * TRIP_SECONDS + OWN_SECONDS
        database = self.reads * READ_UNIT + self.writes * WRITE_UNIT
        traffic = LOG_BYTES / 1e9 * LOG_GB + SENT_BYTES / 1e9 * SENT_GB
        return REQUEST + seconds * MEMORY_GB * GB_SECOND + database + traffic


@dataclass
class _Mix:
    """The calls of a workspace that programs and an AI client work with."""

    workspace: str

    def calls(self) -> Iterator[Measured]:
        made = call(self.workspace, "create_product", {"name": "One of many", "price": 100})
        product = {"id": made["product"]["id"]}
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
        # The key is one unit and one request more.
        return Measured(name, share, usage.reads + 1, usage.writes, usage.round_trips + 1)


ABOUT = [
    "## What a month costs",
    "",
    "A mix of calls of one workspace with 1,000 products: units and round trips as measured,",
    "the key included. DynamoDB Local counts up to twice the write units of a transaction, so",
    "these are upper bounds. Dollars by listed prices of us-east-1 without free tiers, with 5 ms",
    "a round trip, 4 ms of our own, 1 GB of memory, 600 bytes of log and 4 KB of answer assumed.",
    "What models cost for bots' answers comes on top, and 0.25 dollars for a stored GB.",
    "",
    "| call | share | read units | write units | round trips | dollars a million |",
    "|---|---|---|---|---|---|",
]


def section() -> str:
    """Measure, and return the page's section."""
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
        "| requests a month | by use | fixed | together |",
        "|---|---|---|---|",
        *(
            f"| {n:,} | ${n * each:,.2f} | ${fixed:,.2f} | ${n * each + fixed:,.2f} |"
            for n in SCALES
        ),
    ]
    kept = [f"Fixed: {', '.join(f'{name} ${price:,.2f}' for name, price in FIXED.items())}."]
    return "\n".join([*ABOUT, *lines, "", *totals, "", *kept, ""])
