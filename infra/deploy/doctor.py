"""Checks of this machine and the AWS account before a deployment, with advice."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import click
from botocore.exceptions import BotoCoreError, ClientError
from packaging.requirements import Requirement

from chalicelib.gateways.llm import models
from chalicelib.gateways.messenger_errors import MessengerError
from infra.deploy import deployer, published_settings, smoke, stage_config, stage_facts
from infra.deploy.aws import messaging
from infra.deploy.aws.account import Account, sign_in
from infra.deploy.aws.errors import code, explain
from infra.deploy.package import build as package
from infra.deploy.package.check import GLIBC
from infra.deploy.policies import Target
from infra.deploy.releases import Source
from infra.deploy.stage_config import CHAT, EVENTS, JOBS

BOOTSTRAP = Path("vendor", "stream_bootstrap")
ENDPOINTS = "AWS_ENDPOINT_URL"
"""The beginning of the names of variables that lead AWS's libraries to another address."""
TAKEN = {"403", "AccessDenied"}
ABSENT = {"404", "NoSuchBucket"}
SHOWN_RIGHTS = 8
"""The number of denied rights that are named."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Pass None as ``ok`` if the result is unknown or does not matter.
    """

    name: str
    ok: bool | None
    text: str


def examine(stage: str, region: str | None, root: Path = package.ROOT) -> Iterator[Finding]:
    """Yield the results of all checks for a stage, the checks of this machine first."""
    for check in (
        partial(git, root),
        partial(bootstrap, root),
        partial(known_stage, stage, root),
        partial(python, root),
        partial(wheels, stage, root),
    ):
        yield check()
    try:
        account = sign_in(region)
    except (BotoCoreError, ClientError) as error:
        yield Finding("credentials", ok=False, text=explain(error) or str(error))
        return
    yield Finding("credentials", ok=True, text=f"{account.user} in {account.region}")
    yield from examine_account(account, stage, root)
    yield from examine_messages(account, stage, root)
    yield _finding("sign-in", partial(_sign_in_of_clients, account, stage))


def examine_machine(stage: str, root: Path) -> Iterator[Finding]:
    """Yield the results of the fast checks of this machine."""
    yield git(root)
    yield bootstrap(root)
    yield known_stage(stage, root)


def examine_account(account: Account, stage: str, root: Path) -> Iterator[Finding]:
    """Yield the results of the account's checks, unknown without permission."""
    for name, check in (
        ("bucket", partial(_bucket, account, stage)),
        ("concurrency", partial(_concurrency, account, stage)),
        ("models", partial(_models, account, stage, root)),
        ("cloudfront", partial(_cloudfront, account)),
        ("rights", partial(_rights, account, stage)),
    ):
        yield _finding(name, check)


def examine_messages(account: Account, stage: str, root: Path) -> Iterator[Finding]:
    """Yield the results of the checks of SES and Telegram, on which no deployment depends."""
    for name, check in messaging.checks(account, stage, root):
        yield _finding(name, check)


def _sign_in_of_clients(account: Account, stage: str) -> tuple[bool | None, str]:
    """Whether AI clients find out where users sign in to the deployed stage."""
    url = published_settings.published(account, stage).get("PUBLIC_URL", "")
    if not url:
        return None, "The stage is not deployed yet."
    if urlsplit(url).path:
        return None, "Without an edge, AI clients cannot sign people in. They can use keys."
    check = smoke.sign_in(url)
    if not check.ok:
        return False, (
            f"AI clients cannot find out where people sign in: {check.why}. Deploy again, and see "
            "whether the function of the stack edge-global is on the path /api/mcp."
        )
    return True, f"AI clients sign people in at {check.why}"


def _finding(name: str, check: Callable[[], tuple[bool | None, str]]) -> Finding:
    try:
        return Finding(name, *check())
    except (BotoCoreError, ClientError, MessengerError) as error:
        return Finding(name, None, f"Could not be found out: {explain(error) or error}")


def require(findings: Iterator[Finding]) -> None:
    """Raise an error if any check failed.

    Raises:
        click.ClickException: a check failed; the message has the advice.
    """
    if faults := [finding.text for finding in findings if finding.ok is False]:
        raise click.ClickException(" ".join(faults))


def git(root: Path) -> Finding:
    """Whether the checkout has a commit, which names the release."""
    try:
        source = Source.from_checkout(root)
    except click.ClickException as error:
        return Finding("git", ok=False, text=f"{error.message} Install git and clone the project.")
    changes = "; it has changes in no commit (deploy wants --allow-dirty)" if source.dirty else ""
    return Finding("git", None if source.dirty else True, f"at {source.commit}{changes}")


