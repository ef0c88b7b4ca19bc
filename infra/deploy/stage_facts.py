"""Read the addresses, secrets and reserved concurrency of a stage from AWS."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from infra.deploy import published_settings
from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import Stack
from infra.deploy.aws.errors import code
from infra.deploy.names import function_name, queue_url
from infra.deploy.policies import FUNCTIONS
from infra.deploy.progress import Progress
from infra.deploy.stage_config import CHAT, EVENT_RUNS, EVENTS, JOB_RUNS, JOBS, StageFacts

MINIMUM_UNRESERVED = 100
"""Concurrency that must be left unreserved (Lambda developer guide, Reserved concurrency)."""
MINIMUM_CHAT = 50
"""The smallest reservation for the chat. A smaller one would limit chats more than it protects."""

RESERVING = frozenset({JOBS, EVENTS, CHAT})
"""The functions that reserve concurrency."""


def read(
    account: Account, stage: str, data: Mapping[str, str], *, choices: Mapping[str, str]
) -> StageFacts:
    """Return the facts of a stage whose data stack exists.

    Args:
        account: the account and the region of the stage.
        stage: the stage.
        data: the outputs of its data stack.
        choices: the parameters of its data stack.
    """
    facts = StageFacts(
        bucket=data["BucketName"],
        sites_domain=choices["SitesDomain"],
        table_prefix=choices["TablesInUse"],
        reserved=reservations(account, stage),
        variables={
            "LLM_API_KEY_SECRET": data["LlmKeySecretArn"],
            # The data stack of an older deployment lacks these until the next complete one.
            "MASTER_KEY_SECRET": data.get("MasterKeySecretArn", ""),
            "MAX_TOKEN_SECRET": data.get("MaxTokenSecretArn", ""),
            "TELEGRAM_BOT_TOKEN_SECRET": data.get("TelegramTokenSecretArn", ""),
            "SMS_KEY_SECRET": data.get("SmsKeySecretArn", ""),
            # The queue is created after the functions.
            "EVENTS_QUEUE_URL": queue_url(stage, region=account.region, account=account.id),
        },
    )
    return replace(facts, **_addresses(account, stage, data, choices=choices))


def _addresses(
    account: Account, stage: str, data: Mapping[str, str], *, choices: Mapping[str, str]
) -> dict[str, Any]:
    """Return the facts about the stage's addresses, and the secrets that the edge adds.

    A stage without an edge keeps its addresses until its new edge exists, so that the stage
    responds in the meantime. Without a domain, the base URL of an edge is CloudFront's. It and what
    serves customers' domains are known once the edge stack exists.
    """
    edge = Stack(account, stage, "edge", Progress())
    edge_outputs = edge.outputs()
    published = published_settings.published(account, stage)
    if choices["Edge"] == "false" or ("CHAT_URL" in published and edge_outputs is None):
        return {
            "public_url": published.get("PUBLIC_URL", ""),
            "chat_url": published.get("CHAT_URL", ""),
        }
    outputs = edge_outputs or {}
    same = edge.parameters().get("Domain", "") == choices["Domain"]
    known_url = outputs.get("BaseUrl", "") if same else ""
    arn = data["EdgeSecretArn"]
    current, version = secret(account, arn)
    sent_version = outputs.get("EdgeSecretVersion", version)
    return {
        "public_url": f"https://{choices['Domain']}" if choices["Domain"] else known_url,
        "site_hosts": outputs.get("SiteHostsSetting", ""),
        "edge_secret": current,
        "edge_secret_version": version,
        "edge_secret_previous": ""
        if sent_version == version
        else secret(account, arn, VersionId=sent_version)[0],
    }


def reservations(account: Account, stage: str) -> dict[str, int]:
    """Return the concurrency to reserve by function; 0 for functions that were stopped.

    A reservation is also an upper limit. The jobs reserve ``JOB_RUNS``, which share the work
    (ADR 13), and the runner of events ``EVENT_RUNS``. The chat reserves half of the rest, so that
    slow chats leave as many runs to the API. The stage's own reservations count as available, so
    that a deployment finds the same values again.
    """
    reserved_runs = {name: _reserved(account, stage, name=name) for name in FUNCTIONS}
    free = unreserved(account) + sum(filter(None, reserved_runs.values())) - MINIMUM_UNRESERVED
    wanted_runs = {JOBS: JOB_RUNS} if free >= JOB_RUNS else {}
    if free >= JOB_RUNS + EVENT_RUNS:
        wanted_runs[EVENTS] = EVENT_RUNS
    if (half := (free - JOB_RUNS - EVENT_RUNS) // 2) >= MINIMUM_CHAT:
        wanted_runs[CHAT] = half
    return wanted_runs | {name: 0 for name, runs in reserved_runs.items() if runs == 0}


def _reserved(account: Account, stage: str, *, name: str) -> int | None:
    """Return the reserved concurrency of a function, or None without a reservation."""
    client, function = account.client("lambda"), function_name(stage, function=name)
    try:
        answer = client.get_function_concurrency(FunctionName=function)
    except ClientError as error:
        if code(error) != "ResourceNotFoundException":
            raise
        return None
    runs: int | None = answer.get("ReservedConcurrentExecutions")
    return runs


def unreserved(account: Account) -> int:
    """Return the account's unreserved concurrency."""
    limits = account.client("lambda").get_account_settings()["AccountLimit"]
    return int(limits["UnreservedConcurrentExecutions"])


def secret(account: Account, arn: str, **which: str) -> tuple[str, str]:
    """Return a version of a secret and its id, or "" for both without such a version."""
    try:
        answer = account.client("secretsmanager").get_secret_value(SecretId=arn, **which)
    except ClientError as error:
        if code(error) == "ResourceNotFoundException":
            return "", ""
        raise
    return str(answer["SecretString"]).strip(), str(answer["VersionId"])
