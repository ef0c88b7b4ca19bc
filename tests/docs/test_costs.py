"""The fixed cost of a stage in docs/runbook.md follows from what its stacks have."""

import re
from typing import Any

from infra.deploy.stacks import alarms, data
from tests.docs.samples import DOCS, ROOT

METRIC_OF_ALARM, METRIC_OF_LOGS, SECRET, WEB_ACL, RULE = 0.10, 0.30, 0.40, 5.0, 1.0
"""Dollars a month in us-east-1, by AWS's price lists of November 2026."""
RUNBOOK = (DOCS / "runbook.md").read_text()
EDGE = (ROOT / "infra/deploy/stacks/templates/edge-global.yaml").read_text()


def of_type(template: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the properties of the resources of a type."""
    resources = template["Resources"].values()
    return [resource["Properties"] for resource in resources if resource["Type"] == kind]


def test_the_fixed_cost_is_that_of_the_stacks() -> None:
    read = sum(
        len(
            [
                metric
                for metric in alarm.get("Metrics", [{"MetricStat": 1}])
                if "MetricStat" in metric
            ]
        )
        for alarm in of_type(alarms.template(), "AWS::CloudWatch::Alarm")
    )
    made = {
        transformation["MetricName"]
        for metric_filter in of_type(alarms.template(), "AWS::Logs::MetricFilter")
        for transformation in metric_filter["MetricTransformations"]
    }
    rules = len(re.findall(r"^ {10}Priority:", EDGE, re.MULTILINE))
    expected = {
        "the web ACL": WEB_ACL + rules * RULE,
        "the metrics that alarms read": read * METRIC_OF_ALARM,
        "metrics made from logs": len(made) * METRIC_OF_LOGS,
        "secrets": len(of_type(data.template(), "AWS::SecretsManager::Secret")) * SECRET,
    }
    for part, dollars in expected.items():
        assert f"| {dollars:.2f} | {part}" in RUNBOOK
    total = sum(expected.values()) + 0.10  # runs of the jobs
    assert round(total) == 20, "the runbook and docs/deploying.md say twenty"
    assert round(total - expected["the web ACL"]) == 10, "docs/deploying.md says ten"
