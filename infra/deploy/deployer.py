"""The rights that a deployment needs, as IAM policies for the operator who deploys (ADR 51).

The rights are measured. Tests compare ``CALLS`` with the calls that this package makes, ``CHALICE``
with Chalice's calls, and ``CLOUDFORMATION`` with what AWS's resource schemas require for the
resource types of the stacks.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from infra.deploy.names import APP
from infra.deploy.policies import MAIL_QUEUE, QUEUE, Target
from infra.deploy.stacks.build import GLOBAL_REGION
from infra.deploy.stage_config import StageFacts

MAXIMUM_LENGTH = 6_144
"""Characters of a managed policy, without white space (IAM user guide, IAM and STS quotas)."""

CALLS: Mapping[str, str] = {
    "apigateway": "GET PATCH POST PUT",
    "backup": "CreateBackupVault ListBackupVaults PutBackupVaultLockConfiguration",
    "bedrock": "GetFoundationModelAvailability",
    "cloudformation": "CreateChangeSet DeleteChangeSet DeleteStack DescribeChangeSet "
    "DescribeEvents DescribeStackDriftDetectionStatus DescribeStackEvents "
    "DescribeStackResourceDrifts DescribeStacks DetectStackDrift ExecuteChangeSet "
    "GetTemplateSummary ListStackResources",
    "cloudfront": "DeleteDistributionTenant GetDistributionTenant ListDistributionTenants "
    "ListDistributions UpdateDistributionTenant",
    "dynamodb": "CreateBackup DeleteTable DescribeBackup DescribeContinuousBackups DescribeTable "
    "DescribeTimeToLive UpdateContinuousBackups UpdateTable UpdateTimeToLive",
    "events": "DescribeRule",
    "iam": "GetRole SimulatePrincipalPolicy",
    "lambda": "GetAccountSettings GetFunction GetFunctionConcurrency GetFunctionConfiguration "
    "ListFunctions PutFunctionEventInvokeConfig UpdateFunctionConfiguration",
    "logs": "DeleteLogGroup",
    "s3": "AbortMultipartUpload DeleteBucket DeleteObject DeleteObjectVersion GetObject "
    "GetObjectVersion "
    "ListAllMyBuckets ListBucket ListBucketVersions PutObject",
    "secretsmanager": "DeleteSecret GetSecretValue",
    "ses": "GetAccount GetConfigurationSet GetConfigurationSetEventDestinations GetEmailIdentity",
    "ssm": "DeleteParameter GetParametersByPath PutParameter",
}
"""Actions of the calls that ``infra.deploy`` makes, by service."""
CHALICE: Mapping[str, str] = {
    "apigateway": "DELETE GET PATCH POST PUT",
    "events": "DeleteRule PutRule PutTargets RemoveTargets",
    "iam": "CreateRole DeleteRole DeleteRolePolicy GetRole ListRolePolicies PassRole PutRolePolicy",
    "lambda": "AddPermission CreateFunction DeleteFunction DeleteFunctionConcurrency GetFunction "
    "GetPolicy ListTags PutFunctionConcurrency TagResource UntagResource UpdateFunctionCode "
    "UpdateFunctionConfiguration",
}
"""Actions of the calls that Chalice makes for functions, schedules and a REST API."""
_CLOUDFRONT_POLICY = "Create{0} Delete{0} Get{0} Update{0}"
CLOUDFORMATION: Mapping[str, Mapping[str, str]] = {
    "AWS::Backup::BackupPlan": {
        "backup": "CreateBackupPlan DeleteBackupPlan GetBackupPlan ListTags TagResource "
        "UpdateBackupPlan"
    },
    "AWS::Backup::BackupSelection": {
        "backup": "CreateBackupSelection DeleteBackupSelection GetBackupSelection",
        "iam": "CreateServiceLinkedRole GetRole PassRole",
    },
    "AWS::Budgets::Budget": {"budgets": "ListTagsForResource ModifyBudget TagResource ViewBudget"},
    "AWS::CertificateManager::Certificate": {
        "acm": "DeleteCertificate DescribeCertificate ListTagsForCertificate RequestCertificate",
        "route53": "ChangeResourceRecordSets",
    },
    "AWS::CloudFront::CachePolicy": {"cloudfront": _CLOUDFRONT_POLICY.format("CachePolicy")},
    "AWS::CloudFront::ConnectionGroup": {
        "cloudfront": _CLOUDFRONT_POLICY.format("ConnectionGroup") + " ListTagsForResource"
    },
    "AWS::CloudFront::Distribution": {
        "cloudfront": "CreateDistribution DeleteDistribution GetDistribution GetDistributionConfig "
        "ListTagsForResource TagResource UntagResource UpdateDistribution"
    },
    "AWS::CloudFront::DistributionTenant": {
        "cloudfront": _CLOUDFRONT_POLICY.format("DistributionTenant") + " ListTagsForResource"
    },
    "AWS::CloudFront::Function": {
        "cloudfront": "CreateFunction DeleteFunction DescribeFunction GetFunction PublishFunction "
        "ListTagsForResource UpdateFunction"
    },
    "AWS::CloudFront::OriginAccessControl": {
        "cloudfront": _CLOUDFRONT_POLICY.format("OriginAccessControl")
    },
    "AWS::CloudFront::ResponseHeadersPolicy": {
        "cloudfront": _CLOUDFRONT_POLICY.format("ResponseHeadersPolicy")
    },
    "AWS::CloudWatch::Alarm": {
        "cloudwatch": "DeleteAlarms DescribeAlarms ListTagsForResource PutMetricAlarm TagResource"
    },
    "AWS::DynamoDB::Table": {
        "dynamodb": "CreateTable DeleteTable DescribeContinuousBackups DescribeContributorInsights "
        "DescribeKinesisStreamingDestination DescribeTable DescribeTimeToLive GetResourcePolicy "
        "ListTagsOfResource TagResource UntagResource UpdateContinuousBackups UpdateTable "
        "UpdateTimeToLive"
    },
    "AWS::Events::Rule": {
        "events": "DeleteRule DescribeRule ListTagsForResource ListTargetsByRule PutRule "
        "PutTargets RemoveTargets TagResource"
    },
    "AWS::IAM::Role": {
        "iam": "AttachRolePolicy CreateRole DeleteRole DetachRolePolicy GetRole GetRolePolicy "
        "ListAttachedRolePolicies ListRolePolicies TagRole UpdateAssumeRolePolicy UpdateRole "
        "UpdateRoleDescription"
    },
    "AWS::Lambda::EventSourceMapping": {
        "lambda": "CreateEventSourceMapping DeleteEventSourceMapping GetEventSourceMapping "
        "ListTags TagResource UpdateEventSourceMapping"
    },
    "AWS::Lambda::Function": {
        "iam": "PassRole",
        "lambda": "CreateFunction DeleteFunction GetFunction GetFunctionCodeSigningConfig "
        "GetFunctionRecursionConfig GetFunctionScalingConfig GetRuntimeManagementConfig "
        "TagResource UpdateFunctionCode UpdateFunctionConfiguration",
    },
    "AWS::Lambda::Version": {
        "lambda": "DeleteFunction GetFunctionConfiguration GetFunctionScalingConfig "
        "GetProvisionedConcurrencyConfig GetRuntimeManagementConfig ListVersionsByFunction "
        "PublishVersion"
    },
    "AWS::Lambda::Permission": {"lambda": "AddPermission GetPolicy RemovePermission"},
    "AWS::Lambda::Url": {
        "lambda": "CreateFunctionUrlConfig DeleteFunctionUrlConfig GetFunctionUrlConfig "
        "UpdateFunctionUrlConfig"
    },
    "AWS::Logs::LogGroup": {
        "logs": "CreateLogGroup DeleteLogGroup DeleteRetentionPolicy DescribeIndexPolicies "
        "DescribeLogGroups DescribeResourcePolicies GetDataProtectionPolicy ListTagsForResource "
        "PutRetentionPolicy TagResource UntagResource"
    },
    "AWS::Logs::MetricFilter": {"logs": "DeleteMetricFilter DescribeMetricFilters PutMetricFilter"},
    "AWS::Route53::RecordSet": {
        "route53": "ChangeResourceRecordSets GetChange GetHostedZone ListHostedZones "
        "ListResourceRecordSets"
    },
    "AWS::S3::Bucket": {
        "s3": "CreateBucket DeleteBucket GetAccelerateConfiguration GetAnalyticsConfiguration "
        "GetBucketAbac GetBucketAcl GetBucketCORS GetBucketLogging "
        "GetBucketMetadataTableConfiguration GetBucketNotification "
        "GetBucketObjectLockConfiguration GetBucketOwnershipControls GetBucketPublicAccessBlock "
        "GetBucketTagging GetBucketVersioning GetBucketWebsite "
        "GetEncryptionConfiguration GetIntelligentTieringConfiguration GetInventoryConfiguration "
        "GetLifecycleConfiguration GetMetricsConfiguration GetReplicationConfiguration ListBucket "
        "ListTagsForResource PutBucketCORS PutBucketOwnershipControls PutBucketPublicAccessBlock "
        "PutBucketTagging PutBucketVersioning PutEncryptionConfiguration "
        "PutLifecycleConfiguration TagResource UntagResource"
    },
    "AWS::S3::BucketPolicy": {"s3": "DeleteBucketPolicy GetBucketPolicy PutBucketPolicy"},
    "AWS::SES::ConfigurationSet": {
        "ses": "CreateConfigurationSet DeleteConfigurationSet DescribeConfigurationSet "
        "GetConfigurationSet PutConfigurationSetSuppressionOptions TagResource"
    },
    "AWS::SES::ConfigurationSetEventDestination": {
        "ses": "CreateConfigurationSetEventDestination DeleteConfigurationSetEventDestination "
        "DescribeConfigurationSet GetConfigurationSetEventDestinations "
        "UpdateConfigurationSetEventDestination"
    },
    "AWS::SNS::Subscription": {
        "sns": "GetSubscriptionAttributes SetSubscriptionAttributes Subscribe Unsubscribe"
    },
    "AWS::SNS::Topic": {
        "sns": "CreateTopic DeleteTopic GetDataProtectionPolicy GetTopicAttributes "
        "ListSubscriptionsByTopic ListTagsForResource SetTopicAttributes Subscribe TagResource "
        "Unsubscribe"
    },
    "AWS::SNS::TopicPolicy": {"sns": "SetTopicAttributes"},
    "AWS::SQS::Queue": {
        "sqs": "CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags "
        "SetQueueAttributes TagQueue"
    },
    "AWS::SQS::QueuePolicy": {"sqs": "SetQueueAttributes"},
    "AWS::SecretsManager::Secret": {
        "secretsmanager": "CreateSecret DeleteSecret DescribeSecret GetRandomPassword "
        "GetSecretValue TagResource UntagResource UpdateSecret"
    },
    "AWS::WAFv2::WebACL": {
        "wafv2": "CreateWebACL DeleteWebACL GetWebACL ListTagsForResource TagResource UpdateWebACL"
    },
}
"""Actions by which CloudFormation manages each type of resource, as the deployer."""
FOR_VAULTS: Mapping[str, str] = {
    "backup-storage": "Mount MountCapsule",
    "kms": "CreateGrant Decrypt DescribeKey GenerateDataKey RetireGrant",
}
"""Actions by which AWS Backup creates a vault, as the deployer."""
FOR_EDGE_FUNCTIONS: Mapping[str, str] = {
    "iam": "CreateServiceLinkedRole",
    "lambda": "DisableReplication* EnableReplication* GetFunction",
}
"""Actions by which CloudFront copies a function to its locations, as the deployer.