def bootstrap(root: Path) -> Finding:
    """Whether the chat's bootstrap is executable, because Lambda uses the file mode of the zip."""
    if os.access(root / BOOTSTRAP, os.X_OK):
        return Finding("bootstrap", ok=True, text=f"{BOOTSTRAP} may be run")
    text = f"{BOOTSTRAP} may not be run. chmod +x it, and git update-index --chmod=+x it."
    return Finding("bootstrap", ok=False, text=text)


def known_stage(stage: str, root: Path) -> Finding:
    """Whether the config has the stage, with valid variables and the same AWS as the deployer's.

    On an emulator, functions may send webhooks to their own machine (``WEBHOOKS_TO_LOOPBACK``).
    """
    facts = stage_config.StageFacts(bucket="none")
    try:
        config = stage_config.load(root)
        architecture = stage_config.architecture(config, stage, facts)
        variables = stage_config.environment(config, stage, facts)
    except click.ClickException as error:
        return Finding("stage", ok=False, text=error.message)
    endpoints = [name for name in variables if name.startswith(ENDPOINTS)]
    if others := [name for name in endpoints if os.environ.get(name) != variables[name]]:
        text = (
            f"The functions would use another AWS than this deployment, by {', '.join(others)}. "
            "Take this out of .chalice/config.json (environment_variables)."
        )
        return Finding("stage", ok=False, text=text)
    return Finding("stage", ok=True, text=f"{stage}, on {architecture}")


def python(root: Path) -> Finding:
    """Whether a Python for packaging is installed, with a version of pip that Chalice supports."""
    try:
        interpreter = package.find_python()
    except package.PackageError as error:
        return Finding("python", ok=False, text=error.message)
    text = f"{interpreter.path}, chalice {version('chalice')}"
    pip = package.environment_of(interpreter, root / "build")
    if not pip.exists():
        return Finding("python", ok=True, text=f"{text}; {package.PIP} comes with the first build")
    command = (pip / "bin" / "python", "-c", "import pip; print(pip.__version__)")
    answer = subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()
    if answer and Requirement(package.PIP).specifier.contains(answer):
        return Finding("python", ok=True, text=f"{text}, pip {answer}")
    fault = f"{pip} has pip {answer or 'nowhere'}, and Chalice takes {package.PIP}. Delete it."
    return Finding("python", ok=False, text=fault)


def wheels(stage: str, root: Path) -> Finding:
    """Whether every requirement has a wheel for the stage's Lambda functions."""
    try:
        interpreter = package.find_python()
        architecture = stage_config.architecture(
            stage_config.load(root), stage, stage_config.StageFacts()
        )
    except click.ClickException as error:
        return Finding("wheels", ok=False, text=f"Could not be found out: {error.message}")
    machine = package.MACHINES[architecture]
    platforms = [f"manylinux2014_{machine}"]
    # pip accepts only the named platforms, so each older glibc is named as well.
    platforms += [f"manylinux_{GLIBC[0]}_{minor}_{machine}" for minor in range(17, GLIBC[1] + 1)]
    with TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text("".join(package.shipped_requirements(root)))
        shutil.copy(root / "constraints.txt", folder)
        # A dry run of pip resolves for Lambda's platform without a Python of that platform.
        options = ["--quiet", "--dry-run", "--ignore-installed", "--only-binary", ":all:"]
        options += [
            "--target",
            f"{folder}/none",
            "--python-version",
            "{}.{}".format(*interpreter.version),
        ]
        options += [option for name in platforms for option in ("--platform", name)]
        command = [sys.executable, "-m", "pip", "install", *options, "-r", str(requirements)]
        process = subprocess.run(command, check=False, capture_output=True, text=True)
    if not process.returncode:
        return Finding(
            "wheels", ok=True, text=f"everything required has a wheel for {architecture}"
        )
    if package.NO_ANSWER.search(process.stderr):
        text = "The package index does not answer. Connect to the network, or set PIP_INDEX_URL."
        return Finding("wheels", ok=False, text=text)
    missing = re.findall(r"No matching distribution found for (\S+)", process.stderr)
    what = " ".join(missing) or process.stderr.strip().rpartition("\n")[2]
    text = f"No wheel that runs on Lambda for {what}. Pin a version that has one."
    return Finding("wheels", ok=False, text=text)


def _bucket(account: Account, stage: str) -> tuple[bool, str]:
    """Whether the bucket's name, unique in all of AWS, is free or belongs to this account."""
    prefix = stage_config.StageFacts().table_prefix
    name = f"{prefix}-{stage}-{account.id}-{account.region}"
    try:
        account.client("s3").head_bucket(Bucket=name, ExpectedBucketOwner=account.id)
    except ClientError as error:
        if code(error) in ABSENT:
            return True, f"{name} is free"
        # S3 responds with 403 for a bucket of another account, and also without the right to look.
        if code(error) in TAKEN:
            return False, (
                f"The bucket {name} is another account's, or not to be seen with these "
                "credentials. Choose another TABLE_PREFIX in infra/deploy/stage_config.py."
            )
        raise
    return True, f"{name} is there"


