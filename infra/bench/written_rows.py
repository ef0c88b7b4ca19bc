"""Table of the rows that operations write, with their bytes, units, readers and cost.

The contract tests record the rows in ``docs/written_rows.json``, together with the counts of
``infra.bench.round_trips``, which records both.
"""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from infra.bench import round_trips
from infra.local import document_tables

RECORDED = round_trips.ROOT / "docs" / "written_rows.json"
DOLLARS_A_MILLION = 0.7625
"""Price of a million write units on demand in eu-central-1, which the table assumes."""
IN_DETAIL = (
    "create_product",
    "create_booking",
    "create_public_booking",
    "submit_form",
    "chat_stream",
    "delete_site",
    "delete_category",
    "delete_folder",
)
READERS = {
    "A#…": "every change of the balance",
    "A#…#ENTRY": "the balance's statement, settlements",
    "A#…#HOLD": "the settlement of the answer, or its job",
    "AUDIT": "the audit log, and repeated transactions",
    "BOOKING#HISTORY": "the history of a booking",
    "BOOKING#VISITOR": "the share of a visitor's open bookings",
    "BUDGET": "the limits of a bot",
    "CALENDAR#…": "free slots, and each booking of the day",
    "CATEGORY": "the list of categories, the condition of each new item",
    "CLIENT": "the list of clients, and the match of contacts",
    "DIALOG#…": "the messages of a dialog, and the bot's memory",
    "IDEMPOTENCY#shard": "repeated calls, and erasures",
    "LEAD#SUBMITTED": "a lead in full",
    "METRICS#bot:…": "statistics of a bot",
    "METRICS#crm": "statistics of leads",
    "METRICS#crm:form:…": "statistics of a form's leads",
    "METRICS#crm:site:…": "statistics of a site's leads",
    "METRICS#spending": "the spending of bots",
    "METRICS#workspace": "the overview",
    "RESOURCE": "slots, lists, and the condition of each booking",
    "SCHEDULE": "slots, and the condition of each booking",
    "SERVICE": "lists, and the condition of each booking",
    "SESSION#…": "the next message of a dialog",
    "SITE": "lists, pages and visitors",
    "USAGE": "the limit of stored bytes",
    "VISITOR-SPENDING#…": "the share of a visitor in a bot's limits",
}
BY_PREFIX = {
    "CLAIM#": "callers without a workspace, and other records with the same name",
    "COUNT#": "lists: totals, and the choice of the plan",
    "JOBS ": "the runner of jobs",
    "LIMIT#": "the next call that the limit counts",
    "LOCK": "changes that must not happen at the same time",
}
BY_PART = {
    "#BY#": "searches by the value, and duplicates",
    "#TRASH": "restores within 30 days, and their end",
    "_id#…": "lists and counts of the value",
}


def reader(kind: str) -> str:
    """Return who reads the rows of a kind."""
    if exact := READERS.get(kind):
        return exact
    for prefix, readers in BY_PREFIX.items():
        if kind.startswith(prefix):
            return readers
    for part, readers in BY_PART.items():
        if part in kind:
            return readers
    return "by id, and lists"


TABLE = "write units by operation"
"""The name of the table, which ``make update`` writes, too."""
ABOUT = [
    "## Write units by operation",
    "",
    "Units by the rules of AWS, computed from the rows before and after each request: one",
    "for each KB of the larger of both, and as much for each index entry that changes. If",
    "its key changes, an entry is deleted and another is written. In a transaction all of",
    "this counts twice, and so do condition checks. DynamoDB Local counts other units. A",
    f"million units are assumed to cost ${DOLLARS_A_MILLION} (on demand, eu-central-1).",
    "The rows of later jobs are not included.",
    "",
]


def section() -> str:
    """Return this section of the page, from what the sweep of ``round-trips`` recorded."""
    return "\n".join([*ABOUT, document_tables.table(TABLE, lines()), ""])


def lines() -> Iterator[str]:
    """Yield the lines of the tables, as the rows are recorded."""
    rows = json.loads(RECORDED.read_text())
    counts = json.loads(round_trips.RECORDED.read_text())
    yield "| operation | rows | units | on DynamoDB Local | dollars a million calls |"
    yield "|---|---:|---:|---:|---:|"
    for name in sorted(rows, key=lambda name: (-counts[name]["awsWriteUnits"], name)):
        yield _line(name, len(rows[name]), counts[name])
    for name in IN_DETAIL:
        yield from _detail(name, rows[name])


def _line(name: str, rows: int, counts: dict[str, Any]) -> str:
    units, local = counts["awsWriteUnits"], round_trips.local(counts, "writeUnits")
    return f"| {name} | {rows} | {units} | {local} | {units * DOLLARS_A_MILLION:.2f} |"


def _detail(name: str, rows: list[list[Any]]) -> Iterator[str]:
    """Yield the table of an operation's rows, with one line for equal rows."""
    yield ""
    yield f"### Rows of {name}"
    yield ""
    yield "| row | write | bytes | index entries | units | read by |"
    yield "|---|---|---:|---|---:|---|"
    for row, group in groupby(sorted(rows, key=lambda row: (-row[5], *map(str, row)))):
        _, kind, action, size, indexes, units = row
        number = len(list(group))
        times = f"{number} x " if number > 1 else ""
        entries = ", ".join(
            f"{index}{f' x {count}' if count > 1 else ''}"
            for index, count in sorted(indexes.items())
        )
        yield (
            f"| {times}`{kind}` | {action} | {size} | {entries} | {number * units} "
            f"| {reader(kind)} |"
        )
