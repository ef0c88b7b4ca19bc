"""The deployer's policies suffice for a deployment, and are limited to one stage."""

import json
import re
from fnmatch import fnmatchcase
from importlib.resources import files
from itertools import chain
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml
from click.testing import CliRunner

from infra.deploy import check_commands, deployer
from infra.deploy.aws.account import Account
from infra.deploy.policies import Target
from infra.deploy.stacks import build as stacks
from tests.infra.conftest import REGION

TARGET = Target(REGION, "123456789012")
DOCUMENTS = deployer.documents("dev", TARGET)
STATEMENTS = [statement for document in DOCUMENTS for statement in document["Statement"]]
TYPES = {
    resource["Type"]
    for stack in stacks.STACKS
    for resource in cfn_yaml.loads(stacks.template(stack))["Resources"].values()
}
LEFT_OUT = (
    # Tags: the templates have none, and CloudFormation's own are never removed.
    r"\w+:Untag\w*|acm:(Add|Remove)Tags\w+|cloudfront:TagResource|firehose:TagDeliveryStream",
    # Features that the templates do not use.
    r"acm-pca:.*|acm:UpdateCertificateOptions|billing:.*|payments:.*",
    r"AWS::CloudFront::Distribution cloudfront:\w*ConnectionGroup",
    r"AWS::CloudFront::DistributionTenant (acm|wafv2):.*",
    r"cloudfront:(GetVpcOrigin|CreateDistributionWithTags)",
    r"cloudfront:(GetManagedCertificateDetails|VerifyDnsConfiguration)",
    "cloudfront:UpdateDistributionWithStagingConfig",
    r"dynamodb:(\w*Replica|\w*Import\w*|(En|Dis)able\w*|\w*Item|Query|Scan)",
    r"dynamodb:((Put|Delete)ResourcePolicy|Update(ContributorInsights|Kinesis\w+))",
    r"AWS::DynamoDB::Table (iam|kinesis|kms|logs|s3):.*",
    "AWS::Lambda::EventSourceMapping kms:.*",
    r"AWS::Lambda::Function (ec2|elasticfilesystem|kms|s3|s3files):.*",
    r"AWS::Lambda::Function lambda:(AssociateRuntimeAlias|PassCapacityProvider|PublishVersion)",
    r"AWS::Lambda::Function lambda:(GetCodeSigningConfig|GetLayerVersion|Put\w+)",
    r"AWS::Lambda::Function lambda:DeleteFunction(CodeSigningConfig|Concurrency)",
    r"AWS::Lambda::Version lambda:Put\w+",
    r"AWS::(Backup::BackupPlan|Events::Rule|S3::Bucket|SNS::\w+) iam:.*",
    r"iam:(Put|Delete)RolePolicy|iam:\w+PermissionsBoundary",
    r"logs:(Associate|Disassociate)KmsKey|logs:CreateLogDelivery|logs:Put(?!Retention)\w+",
    r"logs:Delete(DataProtection|Index|Resource)Policy|s3:REST.PUT.OBJECT",
    r"s3:(Create|Delete|Update)Bucket\w+|s3:Put\w+|s3:DeleteObject|s3tables:.*",
    r"ses:PutConfigurationSet(?!Suppression)\w+|AWS::SES::\w+ iam:.*",
    r"secretsmanager:\w*Replicat\w*|sns:PutDataProtectionPolicy",
)
"""Actions of AWS's schemas that no stack needs, each by itself or after the type of the
resource."""


def required(kind: str) -> set[str]:
    """Return the actions of AWS's own schema by which CloudFormation manages a resource."""
    schemas = files("cfnlint") / "data" / "schemas"
    names = json.loads((schemas / "providers" / "us-east-1.json").read_text())
    schema = json.loads((schemas / "resources" / f"{names[kind]}.json").read_text())
    handlers = schema["handlers"]
    kinds = [handlers.get(name, {}) for name in ("create", "read", "update", "delete")]
    return set(chain.from_iterable(resource_type.get("permissions", ()) for resource_type in kinds))


