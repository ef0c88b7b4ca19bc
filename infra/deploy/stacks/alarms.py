"""The stack of alarms on metrics of AWS and on lines of the service's logs.

``policies`` lists the functions, and the store lists the tables.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from chalicelib.domains.knowledge.flows.search import NOT_LOADED
from chalicelib.domains.mails.flows.mail_feedback import PAUSED, RATES_ARE_HIGH
from chalicelib.engine.tables import TABLES
from chalicelib.engine.transactions import PARTITION_SIZE
from infra.deploy.names import APP, function_name
from infra.deploy.policies import API, FUNCTIONS, MAIL_QUEUE
from infra.deploy.stacks.backups import vault_name
from infra.deploy.stage_config import CHAT, EVENTS, JOBS

Resource = dict[str, Any]
Metric = dict[str, Any]

PERIOD = 300
REPUTATION_PERIOD = 3_600
"""SES publishes the rates of the account seldom, and an alarm keeps its state in between."""
NAMESPACE = {"Fn::Sub": f"{APP}/${{Stage}}"}
"""Namespace of the metrics that are computed from log lines."""
LINES: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "ErrorLines": ('$.level = "error"', tuple(FUNCTIONS), "1"),
    "Unavailable": ('$.message = "request" && $.status = 503 && $.cause = "*"', (API, CHAT), "1"),
    "UncoveredUsage": ('$.message = "a request used more than was held*"', (CHAT, JOBS), "1"),
    "UnsettledAnswers": ('$.message = "an answer was not settled*"', (CHAT,), "1"),
    "RefusedChats": (
        '$.message = "request" && ($.code = "insufficient_balance" || $.code = "limit_*")',
        (CHAT,),
        "1",
    ),
    "OldestJobSeconds": (
        '$.message = "scheduled jobs" && $.oldestSeconds >= 0',
        (JOBS,),
        "$.oldestSeconds",
    ),
    "OldestEventJobSeconds": (
        '$.message = "jobs of events" && $.oldestSeconds >= 0',
        (EVENTS,),
        "$.oldestSeconds",
    ),
    "PausedMails": (f'$.message = "{PAUSED}"', (EVENTS,), "1"),
    "HighMailRates": (f'$.message = "{RATES_ARE_HIGH}"', (EVENTS,), "1"),
    "KnowledgeNotLoaded": (f'$.message = "{NOT_LOADED}"', (CHAT,), "1"),
    "PartitionGigabytes": (
        f'$.message = "{PARTITION_SIZE}" && $.gigabytes >= 0',
        tuple(FUNCTIONS),
        "$.gigabytes",
    ),
}
"""Metrics of log lines: the filter, the functions, and the value of each matching line.

