"""IAM policies, one for each function, generated from tables, stage and bucket (ADR 17).

``stage_config`` writes them into the stage's copy of the project. ``make package`` uses
placeholders for region and account; a deployment uses the signed-in user's.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chalicelib.core.settings import Settings, read
from chalicelib.gateways.site_hosts import STAGE_TAG

API = "api_handler"
"""Chalice's name of the function behind all routes."""

QUEUE = "events"
"""The end of the name of the queue whose messages wake the runner of events."""
MAIL_QUEUE = "mail-feedback"
"""The end of the name of the queue with the reports of SES."""

FILES, HTML, UPLOADS, ANSWERS = "files/*", "*/sites/*", "*/uploads/*", "*/answers/*"
KNOWLEDGE, EXPORTS, IMPORTS = "*/knowledge/*", "*/exports/*", "*/imports/*"
"""Keys of objects: public files, pages, uploads in progress, long answers, the bots' knowledge,
exports of workspaces, and the rows of imports until they are sent.

A long answer is stored for requests that are repeated under its idempotency key. Deployments store
other objects in the same bucket (ADR 35).
"""

Actions = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """Rights of a function: the actions on rows of each table, and on each kind of object.

    ``indexes`` are the indexes of ``content`` that it queries. ``models`` allows it to call
    Bedrock, and to read the secret with the key of another provider. ``telegram`` allows it to
    read the secrets with the tokens of the bots at Telegram and MAX, and ``sms`` the secret with
    the key of the SMS provider. ``hosts`` allows it to serve
    customers' domains: to write claims on domains, and to change distribution tenants of CloudFront
    that have the stage's tag. ``ends_claims`` allows it to delete claims, such as those of slugs,
    and the memberships of a deleted workspace, and no other row of ``identity``. ``master_key``
    allows it to read the secret with the master key.
    ``woken`` lets Lambda run it for messages that wake the runner of events, and for the reports of
    SES. ``mails`` allows it to send e-mails by SES, from the domain of ``MAIL_FROM`` and with the
    configuration set only.

    The rights are measured: ``tests/support/policy_check.py`` reports each right that is missing or
    not needed. A write in a transaction needs the right to that write, and a condition check needs
    its own right. IAM has no right to the transaction itself (DynamoDB developer guide, Using IAM
    with DynamoDB transactions).

    The audit log is append-only, so no function has ``UpdateItem`` or ``DeleteItem`` on it. No
    function may delete from the ledger.
    """

    tables: Mapping[str, Actions]
    indexes: Actions
    objects: Mapping[str, Actions] = field(default_factory=dict)
    models: bool = False
    telegram: bool = False
    sms: bool = False
    hosts: bool = False
    ends_claims: bool = False
    master_key: bool = False
    woken: bool = False
    mails: bool = False


