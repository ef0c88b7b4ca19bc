"""Facts of a deployed stage that the commands need after a deployment: addresses and secrets."""

import click

from infra.deploy import releases, stage_facts
from infra.deploy.aws import chalice_state
from infra.deploy.deployment import Deployment


def addresses(deployment: Deployment) -> tuple[str, tuple[str, ...]]:
    """Return the base URL of a deployed stage, and the URLs of the origins behind it.

    Raises:
        click.ClickException: the stage has no functions or no edge.
    """
    _, store = deployment.deployed()
    stage, edge = deployment.stage, deployment.stack("edge").outputs()
    resources = chalice_state.existing(deployment.account, store, stage)
    if not edge or not resources:
        msg = f"The stage {stage} has no edge. Run make deploy STAGE={stage}."
        raise click.ClickException(msg)
    api = chalice_state.value(resources, "rest_api", "rest_api_url")
    return edge["BaseUrl"], (api, edge["ChatFunctionUrl"])


def edge_secret(deployment: Deployment) -> str:
    """Return the edge's secret, which signs the tokens of the smoke test; "" if there is none."""
    data = deployment.stack("data").outputs()
    return stage_facts.secret(deployment.account, data["EdgeSecretArn"])[0] if data else ""


def earlier_release(deployment: Deployment) -> str | None:
    """Return the id of the release that a rollback would deploy, or None if there is none."""
    try:
        _, store = deployment.deployed()
        return releases.previous(store).id
    except click.ClickException:
        return None