class TestCloudFormation:
    def test_every_type_of_resource_in_the_stacks_has_its_actions(self) -> None:
        assert set(deployer.CLOUDFORMATION) == TYPES

    @pytest.mark.parametrize("kind", sorted(deployer.CLOUDFORMATION))
    def test_actions_of_a_type_are_in_its_schema(self, kind: str) -> None:
        schema_actions = {
            f"{service}:{name}"
            for service, names in deployer.CLOUDFORMATION[kind].items()
            for name in names.split()
        }
        assert schema_actions <= required(kind)
        for action in required(kind) - schema_actions:
            texts = (action, f"{kind} {action}")
            assert any(re.fullmatch(pattern, text) for pattern in LEFT_OUT for text in texts), (
                f"{kind} needs {action}: add it, or explain why no stack needs it"
            )

    def test_a_vault_needs_the_key_and_the_storage_that_its_schema_names(self) -> None:
        schema_actions = {
            f"{s}:{name}" for s, names in deployer.FOR_VAULTS.items() for name in names.split()
        }
        needed = required("AWS::Backup::BackupVault")
        assert schema_actions == {action for action in needed if not action.startswith("backup:")}


class TestPolicies:
    def test_policies_of_a_stage_with_a_long_name_fit(self) -> None:
        target = Target("ap-northeast-3", "123456789012")
        documents = deployer.documents("a" * 16, target)
        assert (
            max(len(json.dumps(document, separators=(",", ":"))) for document in documents) <= 6_144
        )
        assert len(documents) <= 10, "the quota of managed policies of a role"

    def test_every_action_is_allowed_exactly_once(self) -> None:
        actions = [action for statement in STATEMENTS for action in statement["Action"]]
        assert sorted(actions) == deployer.actions()

    def test_only_actions_without_a_resource_of_the_stage_are_allowed_on_all(self) -> None:
        (everywhere,) = [statement for statement in STATEMENTS if statement["Resource"] == ["*"]]
        assert set(everywhere["Action"]) == deployer.UNSCOPED

    def test_no_named_resource_of_another_stage_is_allowed(self) -> None:
        others = [
            "arn:aws:cloudformation:eu-central-1:123456789012:stack/workspace-api-dev2-data/1",
            "arn:aws:dynamodb:eu-central-1:123456789012:table/workspace-prod-content",
            "arn:aws:iam::123456789012:role/workspace-api-prod-run-jobs",
            "arn:aws:lambda:eu-central-1:123456789012:function:workspace-api-dev2",
            "arn:aws:logs:eu-central-1:123456789012:log-group:/aws/lambda/workspace-api-dev2",
            "arn:aws:s3:::workspace-prod-123456789012-eu-central-1/state/choices.json",
            "arn:aws:secretsmanager:eu-central-1:123456789012:secret:workspace-api/dev2/x",
            "arn:aws:sqs:eu-central-1:123456789012:workspace-api-dev2-events",
            "arn:aws:ssm:eu-central-1:123456789012:parameter/workspace-api/dev2/PUBLIC_URL",
            "arn:aws:backup:eu-central-1:123456789012:backup-vault:workspace-api-dev2",
        ]
        patterns = [
            resource
            for statement in STATEMENTS
            for resource in statement["Resource"]
            if resource != "*"
        ]
        assert not [(o, p) for o in others for p in patterns if fnmatchcase(o, p)]

    @pytest.mark.parametrize("action", ["EnableReplication*", "DisableReplication*", "GetFunction"])
    @pytest.mark.parametrize("stack", ["edge-global", "edge-g"])
    def test_cloudfront_may_copy_an_edge_function_with_a_shortened_name(
        self, stack: str, action: str
    ) -> None:
        name = f"workspace-api-dev-{stack}-ChallengeFunction-0123456789ab"
        version = f"arn:aws:lambda:us-east-1:123456789012:function:{name}:1"
        (resources,) = [
            statement["Resource"]
            for statement in STATEMENTS
            if f"lambda:{action}" in statement["Action"]
        ]
        assert [pattern for pattern in resources if fnmatchcase(version, pattern)]

    def test_roles_are_passed_to_the_services_that_run_them_only(self) -> None:
        (passing,) = [
            statement for statement in STATEMENTS if "iam:PassRole" in statement["Action"]
        ]
        assert passing["Action"] == ["iam:PassRole"]
        services = passing["Condition"]["StringEquals"]["iam:PassedToService"]
        assert set(services) == {"lambda.amazonaws.com", "backup.amazonaws.com"}


def test_the_command_prints_the_policies_for_the_account_that_is_signed_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")
    monkeypatch.setattr("infra.deploy.aws.account.sign_in", lambda _: account)
    outcome = CliRunner().invoke(check_commands.deployer_policy, ["--stage", "dev"])
    assert outcome.exit_code == 0
    printed: dict[str, Any] = json.loads(outcome.stdout)
    assert printed == {"stage": "dev", "policies": DOCUMENTS}