The asterisks are required (CloudFront developer guide, Set up IAM permissions and roles for
Lambda@Edge).
"""

UNSCOPED = frozenset(
    {
        "acm:RequestCertificate",
        "backup-storage:Mount",
        "backup-storage:MountCapsule",
        "backup:ListBackupVaults",
        "bedrock:GetFoundationModelAvailability",
        "cloudformation:GetTemplateSummary",
        "cloudwatch:DescribeAlarms",
        "cloudfront:ListDistributionTenants",
        "cloudfront:ListDistributions",
        "iam:GetRole",
        "iam:SimulatePrincipalPolicy",
        "lambda:CreateEventSourceMapping",
        "lambda:GetAccountSettings",
        "lambda:ListFunctions",
        "logs:DescribeIndexPolicies",
        "logs:DescribeLogGroups",
        "logs:DescribeResourcePolicies",
        "route53:GetChange",
        "route53:ListHostedZones",
        "s3:ListAllMyBuckets",
        "secretsmanager:GetRandomPassword",
        # Actions of the first version of SES's API have no resource.
        "ses:CreateConfigurationSetEventDestination",
        "ses:DeleteConfigurationSetEventDestination",
        "ses:DescribeConfigurationSet",
        "ses:GetAccount",
        "ses:UpdateConfigurationSetEventDestination",
        "sns:GetSubscriptionAttributes",
        "sns:SetSubscriptionAttributes",
        "sns:Unsubscribe",
    }
)
"""Actions that no resource of the stage limits. ``iam:GetRole`` also reads the deployer's role."""
CONDITIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "iam:PassRole": {
        "StringEquals": {"iam:PassedToService": ["lambda.amazonaws.com", "backup.amazonaws.com"]}
    },
    "iam:CreateServiceLinkedRole": {
        "StringEquals": {
            "iam:AWSServiceName": [
                "backup.amazonaws.com",
                "logger.cloudfront.amazonaws.com",
                "replicator.lambda.amazonaws.com",
            ]
        }
    },
    **{
        f"kms:{action}": {"StringLike": {"kms:ViaService": ["backup.*.amazonaws.com"]}}
        for action in FOR_VAULTS["kms"].split()
    },
}
"""Conditions of actions. Each has a single operator and key."""


