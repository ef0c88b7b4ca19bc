"""Read the addresses and secrets that commands need from a deployed stage."""

import socket
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import click
import requests

from infra.deploy import releases, stage_facts
from infra.deploy.aws import chalice_state
from infra.deploy.deployment import Deployment
from infra.deploy.smoke import TIMEOUT, Target

HEALTHY_SECONDS = 120.0
"""Longest time, in seconds, until a new distribution's name resolves on this machine."""


def addresses(deployment: Deployment) -> dict[str, Any]:
    """Return the addresses of a deployed stage, as ``Deployment.deploy`` returns them.

    Raises:
        click.ClickException: the stage has no functions, or no URL for its chat.
    """
    deployment.deployed()
    stage, edge = deployment.stage, deployment.stack("edge").outputs() or {}
    chat = deployment.stack("chat").outputs()
    resources = chalice_state.existing(deployment.account, stage)
    if not chat or not resources:
        msg = f"The stage {stage} has no functions or no chat. Run make deploy STAGE={stage}."
        raise click.ClickException(msg)
    api = chalice_state.value(resources, "rest_api", field="rest_api_url")
    return {
        "baseUrl": edge.get("BaseUrl") or api.rstrip("/"),
        "apiUrl": api,
        "chatUrl": chat["ChatFunctionUrl"],
        "distributionId": edge.get("DistributionId"),
    }


def smoke_target(deployment: Deployment, result: Mapping[str, Any]) -> Target:
    """Return what the smoke test needs to know of a stage with these addresses."""
    url, api, chat = result["baseUrl"], result["apiUrl"], result["chatUrl"]
    if result["distributionId"] is None:
        return Target(url, chat_url=chat.rstrip("/"))
    origins = tuple(filter(None, (api, chat)))
    return Target(url, origins=origins, edge_secret=edge_secret(deployment))


def edge_secret(deployment: Deployment) -> str:
    """Return the edge's secret, which signs the smoke test's tokens, or "" without an edge."""
    data = deployment.stack("data").outputs()
    return stage_facts.secret(deployment.account, data["EdgeSecretArn"])[0] if data else ""


def earlier_release(deployment: Deployment) -> str | None:
    """Return the id of the release that a rollback would deploy, or None without such a release."""
    try:
        _, store = deployment.deployed()
        return releases.previous(store).id
    except click.ClickException:
        return None


def is_in_dns(url: str) -> bool:
    """Whether the host of a URL resolves."""
    try:
        return bool(socket.getaddrinfo(urlsplit(url).hostname, None))
    except socket.gaierror:
        return False


def wait_until_healthy(url: str, pause: float = 3.0) -> None:
    """Wait until a new service responds, or silently until the time limit."""
    ends = time.monotonic() + HEALTHY_SECONDS
    while time.monotonic() < ends:
        try:
            if requests.get(f"{url}/api/health", timeout=TIMEOUT).ok:
                return
        except requests.RequestException:
            pass
        time.sleep(pause)
