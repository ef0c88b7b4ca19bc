"""The calls that a deployment, a rollback and a destruction make, against the deployer's rights."""

from pathlib import Path
from typing import Any

import click
import pytest

from infra.deploy import deployer, doctor, releases
from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import Change
from infra.deploy.deployment import DeployOptions
from infra.deploy.destruction import destroy
from infra.deploy.package import build as package
from tests.infra.conftest import Aws, QuickChalice, commit
from tests.infra.deploy.deployment.helpers import BUCKET, Deploy
from tests.infra.deploy.deployment.test_restored_tables import restore

pytestmark = pytest.mark.slow
NOT_HERE = {
    "cloudformation:DescribeEvents",  # of a change set that CloudFormation refuses
    "cloudformation:DescribeStackDriftDetectionStatus",  # moto detects no drift: test_drift.py
    "cloudformation:DescribeStackResourceDrifts",
    "cloudformation:DetectStackDrift",
    "cloudfront:DeleteDistributionTenant",  # moto has no tenants: test_site_tenants.py
    "cloudfront:GetDistributionTenant",
    "cloudfront:UpdateDistributionTenant",
    "cloudfront:ListDistributions",  # of the doctor, which test_doctor.py examines
    "bedrock:GetFoundationModelAvailability",
    "iam:SimulatePrincipalPolicy",
    "ses:GetAccount",
    "ses:GetConfigurationSet",
    "ses:GetConfigurationSetEventDestinations",
    "ses:GetEmailIdentity",
    "s3:AbortMultipartUpload",  # of an upload that fails
}
"""Rights of calls that this module does not make."""
ACTIONS = {
    "s3:CopyObject": ("s3:GetObjectVersion", "s3:PutObject"),  # of a version, to the same key
    "s3:DeleteObjects": ("s3:DeleteObject", "s3:DeleteObjectVersion"),
    "s3:HeadBucket": ("s3:ListBucket",),
    "s3:HeadObject": ("s3:GetObject",),
    "s3:ListBuckets": ("s3:ListAllMyBuckets",),
    "s3:ListObjectVersions": ("s3:ListBucketVersions",),
    "s3:ListObjectsV2": ("s3:ListBucket",),
}
"""Rights of calls whose names differ (Service Authorization Reference)."""
READS = {"s3:GetObject", "s3:HeadObject"}
"""Calls that need another right for a version of an object."""


class Recorder:
    """Records the rights that the calls of an account's clients need."""

    def __init__(self) -> None:
        self.rights: set[str] = set()
        self.paused = False

    def note(self, model: Any, params: dict[str, Any], **_: Any) -> None:
        service = model.service_model.signing_name
        name = model.http["method"] if service == "apigateway" else model.name
        call = f"{service}:{name}"
        if not self.paused:
            self.rights.update(ACTIONS.get(call, (call,)))
            if call in READS and "versionId=" in params["url"]:
                self.rights.add("s3:GetObjectVersion")


@pytest.fixture
def recorder(aws: Aws, chalice: QuickChalice, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    calls, create = Recorder(), Account.client

    def client(account: Account, service: str, region: str | None = None) -> Any:
        client = create(account, service, region)
        client.meta.events.register("before-call", calls.note, unique_id="recorder")
        return client

    def run(*arguments: Any, **options: Any) -> str:
        """Replace Chalice, whose own calls are measured by test_deploy_whole.py."""
        calls.paused = True
        try:
            return chalice.run(*arguments, **options)
        finally:
            calls.paused = False

    monkeypatch.setattr(Account, "client", client)
    monkeypatch.setattr(deployer, "denied", lambda *_, **__: [])  # moto simulates no policies
    monkeypatch.setattr(package, "chalice", run)
    return calls


def test_rights_are_those_of_the_calls_that_are_made(
    aws: Aws, deploy: Deploy, checkout: Path, recorder: Recorder
) -> None:
    deployment = aws.deployment(checkout)
    deploy(domain="api.example.com")
    recorder.paused = True
    restore(aws)
    commit(checkout, "app = 2\n")
    recorder.paused = False
    deploy(table_prefix="restored", domain="")

    def refuse(_: list[Change]) -> None:
        raise click.Abort

    deployment.confirm = refuse
    deployment.root = checkout
    deployment.deploy(DeployOptions("dev", {"table_prefix": "workspace"}))
    deployment.rollback(None, break_lock=False, python=None)
    releases.list_releases(deployment.deployed()[1])
    doctor.require(doctor.examine_account(aws.account, "dev", checkout))
    destroy(deployment, break_lock=False, with_data=True)
    expected = {f"{s}:{name}" for s, names in deployer.CALLS.items() for name in names.split()}
    assert recorder.rights - expected == set(), f"a bucket is {BUCKET}: add them to CALLS"
    assert expected - recorder.rights <= NOT_HERE, "no test needs them: take them out of CALLS"