def resources(stage: str, target: Target) -> dict[str, list[str]]:
    """Return the ARNs that limit each service's actions to a stage.

    AWS chooses the names of APIs, distributions, certificates, plans, zones and event source
    mappings, so their actions are limited to the account. ``*`` matches a slash as well.
    """
    region, account, name = target.region, target.account, f"{APP}-{stage}"
    bucket = f"arn:aws:s3:::{StageFacts().table_prefix}-{stage}-{account}-{region}"

    def arn(service: str, *, suffix: str, region: str = region) -> str:
        return f"arn:aws:{service}:{region}:{account}:{suffix}"

    return {
        "acm": [arn("acm", suffix="certificate/*", region=GLOBAL_REGION)],
        "apigateway": [f"arn:aws:apigateway:{region}::/restapis{suffix}" for suffix in ("", "/*")],
        "backup": [
            arn("backup", suffix=f"backup-vault:{name}", region="*"),
            arn("backup", suffix="backup-plan:*"),
        ],
        "budgets": [arn("budgets", suffix="budget/*", region="")],
        "cloudformation": [arn("cloudformation", suffix=f"stack/{name}-*/*", region="*")],
        "cloudfront": [arn("cloudfront", suffix="*", region="")],
        "cloudwatch": [arn("cloudwatch", suffix=f"alarm:{name}-*")],
        "dynamodb": [arn("dynamodb", suffix=f"table/*-{stage}-*")],
        "events": [arn("events", suffix=f"rule/{name}-*")],
        "iam": [
            arn("iam", suffix=f"role/{name}-*", region=""),
            *(
                arn("iam", suffix=f"role/aws-service-role/{service}/*", region="")
                for service in CONDITIONS["iam:CreateServiceLinkedRole"]["StringEquals"][
                    "iam:AWSServiceName"
                ]
            ),
        ],
        "kms": [arn("kms", suffix="key/*", region="*")],
        "lambda": [
            *(arn("lambda", suffix=f"function:{name}{suffix}") for suffix in ("", "-*")),
            arn("lambda", suffix="event-source-mapping:*"),
            # Not the whole name of the stack: CloudFormation shortens names over 64 characters.
            arn("lambda", suffix=f"function:{name}-*", region=GLOBAL_REGION),
        ],
        "logs": [
            arn("logs", suffix=f"log-group:/aws/lambda/{name}{suffix}")
            for suffix in ("", ":*", "-*")
        ],
        "route53": ["arn:aws:route53:::hostedzone/*"],
        "s3": [bucket, f"{bucket}/*"],
        "secretsmanager": [arn("secretsmanager", suffix=f"secret:{APP}/{stage}/*")],
        # The operator has made the identity of the sender's domain.
        "ses": [arn("ses", suffix=f"configuration-set/{name}"), arn("ses", suffix="identity/*")],
        "sqs": [arn("sqs", suffix=f"{name}-{queue}") for queue in (QUEUE, MAIL_QUEUE)],
        "sns": [arn("sns", suffix=f"{name}-{topic}") for topic in ("alarms", MAIL_QUEUE)],
        "ssm": [arn("ssm", suffix=f"parameter/{APP}/{stage}{suffix}") for suffix in ("", "/*")],
        "wafv2": [
            arn("wafv2", suffix=f"global/webacl/{name}/*", region=GLOBAL_REGION),
            arn("wafv2", suffix="global/managedruleset/*", region=GLOBAL_REGION),
        ],
    }