_EVERY = (
    "BatchGetItem",
    "ConditionCheckItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "UpdateItem",
)
# Partitions of ``identity`` whose rows the runner of jobs may delete.
ENDED = ("CLAIM#*", "ACCOUNT#*#WORKSPACES", "DIRECTORY#*", "W#*#MEMBER")
# Partitions of ``identity`` to which it may write: what assistants find of listed businesses.
LISTED = ("DIRECTORY#*",)
FUNCTIONS: Mapping[str, Access] = {
    API: Access(
        tables={
            "identity": _EVERY,
            "content": _EVERY,
            "conversations": (
                *("BatchGetItem", "ConditionCheckItem", "GetItem", "PutItem", "Query"),
                "UpdateItem",
            ),
            # It queries the stored answers, to erase the answers that name a client.
            "control": (
                *("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
            ),
            # Balance, entries and limits. A top-up is credited; this function charges nothing.
            "ledger": ("GetItem", "PutItem", "Query", "UpdateItem"),
            "audit": ("PutItem", "Query"),
        },
        indexes=("by_o1", "by_o2", "by_o3", "by_o4", "by_row"),
        objects={
            FILES: ("DeleteObject", "GetObject", "PutObject"),
            HTML: ("DeleteObject", "GetObject", "PutObject"),
            UPLOADS: ("DeleteObject", "GetObject", "PutObject"),
            ANSWERS: ("DeleteObject", "GetObject", "PutObject"),
            # Assistants of visitors search what a bot knows.
            KNOWLEDGE: ("DeleteObject", "GetObject", "PutObject"),
            # For the URLs by which they are downloaded.
            EXPORTS: ("GetObject",),
            # The rows of an import that starts, and its refused rows.
            IMPORTS: ("DeleteObject", "GetObject", "PutObject"),
        },
        models=True,
        master_key=True,
        telegram=True,
    ),
    "run-jobs": Access(
        tables={
            # The members of a workspace, and what they want, after a membership has ended. A listed
            # business is as its workspace was read.
            "identity": ("BatchGetItem", "ConditionCheckItem", "GetItem", "Query", "UpdateItem"),
            "content": _EVERY,
            "conversations": ("BatchGetItem", "DeleteItem", "GetItem", "Query", "UpdateItem"),
            # An import stores the outcomes of its calls, and finds them when it is repeated.
            "control": ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
            # An export reads the limits of bots.
            "ledger": ("BatchGetItem", "GetItem", "PutItem", "Query", "UpdateItem"),
            # When a test workspace was last changed.
            "audit": ("PutItem", "Query"),
        },
        indexes=("by_o1", "by_row"),
        objects={
            # An import stores the images of its products.
            FILES: ("DeleteObject", "GetObject", "PutObject"),
            HTML: ("DeleteObject", "GetObject"),
            UPLOADS: ("DeleteObject",),
            ANSWERS: ("DeleteObject",),
            KNOWLEDGE: ("DeleteObject", "GetObject", "PutObject"),
            EXPORTS: ("AbortMultipartUpload", "DeleteObject", "GetObject", "PutObject"),
            IMPORTS: ("DeleteObject", "GetObject", "PutObject"),
        },
        hosts=True,
        ends_claims=True,
        master_key=True,
    ),
    "run-events": Access(
        tables={
            # The members to tell, and what they have chosen.
            "identity": ("BatchGetItem", "GetItem", "Query", "UpdateItem"),
            # The records of events, as the API shows them at each attempt.
            # A payment confirms its booking, and a chat that is gone ends its links.
            "content": (
                *("BatchGetItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PutItem"),
                *("Query", "UpdateItem"),
            ),
            # The counters of what SMS cost.
            "conversations": ("Query", "UpdateItem"),
            "control": ("DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
            # A top-up is credited, and an SMS is charged.
            "ledger": ("GetItem", "PutItem", "UpdateItem"),
            "audit": ("PutItem",),
        },
        # The record of a client names the newest leads, which a small list reads by row.
        indexes=("by_o1", "by_row"),
        # The record of a page has its HTML.
        objects={HTML: ("GetObject",)},
        master_key=True,
        telegram=True,
        sms=True,
        woken=True,
        mails=True,
    ),
    "chat-stream": Access(
        tables={
            "identity": ("BatchGetItem", "GetItem"),
            "content": ("BatchGetItem", "GetItem", "PutItem", "Query", "UpdateItem"),
            "conversations": (
                *("BatchGetItem", "ConditionCheckItem", "GetItem", "PutItem", "Query"),
                "UpdateItem",
            ),
            "control": ("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "UpdateItem"),
            # A hold is read after a lost response, to find out whether it was made or settled.
            "ledger": ("BatchGetItem", "GetItem", "PutItem", "UpdateItem"),
            "audit": ("PutItem",),
        },
        indexes=("by_row",),
        objects={KNOWLEDGE: ("GetObject",)},
        models=True,
        # It encrypts sessions in stored answers.
        master_key=True,
    ),
}
"""Rights by function name in .chalice/config.json. Chalice packages no function without a policy.
"""


@dataclass(frozen=True, slots=True)
class Target:
    """Region and account of a deployment, or placeholders until they are known."""

    region: str = "${AWS::Region}"
    account: str = "${AWS::AccountId}"


def file_name(function: str) -> str:
    """Return the file name of a function's policy in ``.chalice``, as config.json has it."""
    return f"policy-{function}.json"


def write(folder: Path, stage: str, target: Target) -> list[Path]:
    """Write the policies of a stage's functions next to its config, and return the files."""
    config = json.loads((folder / "config.json").read_text())
    files = []
    for function in FUNCTIONS:
        file = folder / file_name(function)
        file.write_text(
            json.dumps(policy(config, stage, function=function, target=target), indent=2) + "\n"
        )
        files.append(file)
    return files


def replace_table_prefix(project: Path, stage: str, *, old_prefix: str, now: str) -> None:
    """Replace the table prefix in the policies of a copy of the project."""
    for file in (project / ".chalice").glob(file_name("*")):
        text = file.read_text().replace(f":table/{old_prefix}-{stage}-", f":table/{now}-{stage}-")
        file.write_text(text)


def policy(config: dict[str, Any], stage: str, *, function: str, target: Target) -> dict[str, Any]:
    """Return the policy of a stage's function, based on the stage's generated config."""
    settings = read(config["stages"][stage]["environment_variables"])
    access = FUNCTIONS[function]
    bucket = f"arn:aws:s3:::{settings.object_store.removeprefix('s3://')}"
    # A bucket's ARN has no account, and other accounts can take its name after the deletion.
    ours = {"StringEquals": {"aws:ResourceAccount": target.account}}
    name = f"{config['app_name']}-{stage}" + ("" if function == API else f"-{function}")
    logs = f"arn:aws:logs:{target.region}:{target.account}:log-group:/aws/lambda/{name}"
    tables = {table: _table(settings, table, target) for table in access.tables}
    indexes = [f"{tables['content']}/index/{index}" for index in access.indexes]
    statements = [
        *(
            _allow(table.title(), service="dynamodb", actions=access.tables[table], resources=[arn])
            for table, arn in tables.items()
        ),
        _allow("Indexes", service="dynamodb", actions=["Query"], resources=indexes),
        # Lambda writes the output. The data stack creates the log group, with its retention.
        _allow(
            "Logs",
            service="logs",
            actions=["CreateLogStream", "PutLogEvents"],
            resources=[f"{logs}:*"],
        ),
        # Lambda's X-Ray daemon sends traces. X-Ray has no resource-level permissions.
        _allow(
            "Traces",
            service="xray",
            actions=["PutTelemetryRecords", "PutTraceSegments"],
            resources=["*"],
        ),
    ]
    statements += [
        _allow(f"Objects{number}", service="s3", actions=actions, resources=[f"{bucket}/{keys}"])
        | {"Condition": ours}
        for number, (keys, actions) in enumerate(access.objects.items())
    ]
    if access.objects:
        # Without this right, S3 responds with 403 instead of 404 for a missing object.
        statements.append(
            _allow("ObjectNames", service="s3", actions=["ListBucket"], resources=[bucket])
            | {"Condition": ours}
        )
    if access.models:
        models, profiles = _models(target)
        statements += [
            # Rights for ConverseStream (Bedrock user guide, Prerequisites for inference).
            _allow(
                "Models",
                service="bedrock",
                actions=["InvokeModelWithResponseStream"],
                resources=[models, profiles],
            ),
            _allow(
                "Profiles", service="bedrock", actions=["GetInferenceProfile"], resources=[profiles]
            ),
        ]
    if access.models and settings.llm_api_key_secret:
        secret = settings.llm_api_key_secret
        statements.append(
            _allow(
                "ModelKey", service="secretsmanager", actions=["GetSecretValue"], resources=[secret]
            )
        )
    if access.master_key and settings.master_key_secret:
        secret = settings.master_key_secret
        statements.append(
            _allow(
                "MasterKey",
                service="secretsmanager",
                actions=["GetSecretValue"],
                resources=[secret],
            )
        )
    queues = f"arn:aws:sqs:{target.region}:{target.account}:{config['app_name']}-{stage}"
    # Each function writes jobs of events, the runner's own jobs included.
    statements.append(
        _allow("Wakes", service="sqs", actions=["SendMessage"], resources=[f"{queues}-{QUEUE}"])
    )
    if access.woken:
        # Lambda polls the queues in the name of the function.
        polls = ["DeleteMessage", "GetQueueAttributes", "ReceiveMessage"]
        polled = [f"{queues}-{QUEUE}", f"{queues}-{MAIL_QUEUE}"]
        statements.append(_allow("Messages", service="sqs", actions=polls, resources=polled))
    if access.mails and settings.mail == "ses":
        statements.append(_mails(settings, target))
    statements += _keys_to_write(settings, access)
    if access.ends_claims:
        keys = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(ENDED)}}
        statements.append(
            _allow(
                "EndedClaims",
                service="dynamodb",
                actions=["DeleteItem"],
                resources=[tables["identity"]],
            )
            | {"Condition": keys}
        )
        listed = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(LISTED)}}
        statements.append(
            _allow(
                "ListedBusinesses",
                service="dynamodb",
                actions=["PutItem"],
                resources=[tables["identity"]],
            )
            | {"Condition": listed}
        )
    if access.hosts:
        statements += _hosts(stage, identity=tables["identity"], target=target)
    return {"Version": "2012-10-17", "Statement": statements}


