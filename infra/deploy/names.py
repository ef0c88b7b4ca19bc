"""Names of a stage's AWS resources that several modules use."""

from infra.deploy.policies import API, QUEUE

APP = "workspace-api"
"""``app_name`` of .chalice/config.json; also the name of the REST API."""


def function_name(stage: str, *, function: str) -> str:
    """Return Chalice's name of a function, which is the stage's name and the function's own."""
    return f"{APP}-{stage}" + ("" if function == API else f"-{function}")


def configuration_set(stage: str) -> str:
    """Return the name of the configuration set with which SES reports on a stage's messages."""
    return f"{APP}-{stage}"


def queue_url(stage: str, *, region: str, account: str) -> str:
    """Return the URL of the queue that wakes the runner of events (SQS developer guide)."""
    return f"https://sqs.{region}.amazonaws.com/{account}/{APP}-{stage}-{QUEUE}"
