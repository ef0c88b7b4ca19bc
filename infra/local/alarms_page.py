"""Write the table of alarms into docs/runbook.md: what each means, and what to do."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.deploy.stacks import alarms
from infra.local import document_tables

DOCUMENT = document_tables.DOCS / "runbook.md"
NAME = "alarms"
_TABLES = (
    "Look which table it is in the alarm's graph, and compare its load with [scale.md](scale.md)."
)
_EVENTS = "See [When events are late](#when-events-are-late)."
_MAIL = "See [operating.md](operating.md#bounces-and-complaints)."
_SIZE = (
    "The line `the largest partition of a transaction` has `partition`. Talk to the owner before "
    "10 GB, and see [ADR 53](adr/0053-a-full-partition-continues-in-a-second-one.md)."
)
TO_DO: Mapping[str, str] = {
    "FunctionErrors": "Search the log of the function for `Task timed out` and the last error. If "
    "it began with a release, roll back.",
    "FunctionThrottles": "Compare the account's executions with the reservations (`doctor`), and "
    "request more.",
    "ChatDuration": "See whether the provider of the model is slow. What was sent is charged.",
    "ApiErrors": "Search the log of the API for lines `request` with a `status` from 500 on: "
    "`requestId` leads to the error before it.",
    "ApiLatency": "Sort the lines `request` by `ms`, and look which `operation` and `workspaceId` "
    "they have in common.",
    "ApiSlowest": "As above. [scale.md](scale.md#lists-that-read-every-entry) names slow lists.",
    "ReadThrottles": _TABLES,
    "WriteThrottles": _TABLES,
    "ErrorLines": "Search the logs for `level` `error`. If it began with a release, roll back.",
    "Unavailable": "The lines `request` with the status 503 have `cause`. If it is not throttling, "
    "look at AWS Health.",
    "UncoveredUsage": "The line has `model`: its provider counts more tokens than the service "
    "expects. Correct `LLM_UNKNOWN_OUTPUT` or the catalogue.",
    "UnsettledAnswers": "Nothing, if `JobBacklog` is quiet. The lines have the cause.",
    "RefusedChats": "Find the owner by `agentId` of the lines. A bot may be under attack, or an "
    "owner needs a reminder.",
    "KnowledgeNotLoaded": "The lines have `cause`. See whether the bucket answers.",
    "JobBacklog": "Search the log of `run-jobs` for `a job failed`, which has `kind` and the "
    "cause. Without it, more is due than the runs can do: [scale.md](scale.md#jobs).",
    "EventBacklog": _EVENTS,
    "MailFeedback": _MAIL,
    "PausedMails": _MAIL,
    "HighMailRates": _MAIL,
    "MailComplaints": _MAIL,
    "MailBounces": _MAIL,
    "LargePartition": _SIZE,
    "AlmostFullPartition": _SIZE,
    "Schedule": "See whether `run-jobs` was stopped (reserved concurrency 0), and whether its "
    "rule is enabled. Deploy to repair both.",
    "EventSchedule": _EVENTS,
}
"""What an operator does, by the name of the alarm."""


def declared() -> Mapping[str, str]:
    """Return the description of each alarm."""
    resources = alarms.template()["Resources"]
    return {
        name.removesuffix("Alarm"): resource["Properties"]["AlarmDescription"]
        for name, resource in resources.items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    }


def write() -> Path:
    """Write the table into the document, and return the document's path."""
    return document_tables.write(DOCUMENT, NAME, _lines())


def markdown(text: str) -> str:
    """Return the text of the document with the table as the code declares it."""
    return document_tables.replaced(text, NAME, _lines())


def _lines() -> Iterator[str]:
    yield from document_tables.rows(
        ("alarm", "what it means", "what to do"),
        *((f"`{name}`", about, TO_DO[name]) for name, about in declared().items()),
    )
