"""Alarms match real log lines, and cover all functions and tables."""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.core import errors, logs
from chalicelib.core.errors import AppError
from chalicelib.core.jobs import WEBHOOK_EVENTS, JobKind
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.chat.flows import stream_answer
from chalicelib.domains.chat.flows.stream_answer import Ending
from chalicelib.domains.knowledge.flows import search
from chalicelib.domains.knowledge.store import indexes
from chalicelib.engine import jobs, transactions
from chalicelib.engine.tables import TABLES
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.transports import http, scheduled_functions
from infra.deploy.names import function_name
from infra.deploy.policies import API, FUNCTIONS
from infra.deploy.stacks import alarms as alarms_stack
from tests.conftest import Time
from tests.fakes.ses_reports import batch, complained

RESOURCES = alarms_stack.template()["Resources"]
ALARMS = {
    name.removesuffix("Alarm"): resource["Properties"]
    for name, resource in RESOURCES.items()
    if resource["Type"] == "AWS::CloudWatch::Alarm"
}
Counted = Callable[[str], list[float]]


def matches(pattern: str, line: dict[str, Any]) -> bool:
    """Whether a line fits a pattern of comparisons, ``&&``, ``||`` and one level of brackets."""
    pattern = re.sub(
        r"\(([^()]*)\)", lambda match: str(matches(match[1], line)).lower(), pattern.strip("{} ")
    )
    return any(
        all(compared(comparison.strip(), line) for comparison in every.split("&&"))
        for every in pattern.split("||")
    )


def compared(comparison: str, line: dict[str, Any]) -> bool:
    if comparison in {"true", "false"}:
        return comparison == "true"
    parts = re.fullmatch(r"\$\.(\w+) (=|>=) (?:\"([^\"]*)\"|(\d+))", comparison)
    assert parts, comparison
    name, operator, text, number = parts.groups()
    value = line.get(name)
    if text is not None:
        expression = re.escape(text).replace(r"\*", ".*")
        return isinstance(value, str) and re.fullmatch(expression, value) is not None
    if not isinstance(value, int | float):
        return False
    return value == int(number) if operator == "=" else value >= int(number)


@pytest.fixture
def count_lines() -> Iterator[Counted]:
    """Return the count of a log metric over the lines that the test logged."""
    lines: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(logs.JsonFormatter().format(record)))

    def count_metric(metric: str) -> list[float]:
        pattern, _, value = alarms_stack.LINES[metric]
        matching_lines = [line for line in lines if matches(pattern, line)]
        return [
            float(line[value[2:]] if value.startswith("$.") else value) for line in matching_lines
        ]

    handler, root = Keep(), logging.getLogger("chalicelib")
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield count_metric
    root.removeHandler(handler)
    root.setLevel(level)


def fail(problem: Exception) -> Callable[[Any], Any]:
    def handler(_: Any) -> Any:
        raise problem

    return handler


def handle(problem: Exception) -> None:
    http.handle(http.HttpRequest("GET", "/x", {}), fail(problem))