def actions() -> list[str]:
    """Return all actions, such as ``s3:GetObject``, in order."""
    operations = {
        f"{service}:{action}"
        for table in (CALLS, CHALICE, FOR_VAULTS, FOR_EDGE_FUNCTIONS, *CLOUDFORMATION.values())
        for service, names in table.items()
        for action in names.split()
    }
    return sorted(operations)


def statements(stage: str, target: Target) -> Iterator[dict[str, Any]]:
    """Yield the statements of a stage, grouped by service and by condition."""
    scopes, groups = resources(stage, target), dict[tuple[str, ...], list[str]]()
    for action in actions():
        service = action.partition(":")[0]
        if action in UNSCOPED:
            key: tuple[str, ...] = ("*",)
        else:
            key = (*scopes[service], json.dumps(CONDITIONS.get(action, {})))
        groups.setdefault(key, []).append(action)
    for (first, *restrictions), operations in groups.items():
        *more, condition = restrictions or ["{}"]
        yield {
            "Effect": "Allow",
            "Action": operations,
            "Resource": [first, *more],
            **({"Condition": json.loads(condition)} if condition != "{}" else {}),
        }


def documents(stage: str, target: Target) -> list[dict[str, Any]]:
    """Return the policies of a stage, each short enough for a managed policy."""
    all_statements: list[dict[str, Any]] = []
    for statement in statements(stage, target):
        grown = _document([*(all_statements[-1]["Statement"] if all_statements else ()), statement])
        if all_statements and len(json.dumps(grown, separators=(",", ":"))) <= MAXIMUM_LENGTH:
            all_statements[-1] = grown
        else:
            all_statements.append(_document([statement]))
    return all_statements


def denied(iam: Any, principal: str, *, stage: str, target: Target) -> list[str]:  # noqa: ANN401  boto3's own
    """Return the actions that IAM denies to a user or role, by its simulation.

    An action whose result depends on a fact of the real request, such as MFA, is not returned.
    """
    pages = iam.get_paginator("simulate_principal_policy")
    return [
        result["EvalActionName"]
        for statement in statements(stage, target)
        for page in pages.paginate(
            PolicySourceArn=principal,
            # A simulation accepts no wildcard, which is always the last character.
            ActionNames=[action.rstrip("*") for action in statement["Action"]],
            ResourceArns=[statement["Resource"][0].replace("*", "x")]
            if statement["Resource"] != ["*"]
            else ["*"],
            ContextEntries=list(_context(statement.get("Condition", {}))),
        )
        for result in page["EvaluationResults"]
        if result["EvalDecision"] != "allowed" and not result.get("MissingContextValues")
    ]


def _context(condition: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for keys in condition.values():
        for key, values in keys.items():
            value = values[0].replace("*", "x")
            yield {
                "ContextKeyName": key,
                "ContextKeyValues": [value],
                "ContextKeyType": "string",
            }


def _document(policy_statements: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(policy_statements)}
