"""Reads the facts of a stage from AWS: stack outputs, secrets and reserved concurrency."""

from botocore.exceptions import ClientError

from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import Stack
from infra.deploy.aws.errors import code
from infra.deploy.names import function_name
from infra.deploy.operator_choices import OperatorChoices
from infra.deploy.policies import FUNCTIONS
from infra.deploy.progress import Progress
from infra.deploy.stage_config import CHAT, JOBS, StageFacts

MINIMUM_UNRESERVED = 100
"""Concurrency that must stay unreserved (Lambda developer guide, Reserved concurrency)."""
MINIMUM_CHAT = 50
"""The smallest reservation for the chat. A smaller one would limit chats more than it protects."""


def read(
    account: Account, stage: str, data: dict[str, str], choices: OperatorChoices
) -> StageFacts:
    """Return the facts of a stage whose data stack exists.

    Without a domain, the base URL is CloudFront's. It and what serves customers' domains are known
    once the edge stack exists.
    """
    edge = Stack(account, stage, "edge", Progress())
    outputs = edge.outputs() or {}
    same = edge.parameters().get("Domain", "") == choices.domain
    known = outputs.get("BaseUrl", "") if same else ""
    arn = data["EdgeSecretArn"]
    current, version = secret(account, arn)
    sent = outputs.get("EdgeSecretVersion", version)
    return StageFacts(
        bucket=data["BucketName"],
        public_url=f"https://{choices.domain}" if choices.domain else known,
        sites_domain=choices.sites_domain,
        site_hosts=outputs.get("SiteHostsSetting", ""),
        table_prefix=choices.table_prefix,
        edge_secret=current,
        edge_secret_version=version,
        edge_secret_previous="" if sent == version else secret(account, arn, VersionId=sent)[0],
        reserved=reservations(account, stage),
        variables={"LLM_API_KEY_SECRET": data["LlmKeySecretArn"]},
    )


def reservations(account: Account, stage: str) -> dict[str, int]:
    """Return the concurrency to reserve by function; 0 for functions that were stopped.

    A reservation is also an upper limit. The jobs reserve one run: without it, overlapping runs
    share the work (ADR 13). The chat reserves half of the rest, so that slow chats leave as many
    runs to the API. The stage's own reservations count as available, so that a deployment finds the
    same values again.
    """
    held = {name: _reserved(account, stage, name) for name in FUNCTIONS}
    free = unreserved(account) + sum(filter(None, held.values())) - MINIMUM_UNRESERVED
    wanted = {JOBS: 1} if free > 0 else {}
    if (half := (free - 1) // 2) >= MINIMUM_CHAT:
        wanted[CHAT] = half
    return wanted | {name: 0 for name, runs in held.items() if runs == 0}


def _reserved(account: Account, stage: str, name: str) -> int | None:
    """Return the reserved concurrency of a function; None if it has none."""
    client, function = account.client("lambda"), function_name(stage, name)
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
    """Return a version of a secret, and its id. Both are "" if there is none."""
    try:
        answer = account.client("secretsmanager").get_secret_value(SecretId=arn, **which)
    except ClientError as error:
        if code(error) == "ResourceNotFoundException":
            return "", ""
        raise
    return str(answer["SecretString"]).strip(), str(answer["VersionId"])