class TestLines:
    def test_a_crash_is_an_error(self, count_lines: Counted) -> None:
        handle(ZeroDivisionError())
        assert count_lines("ErrorLines") == [1]

    def test_a_refusal_is_no_error(self, count_lines: Counted) -> None:
        handle(errors.NotFoundError("No such thing."))
        assert (
            count_lines("ErrorLines")
            == count_lines("Unavailable")
            == count_lines("RefusedChats")
            == []
        )

    def test_an_unavailable_database_is_counted(self, count_lines: Counted) -> None:
        handle(errors.UnavailableError())
        assert count_lines("Unavailable") == [1]

    def test_a_missing_configuration_is_no_outage(self, count_lines: Counted) -> None:
        handle(errors.RateLimitedError("Too many."))
        assert count_lines("Unavailable") == []

    @pytest.mark.parametrize(
        "code", ["limit_daily", "limit_weekly", "limit_monthly", "insufficient_balance"]
    )
    def test_a_chat_refused_for_money_is_counted(self, code: str, count_lines: Counted) -> None:
        kinds = [kind for kind in every_error(AppError) if getattr(kind, "code", "") == code]
        assert kinds
        handle(kinds[0]("No more."))
        assert count_lines("RefusedChats") == [1]

    def test_rate_limited_visitor_is_not_refused_for_money(self, count_lines: Counted) -> None:
        handle(errors.RateLimitedError("Too many."))
        assert count_lines("RefusedChats") == []

    def test_usage_above_the_held_amount_is_counted(
        self, count_lines: Counted, database: None
    ) -> None:
        def stage(unit: UnitOfWork) -> None:
            ledger.post(unit, ledger.wallet("acc"), ledger.TOPUP, amount=1000)

        run_unit("acc", None, stage)
        terms = Terms("acc", "ws", "bot", "UTC", Prices(10**6, 10**6), "model")
        charging.settle(
            charging.reserve(terms, "one", 10, max_output_tokens=100), TokenUsage(10, 100)
        )
        assert count_lines("UncoveredUsage") == []
        charging.settle(
            charging.reserve(terms, "two", 10, max_output_tokens=100), TokenUsage(10, 500)
        )
        assert count_lines("UncoveredUsage") == [1]

    def test_an_answer_that_was_not_charged_is_counted(self, count_lines: Counted) -> None:
        hold = SimpleNamespace(request_id="r", agent_id="a")
        exchange: Any = SimpleNamespace(hold=hold, close=fail(errors.UnavailableError()))
        stream_answer._close(exchange, Ending("", "partial", None))
        assert count_lines("UnsettledAnswers") == [1]

    def test_an_index_of_knowledge_that_is_not_loaded_is_counted(
        self, count_lines: Counted, database: None
    ) -> None:
        row = indexes.read_index_rows("ws", ["bot"])["bot"]
        row.key, row.fingerprint, row.passages = "ws/knowledge/bot/indexes/gone.sqlite", "", 1
        assert indexes.publish(row)
        assert search.find("ws", bot_id="bot", question="Do you sell bread?", limit=5) == []
        assert count_lines("KnowledgeNotLoaded") == [1]

    def test_a_backlog_is_measured_by_its_age(
        self, count_lines: Counted, database: None, time: Time
    ) -> None:
        scheduled_functions.run_jobs()
        assert count_lines("OldestJobSeconds") == []
        jobs.schedule(jobs.row(JobKind("nobody-does-it"), "ws", {}))
        time.pass_by(hours=2)
        scheduled_functions.run_jobs()
        assert count_lines("OldestJobSeconds") == [7200]

    def test_the_age_of_the_oldest_job_of_events_is_measured_apart(
        self, count_lines: Counted, database: None, time: Time
    ) -> None:
        broken = jobs.row(WEBHOOK_EVENTS, "ws", {"at": "never"})
        jobs.schedule(broken)
        time.pass_by(minutes=20)
        scheduled_functions.run_jobs()
        scheduled_functions.run_event_jobs()
        assert count_lines("OldestEventJobSeconds") == [1200]
        assert count_lines("OldestJobSeconds") == []

    def test_workspace_with_paused_e_mails_is_counted(
        self, count_lines: Counted, database: None, time: Time
    ) -> None:
        complaints = [complained(f"mail-{number}", "ws") for number in range(3)]
        scheduled_functions.run_events(batch(*complaints))
        assert count_lines("PausedMails") == [1]

    def test_the_size_of_a_partition_is_measured_in_gigabytes(self, count_lines: Counted) -> None:
        key = {"pk": {"S": "W#ws#LEAD"}}
        size = {"ItemCollectionKey": key, "SizeEstimateRangeGB": [4.5, 5.5]}
        transactions._log_size({})
        assert count_lines("PartitionGigabytes") == []
        transactions._log_size({"ItemCollectionMetrics": {"content": [size]}})
        assert count_lines("PartitionGigabytes") == [5.5]


