"""docs/scale.md has the constants of the code, and the recorded counts of rows and requests."""

import json
import re
from collections import Counter

from chalicelib.core.deadline import REQUEST_SECONDS
from chalicelib.domains.chat.flows.accept_message import MESSAGES_OF_BOT
from chalicelib.domains.leads.flows.submissions import FORM_SUBMISSIONS_PER_DAY
from chalicelib.engine import jobs, metrics
from infra.deploy.aws import gateway
from infra.deploy.stage_config import JOB_RUNS
from tests.docs.samples import DOCS

PAGE = (DOCS / "scale.md").read_text()
COUNTS = json.loads((DOCS / "request_counts.json").read_text())
ROWS = json.loads((DOCS / "written_rows.json").read_text())
WRITE, READ = 0.625, 0.125
"""Dollars a million units, on demand in us-east-1."""


def number(pattern: str) -> float:
    """Return the only number of the page that a pattern with one group finds."""
    (found,) = re.findall(pattern, PAGE)
    return float(found.replace(",", ""))


def test_the_units_of_a_chat_are_the_recorded_ones() -> None:
    chat = COUNTS["chat_stream"]
    assert number(r"takes (\d+) write units and \d+ read units") == chat["awsWriteUnits"]
    assert number(r"takes \d+ write units and (\d+) read units") == chat["readUnits"]
    by_table: Counter[str] = Counter()
    for table, *_, units in ROWS["chat_stream"]:
        by_table[table] += units
    assert number(r"`ledger` \| ([\d,]+) write units") == 1000 * by_table["ledger"]
    others = re.findall(r"`conversations` \| ([\d,]+), ([\d,]+) and ([\d,]+) \|", PAGE)
    units = [1000 * by_table[name] for name in ("content", "control", "conversations")]
    assert others == [tuple(f"{of_table:,}" for of_table in units)]


def test_the_job_queue_is_full_where_the_page_says() -> None:
    """A job that makes knowledge anew is not part of every chat."""
    of_chat = sum(
        units
        for _, kind, *_, units in ROWS["chat_stream"]
        if kind.startswith("JOBS") and kind != "JOBS knowledge-stale"
    )
    assert number(r"4 shards, (\d+) units a chat") == of_chat
    assert number(r"\| job queue \| (\d+) chats") == jobs.SHARDS * 1000 // of_chat // 50 * 50


def test_the_cost_of_a_million_chats_follows_from_its_units() -> None:
    chat = COUNTS["chat_stream"]
    database = number(r"DynamoDB: \d+ write and \d+ read units \| ([\d.]+)")
    assert abs(database - chat["awsWriteUnits"] * WRITE - chat["readUnits"] * READ) < 0.01
    table = PAGE.partition("| part | dollars |")[2].partition("| **infrastructure**")[0]
    total = sum(float(dollars) for dollars in re.findall(r"\| ([\d.]+) \|$", table, re.MULTILINE))
    assert number(r"\*\*infrastructure\*\* \| \*\*([\d.]+)") == round(total, 2)
    for chats, dollars in re.findall(r"chats a second.* \| ([\d,]+) million \| \$([\d,]+)", PAGE):
        expected = float(chats.replace(",", "")) * total
        assert abs(float(dollars.replace(",", "")) / expected - 1) < 0.002


def test_the_requests_of_visitors_calls_are_the_recorded_ones() -> None:
    for name, title in (
        ("submit_form", "form submission"),
        ("create_public_booking", "public booking"),
    ):
        requests, waves = COUNTS[name]["requests"], COUNTS[name]["waves"]
        assert f"| {title}, {requests} in {waves} |" in PAGE


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    assert number(r"throttle of the API's stage \| (\d+) requests") == gateway.RATE
    assert number(r"a request ends after (\d+)\.") == REQUEST_SECONDS
    assert number(r"\((\d+) messages a minute each\)") == MESSAGES_OF_BOT.max_requests
    assert number(r"the limit of a form is ([\d,]+) a day") == FORM_SUBMISSIONS_PER_DAY.max_requests
    assert number(r"job queue: (\d+) shards") == jobs.SHARDS
    assert number(r"counters of one bot: (\d+) rows a day") == metrics.SHARDS
    assert JOB_RUNS == 4, "the page says four runs"