def _concurrency(account: Account, stage: str) -> tuple[bool | None, str]:
    """Whether the account's quota allows the reservations for the jobs, the events and the chat."""
    free = stage_facts.unreserved(account)
    reserved = stage_facts.reservations(account, stage)
    if reserved.keys() >= stage_facts.RESERVING:
        return True, (
            f"{free:,} executions are unreserved; reserved of the quota: "
            f"{reserved[CHAT]:,} for chats, {reserved[JOBS]:,} for jobs, "
            f"{reserved[EVENTS]:,} for events"
        )
    short = []
    if CHAT not in reserved:
        short.append("slow chats can take the executions that the API needs")
    if JOBS not in reserved or EVENTS not in reserved:
        short.append("runs of jobs and events may overlap, which does no harm")
    return None, (
        f"Only {free:,} executions are unreserved, too few to reserve all: {'; '.join(short)}. "
        "Request more in Service Quotas (Lambda, Concurrent executions): 1,000 is AWS's default, "
        "and new accounts have 10. Then deploy again."
    )


def _models(account: Account, stage: str, root: Path) -> tuple[bool | None, str]:
    """Whether this account can use the Bedrock model that drafts product cards, in this region."""
    variables = stage_config.environment(
        stage_config.load(root), stage, stage_config.StageFacts(bucket="none")
    )
    if "bedrock" not in variables.get("LLM_PROVIDER", ""):
        return None, "The stage does not use Bedrock."
    spec = models.find(variables.get("LLM_MODEL", ""))
    if spec is None:
        return None, "LLM_MODEL is not in the catalogue: try it in Bedrock's playground."
    answer = account.client("bedrock").get_foundation_model_availability(modelId=spec.provider_id)
    is_granted = answer["authorizationStatus"] == "AUTHORIZED"
    if answer["regionAvailability"] == "AVAILABLE" and is_granted:
        return True, f"Bedrock serves {spec.provider_id} here"
    return None, (
        f"Bedrock does not serve {spec.provider_id} to this account in {account.region}: have an "
        "administrator open it once in Bedrock's playground (docs/runbook.md, Settings), set "
        "another LLM_MODEL in .chalice/config.json (environment_variables), or deploy to another "
        "region. Until then bots of its models answer with an error."
    )


def _cloudfront(account: Account) -> tuple[bool | None, str]:
    """Whether CloudFront accepts the account, as far as a call that only reads can show."""
    distributions = account.client("cloudfront").list_distributions(MaxItems="1")[
        "DistributionList"
    ]
    if distributions["Quantity"]:
        return True, "the account has distributions, so CloudFront accepts it"
    return None, (
        "The account has no distribution yet. CloudFront refuses some new accounts until AWS "
        "Support has verified them, and shows this only when a distribution is created. If that "
        "happens, the deployment says so; --no-edge deploys without CloudFront."
    )


def _rights(account: Account, stage: str) -> tuple[bool | None, str]:
    """Whether IAM allows the deployer all that a deployment does, by its simulation."""
    iam = account.client("iam")
    principal = _principal(iam, account.user)
    if principal is None:
        return None, f"IAM does not simulate {account.user}. Deploy as a role or a user."
    target = Target(account.region, account.id)
    if denied := deployer.denied(iam, principal, stage=stage, target=target):
        more = f" and {len(denied) - SHOWN_RIGHTS} more" if len(denied) > SHOWN_RIGHTS else ""
        return False, (
            f"IAM denies {principal} {', '.join(denied[:SHOWN_RIGHTS])}{more}. Attach the policies "
            f"that python -m infra deployer-policy --stage {stage} prints."
        )
    return True, f"{principal} may make all {len(deployer.actions())} kinds of calls"


def _principal(iam: Any, arn: str) -> str | None:  # noqa: ANN401  boto3's own
    """Return the ARN of the user or role that is signed in; None if IAM cannot simulate it.

    The ARN of a session lacks the path of its role.
    """
    kind, _, name = arn.split(":", 5)[5].partition("/")
    if kind == "assumed-role":
        # A session's name follows its role's name, and IAM simulates only the role.
        role: str = iam.get_role(RoleName=name.split("/")[0])["Role"]["Arn"]
        return role
    return arn if kind == "user" else None


def table(findings: list[Finding]) -> str:
    """Return the results as a table."""
    marks = {True: "ok", False: "MISSING", None: "note"}
    width = max(len(finding.name) for finding in findings)
    return "\n".join(f"{marks[f.ok]:7}  {f.name:{width}}  {f.text}" for f in findings)