def every_error(kind: type[AppError]) -> Iterator[type[AppError]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from every_error(subclass)


def test_each_log_metric_has_filters_and_an_alarm() -> None:
    filters = [
        e["Properties"] for e in RESOURCES.values() if e["Type"] == "AWS::Logs::MetricFilter"
    ]
    metrics_in_logs = {
        (f["MetricTransformations"][0]["MetricName"], f["LogGroupName"]["Fn::Sub"]) for f in filters
    }
    assert metrics_in_logs == {
        (metric, f"/aws/lambda/{function_name('${Stage}', function=function)}")
        for metric, (_, functions, _) in alarms_stack.LINES.items()
        for function in functions
    }
    watched = {query["MetricStat"]["Metric"]["MetricName"] for query in queries()}
    assert alarms_stack.LINES.keys() <= watched


def queries() -> list[dict[str, Any]]:
    every = (query for alarm in ALARMS.values() for query in alarm["Metrics"])
    return [query for query in every if "MetricStat" in query]


def dimensions(alarm: str, name: str) -> set[str]:
    """Return the values of a dimension that an alarm watches."""
    return {
        dimension["Value"]["Fn::Sub"]
        for query in ALARMS[alarm]["Metrics"]
        for dimension in query.get("MetricStat", {}).get("Metric", {}).get("Dimensions", ())
        if dimension["Name"] == name
    }


@pytest.mark.parametrize(
    ("alarm", "functions"),
    [("FunctionErrors", FUNCTIONS), ("FunctionThrottles", {API, "chat-stream"})],
)
def test_every_function_has_alarms(alarm: str, functions: Iterable[str]) -> None:
    """Few runs of the scheduled functions overlap, so a waiting run does not need an alarm."""
    assert dimensions(alarm, "FunctionName") == {
        function_name("${Stage}", function=function) for function in functions
    }


@pytest.mark.parametrize(("alarm", "limit"), [("LargePartition", 5), ("AlmostFullPartition", 8)])
def test_partitions_have_alarms_before_their_limit(alarm: str, limit: int) -> None:
    (query,) = ALARMS[alarm]["Metrics"]
    assert query["MetricStat"]["Metric"]["MetricName"] == "PartitionGigabytes"
    assert query["MetricStat"]["Stat"] == "Maximum"
    assert ALARMS[alarm]["Threshold"] == limit


@pytest.mark.parametrize("alarm", ["ReadThrottles", "WriteThrottles"])
def test_every_table_has_alarms(alarm: str) -> None:
    assert dimensions(alarm, "TableName") == {f"${{TablePrefix}}-${{Stage}}-{t}" for t in TABLES}


@pytest.mark.parametrize(
    ("name", "function"), [("Schedule", "run-jobs"), ("EventSchedule", "run-events")]
)
def test_missing_data_of_a_schedule_is_an_alarm(name: str, function: str) -> None:
    alarm = ALARMS[name]
    assert dimensions(name, "FunctionName") == {function_name("${Stage}", function=function)}
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["EvaluationPeriods"] * alarms_stack.PERIOD == 600


@pytest.mark.parametrize(("name", "limit"), [("MailComplaints", 0.0008), ("MailBounces", 0.04)])
def test_rates_of_the_mail_account_keep_their_state_between_data(name: str, limit: float) -> None:
    assert ALARMS[name]["Threshold"] == limit
    assert ALARMS[name]["TreatMissingData"] == "ignore"
    (metric,) = (query["MetricStat"] for query in ALARMS[name]["Metrics"])
    assert metric["Metric"]["Namespace"] == "AWS/SES"


OTHERS = sorted(ALARMS.keys() - {"Schedule", "EventSchedule", "MailComplaints", "MailBounces"})


@pytest.mark.parametrize("alarm", OTHERS)
def test_missing_data_of_other_metrics_is_no_alarm(alarm: str) -> None:
    assert ALARMS[alarm]["TreatMissingData"] == "notBreaching"


@pytest.mark.parametrize("alarm", ALARMS)
def test_each_alarm_has_one_metric_and_notifies_of_recovery(alarm: str) -> None:
    properties = ALARMS[alarm]
    assert [metric["ReturnData"] for metric in properties["Metrics"]].count(True) == 1
    assert properties["AlarmActions"] == properties["OKActions"] == [{"Ref": "Topic"}]
    assert len(properties["Metrics"]) <= 10  # CloudWatch quotas