For the filters see CloudWatch Logs user guide, Filter pattern syntax.
"""


def template() -> dict[str, Any]:
    """Return the template, whose parameters and outputs ``stacks.build`` documents."""
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Workspace API: what wakes somebody up.",
        "Parameters": {
            "Stage": {"Type": "String", "AllowedPattern": "[a-z][a-z0-9]{0,15}"},
            "TablePrefix": {"Type": "String", "Default": "workspace"},
            "ApiName": {"Type": "String", "Default": APP},
            "ApiStage": {"Type": "String"},
            "AlarmEmail": {"Type": "String", "Default": ""},
            "MonthlyBudget": {"Type": "Number", "Default": 0, "MinValue": 0},
        },
        "Conditions": {
            "HasEmail": {"Fn::Not": [{"Fn::Equals": [_ref("AlarmEmail"), ""]}]},
            "HasBudget": {"Fn::Not": [{"Fn::Equals": [_ref("MonthlyBudget"), 0]}]},
        },
        "Resources": {
            **_notifications(),
            **_filters(),
            "BackupFailures": _backup_failures(),
            **{f"{name}Alarm": _alarm(name, *settings) for name, *settings in _alarms()},
        },
        "Outputs": {"TopicArn": {"Value": _ref("Topic")}},
    }


def _alarms() -> Iterable[tuple[Any, ...]]:
    """Yield the name, description, limit, metrics and number of periods of each alarm.

    An alarm is raised when the sum of its metrics reaches the limit.
    """
    functions = [_function(function) for function in FUNCTIONS]
    jobs, events, chat = _function(JOBS), _function(EVENTS), _function(CHAT)
    api = _dimensions(ApiName=_ref("ApiName"), Stage=_ref("ApiStage"))
    tables = [_dimensions(TableName=_sub("${TablePrefix}-${Stage}-" + table)) for table in TABLES]
    yield (
        "FunctionErrors",
        "A function ended with an error, or ran out of time or memory.",
        1,
        [_metric("AWS/Lambda", "Errors", function) for function in functions],
    )
    yield (
        "FunctionThrottles",
        "Lambda refused to run a function: all that may run at once do.",
        1,
        # Throttling of scheduled functions is normal: only some of their runs overlap. Alarms on
        # the age of jobs and messages show whether work waits.
        [
            _metric("AWS/Lambda", "Throttles", function)
            for function in functions
            if function not in (jobs, events)
        ],
    )
    yield (
        "ChatDuration",
        "A chat took more than five of the six minutes that it has.",
        300_000,
        [_metric("AWS/Lambda", "Duration", chat, "Maximum")],
    )
    yield (
        "ApiErrors",
        "The API answered with statuses from 500 on.",
        5,
        [_metric("AWS/ApiGateway", "5XXError", api)],
    )
    yield (
        "ApiLatency",
        "For a quarter of an hour, one request in twenty took longer than three seconds.",
        3_000,
        [_metric("AWS/ApiGateway", "Latency", api, "p95")],
        3,
    )
    yield (
        "ApiSlowest",
        "For a quarter of an hour, one request in a hundred took longer than ten seconds.",
        10_000,
        [_metric("AWS/ApiGateway", "Latency", api, "p99")],
        3,
    )
    yield (
        "ReadThrottles",
        "DynamoDB refused reads: there were too many at once.",
        10,
        [_metric("AWS/DynamoDB", "ReadThrottleEvents", table) for table in tables],
    )
    yield (
        "WriteThrottles",
        "DynamoDB refused writes: there were too many at once.",
        10,
        [_metric("AWS/DynamoDB", "WriteThrottleEvents", table) for table in tables],
    )
    yield (
        "ErrorLines",
        "A line of level error was logged; each is a fault to be looked at.",
        1,
        [_metric(NAMESPACE, "ErrorLines")],
    )
    yield (
        "Unavailable",
        "Requests failed because DynamoDB or the bucket did; the lines' cause says how.",
        5,
        [_metric(NAMESPACE, "Unavailable")],
    )
    yield (
        "UncoveredUsage",
        "A model used more than was held for it, and the excess is not charged.",
        1,
        [_metric(NAMESPACE, "UncoveredUsage")],
    )
    yield (
        "UnsettledAnswers",
        "Answers were not charged at their end; their jobs do it ten minutes later.",
        3,
        [_metric(NAMESPACE, "UnsettledAnswers")],
    )
    yield (
        "RefusedChats",
        "Many chats are refused, for balances or limits of bots are used up.",
        100,
        [_metric(NAMESPACE, "RefusedChats")],
    )
    yield (
        "KnowledgeNotLoaded",
        "Many bots answered without what they know, for its index was not loaded in time.",
        100,
        [_metric(NAMESPACE, "KnowledgeNotLoaded")],
    )
    yield (
        "JobBacklog",
        "A job has been due for an hour.",
        3_600,
        [_metric(NAMESPACE, "OldestJobSeconds", statistic="Maximum")],
    )
    yield (
        "EventBacklog",
        "A job of events has been due for a quarter of an hour.",
        900,
        [_metric(NAMESPACE, "OldestEventJobSeconds", statistic="Maximum")],
    )
    yield (
        "MailFeedback",
        "What SES reports on mails has waited for an hour, so bad addresses are still mailed.",
        3_600,
        [
            _metric(
                "AWS/SQS",
                "ApproximateAgeOfOldestMessage",
                _dimensions(QueueName=_sub(f"{APP}-${{Stage}}-{MAIL_QUEUE}")),
                "Maximum",
            )
        ],
    )
    yield (
        "PausedMails",
        "A workspace's mails by strangers or of advertising are paused by bounces or complaints.",
        1,
        [_metric(NAMESPACE, "PausedMails")],
    )
    yield (
        "HighMailRates",
        "A workspace's own mails to clients bounce or are complained of; only you can pause them.",
        1,
        [_metric(NAMESPACE, "HighMailRates")],
    )
    # SES puts an account under review at 0.1 % of complaints or 5 % of bounces.
    yield (
        "MailComplaints",
        "0.08 % of the account's mails are complained of; at 0.1 % AWS reviews the account.",
        0.0008,
        [_reputation("Reputation.ComplaintRate")],
    )
    yield (
        "MailBounces",
        "4 % of the account's mails bounce; at 5 % AWS reviews the account.",
        0.04,
        [_reputation("Reputation.BounceRate")],
    )
    for name, gigabytes in {"LargePartition": 5, "AlmostFullPartition": 8}.items():
        yield (
            name,
            f"A kind of records of a workspace takes {gigabytes} of 10 GB; the lines name it.",
            gigabytes,
            [_metric(NAMESPACE, "PartitionGigabytes", statistic="Maximum")],
        )
    yield (
        "Schedule",
        "For ten minutes nothing has looked for jobs that are due.",
        None,
        [_metric("AWS/Lambda", "Invocations", jobs)],
        2,
    )
    yield (
        "EventSchedule",
        "For ten minutes nothing has looked for events to send.",
        None,
        [_metric("AWS/Lambda", "Invocations", events)],
        2,
    )


def _alarm(
    name: str, about: str, limit: float | None, metrics: list[Metric], periods: int = 1
) -> Resource:
    """Return an alarm, which without a limit is raised when data is missing."""
    queries: list[dict[str, Any]] = [
        {"Id": f"m{number}", "MetricStat": metric, "ReturnData": len(metrics) == 1}
        for number, metric in enumerate(metrics)
    ]
    if len(metrics) > 1:
        queries.append({"Id": "total", "Expression": "SUM(METRICS())", "ReturnData": True})
    rings = (
        ("LessThanThreshold", 1, "breaching")
        if limit is None
        else ("GreaterThanOrEqualToThreshold", limit, "notBreaching")
    )
    comparison, threshold, missing = rings
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "AlarmName": _sub(f"{APP}-${{Stage}}-{name}"),
            "AlarmDescription": about,
            "AlarmActions": [_ref("Topic")],
            "OKActions": [_ref("Topic")],
            "Metrics": queries,
            "ComparisonOperator": comparison,
            "Threshold": threshold,
            "EvaluationPeriods": periods,
            "TreatMissingData": "ignore" if metrics[0]["Period"] == REPUTATION_PERIOD else missing,
        },
    }


def _metric(
    namespace: Any,  # noqa: ANN401  a text or an intrinsic function
    name: str,
    dimensions: list[Resource] | None = None,
    statistic: str = "Sum",
) -> Metric:
    metric = {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions or []}
    return {"Metric": metric, "Period": PERIOD, "Stat": statistic}


def _reputation(name: str) -> Metric:
    return _metric("AWS/SES", name, statistic="Maximum") | {"Period": REPUTATION_PERIOD}


def _filters() -> dict[str, Resource]:
    """Return metric filters for log lines, one for each metric and function."""
    return {
        f"{metric}Of{function.title().replace('-', '').replace('_', '')}": {
            "Type": "AWS::Logs::MetricFilter",
            "Properties": {
                "LogGroupName": _sub(f"/aws/lambda/{function_name('${Stage}', function=function)}"),
                "FilterPattern": f"{{ {pattern} }}",
                "MetricTransformations": [
                    {"MetricNamespace": NAMESPACE, "MetricName": metric, "MetricValue": value}
                ],
            },
        }
        for metric, (pattern, functions, value) in LINES.items()
        for function in functions
    }


def _notifications() -> dict[str, Resource]:
    """Return the topic with its policy, its e-mail subscription and its budget."""
    account = {"StringEquals": {"aws:SourceAccount": _ref("AWS::AccountId")}}
    publish = {
        "Sid": "AlarmsAndBudgets",
        "Effect": "Allow",
        "Principal": {"Service": ["cloudwatch.amazonaws.com", "budgets.amazonaws.com"]},
        "Action": "sns:Publish",
        "Resource": _ref("Topic"),
        "Condition": account,
    }
    # EventBridge does not support conditions in policies of topics.
    events = {
        "Sid": "BackupEvents",
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": _ref("Topic"),
    }
    email = {"TopicArn": _ref("Topic"), "Protocol": "email", "Endpoint": _ref("AlarmEmail")}
    forecast = {
        "Notification": {
            "NotificationType": "FORECASTED",
            "ComparisonOperator": "GREATER_THAN",
            "Threshold": 100,
        },
        "Subscribers": [{"SubscriptionType": "SNS", "Address": _ref("Topic")}],
    }
    budget = {
        "Budget": {
            "BudgetType": "COST",
            "TimeUnit": "MONTHLY",
            "BudgetLimit": {"Amount": _ref("MonthlyBudget"), "Unit": "USD"},
        },
        "NotificationsWithSubscribers": [forecast],
    }
    return {
        "Topic": {
            "Type": "AWS::SNS::Topic",
            "Properties": {"TopicName": _sub(f"{APP}-${{Stage}}-alarms")},
        },
        "TopicPolicy": {
            "Type": "AWS::SNS::TopicPolicy",
            "Properties": {
                "Topics": [_ref("Topic")],
                "PolicyDocument": {"Version": "2012-10-17", "Statement": [publish, events]},
            },
        },
        "Email": {
            "Type": "AWS::SNS::Subscription",
            "Condition": "HasEmail",
            "Properties": email,
        },
        "Budget": {
            "Type": "AWS::Budgets::Budget",
            "Condition": "HasBudget",
            "DependsOn": "TopicPolicy",
            "Properties": budget,
        },
    }


def _backup_failures() -> Resource:
    """Return the rule that reports failed backups, and failed copies to the second region."""
    vault = "arn:${AWS::Partition}:backup:${AWS::Region}:${AWS::AccountId}:backup-vault:"
    ours = [_sub(vault + vault_name("${Stage}"))]
    return {
        "Type": "AWS::Events::Rule",
        "Properties": {
            "Name": _sub(f"{APP}-${{Stage}}-backup-failures"),
            "Description": "A daily backup, or its copy to the second region, failed.",
            "EventPattern": {
                "source": ["aws.backup"],
                "detail-type": ["Backup Job State Change", "Copy Job State Change"],
                "detail": {
                    "state": ["FAILED", "ABORTED", "EXPIRED"],
                    "$or": [{"backupVaultArn": ours}, {"sourceBackupVaultArn": ours}],
                },
            },
            "Targets": [{"Id": "topic", "Arn": _ref("Topic")}],
        },
    }


def _function(name: str) -> list[Resource]:
    return _dimensions(FunctionName=_sub(function_name("${Stage}", function=name)))


def _dimensions(**values: Any) -> list[Resource]:  # noqa: ANN401  texts or intrinsic functions
    return [{"Name": name, "Value": value} for name, value in values.items()]


def _ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def _sub(text: str) -> dict[str, str]:
    return {"Fn::Sub": text}