def _hosts(stage: str, *, identity: str, target: Target) -> list[dict[str, Any]]:
    """Return the statements for hosts of customers' domains.

    CloudFront requests the certificate in the name of the caller, who therefore needs rights of
    Certificate Manager. Neither that request nor the creation of a tenant has a resource yet.
    """
    tenants = f"arn:aws:cloudfront::{target.account}:distribution-tenant/*"
    claims = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["CLAIM#domain#*"]}}
    tag_condition = {"StringEquals": {f"aws:RequestTag/{STAGE_TAG}": stage}}
    ours = {"StringEquals": {f"aws:ResourceTag/{STAGE_TAG}": stage}}
    changes = (
        "DeleteDistributionTenant",
        "GetDistributionTenant",
        "GetManagedCertificateDetails",
        "UpdateDistributionTenant",
    )
    certificates = ("DescribeCertificate", "RequestCertificate")
    return [
        _allow(
            "DomainClaims",
            service="dynamodb",
            actions=["PutItem", "UpdateItem"],
            resources=[identity],
        )
        | {"Condition": claims},
        _allow(
            "NewHosts", service="cloudfront", actions=["CreateDistributionTenant"], resources=["*"]
        )
        | {"Condition": tag_condition},
        _allow("HostTags", service="cloudfront", actions=["TagResource"], resources=[tenants])
        | {"Condition": tag_condition},
        _allow("Hosts", service="cloudfront", actions=changes, resources=[tenants])
        | {"Condition": ours},
        _allow("Certificates", service="acm", actions=certificates, resources=["*"]),
    ]


