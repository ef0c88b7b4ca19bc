"""``destroy`` at the end of a run leaves only the resources that it promises to keep."""

from collections.abc import Iterator

from tests.deployed.conftest import STAGE, Stage

LISTS = {
    "AWS::ApiGateway::RestApi": ("apigateway", "get_rest_apis", "items", "name"),
    "AWS::Backup::BackupVault": (
        "backup",
        "list_backup_vaults",
        "BackupVaultList",
        "BackupVaultName",
    ),
    "AWS::CloudFormation::Stack": ("cloudformation", "list_stacks", "StackSummaries", "StackName"),
    "AWS::CloudWatch::Alarm": ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    "AWS::DynamoDB::Table": ("dynamodb", "list_tables", "TableNames", ""),
    "AWS::Events::Rule": ("events", "list_rules", "Rules", "Name"),
    "AWS::IAM::Role": ("iam", "list_roles", "Roles", "RoleName"),
    "AWS::Lambda::EventSourceMapping": (
        *("lambda", "list_event_source_mappings", "EventSourceMappings", "UUID"),
    ),
    "AWS::Lambda::Function": ("lambda", "list_functions", "Functions", "FunctionName"),
    "AWS::Logs::LogGroup": ("logs", "describe_log_groups", "logGroups", "logGroupName"),
    "AWS::Logs::MetricFilter": ("logs", "describe_metric_filters", "metricFilters", "filterName"),
    "AWS::S3::Bucket": ("s3", "list_buckets", "Buckets", "Name"),
    "AWS::SNS::Topic": ("sns", "list_topics", "Topics", "TopicArn"),
    "AWS::SQS::Queue": ("sqs", "list_queues", "QueueUrls", ""),
    "AWS::SSM::Parameter": ("ssm", "describe_parameters", "Parameters", "Name"),
    "AWS::SecretsManager::Secret": ("secretsmanager", "list_secrets", "SecretList", "ARN"),
}
"""How AWS lists each type of resource of a stage: service, call, list, and the name's field."""


def standing(stage: Stage) -> Iterator[str]:
    for kind, (service, call, several, name) in LISTS.items():
        for resource in getattr(stage.client(service), call)().get(several, ()):
            if kind != "AWS::CloudFormation::Stack" or resource["StackStatus"] != "DELETE_COMPLETE":
                yield f"{kind} {resource[name] if name else resource}"


def test_destroy_leaves_what_it_promises(stage: Stage) -> None:
    report = stage.infra("destroy", "--stage", STAGE, "--yes")
    kept_names = {name.partition(" (")[0] for name in report["kept"]}
    assert len({name for name in kept_names if "DynamoDB" in name}) == 6
    kept_names |= {
        f"AWS::CloudFormation::Stack workspace-api-{STAGE}-{n}" for n in ("data", "backups")
    }
    # AWS Backup deletes expired copies with the role of the plan.
    resources = {
        resource
        for resource in standing(stage)
        if "Role workspace-api-dev-backups-" not in resource
    }
    assert resources == kept_names