def _keys_to_write(settings: Settings, access: Access) -> list[dict[str, Any]]:
    """Return the statements for the secrets by which messages to people are sent."""
    messengers = {
        "MaxToken": settings.max_token_secret,
        "TelegramToken": settings.telegram_bot_token_secret,
    }
    secrets = messengers if access.telegram else {}
    if access.sms and settings.sms != "off":
        secrets["SmsKey"] = settings.sms_key_secret
    return [
        _allow(name, service="secretsmanager", actions=["GetSecretValue"], resources=[secret])
        for name, secret in secrets.items()
        if secret
    ]


def _mails(settings: Settings, target: Target) -> dict[str, Any]:
    """Return the statement for e-mails from the sender's domain, verified by the operator."""
    here = f"arn:aws:ses:{target.region}:{target.account}"
    resources = [f"{here}:identity/{settings.mail_from.rpartition('@')[2]}"]
    if settings.mail_ses_configuration_set:
        resources.append(f"{here}:configuration-set/{settings.mail_ses_configuration_set}")
    return _allow("Mails", service="ses", actions=["SendEmail"], resources=resources)


def _models(target: Target) -> tuple[str, str]:
    """Return the ARNs of Bedrock's models in any region and of their inference profiles."""
    return (
        "arn:aws:bedrock:*::foundation-model/*",
        f"arn:aws:bedrock:{target.region}:{target.account}:inference-profile/*",
    )


def _table(settings: Settings, table: str, target: Target) -> str:
    name = settings.table_name(table)
    return f"arn:aws:dynamodb:{target.region}:{target.account}:table/{name}"


def _allow(
    sid: str, *, service: str, actions: Iterable[str], resources: Iterable[str]
) -> dict[str, Any]:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": [f"{service}:{action}" for action in actions],
        "Resource": list(resources),
    }
