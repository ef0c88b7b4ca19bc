"""A stage without an edge, and the edge that is added later."""

from pathlib import Path

import click
import pytest

from infra.deploy import published_settings
from infra.deploy.destruction import destroy
from tests.infra.conftest import REGION, Aws
from tests.infra.deploy.deployment.helpers import API, CHAT, Deploy, killed_before

pytestmark = pytest.mark.slow
CHAT_URL = f"https://chat.lambda-url.{REGION}.on.aws"
NAMES = ("PUBLIC_URL", "CHAT_URL", "EDGE_SECRET")


def addresses(aws: Aws, function: str = API) -> dict[str, str]:
    about = aws.client("lambda").get_function_configuration(FunctionName=function)
    variables = about["Environment"]["Variables"]
    return {name: variables[name] for name in NAMES if name in variables}


def direct(result: dict[str, str]) -> dict[str, str]:
    url = f"https://{result['apiId']}.execute-api.{REGION}.amazonaws.com/dev"
    return {"PUBLIC_URL": url, "CHAT_URL": CHAT_URL}


def test_the_base_url_is_that_of_the_api_and_no_secret_is_required(
    aws: Aws, deploy: Deploy
) -> None:
    result = deploy(edge="false")
    assert addresses(aws) == addresses(aws, CHAT) == direct(result)
    assert result["baseUrl"] == direct(result)["PUBLIC_URL"]
    assert (result["chatUrl"], result["distributionId"]) == (f"{CHAT_URL}/", None)
    assert not [line for line in aws.messages if "-edge" in line]
    assert published_settings.published(aws.account, "dev")["CHAT_URL"] == CHAT_URL


def test_the_next_deployment_and_a_rollback_keep_the_addresses(
    aws: Aws, deploy: Deploy, checkout: Path
) -> None:
    result = deploy(edge="false")
    assert deploy()["baseUrl"] == result["baseUrl"]
    assert addresses(aws) == direct(result)
    back = aws.deployment(checkout).rollback(None, break_lock=False, python=None)
    assert back["baseUrl"] == result["baseUrl"]
    assert addresses(aws) == direct(result)


@pytest.mark.parametrize("step", ["Stack workspace-api-dev-edge …", "Base URL"])
def test_an_edge_that_is_added_later_takes_over_at_the_end(
    aws: Aws, deploy: Deploy, step: str
) -> None:
    result = deploy(edge="false")
    with killed_before(aws, step):
        deploy(edge="true")
    assert addresses(aws) == direct(result)
    later = deploy()
    assert later["apiId"] == result["apiId"]
    new_addresses = addresses(aws)
    assert new_addresses["PUBLIC_URL"] == later["baseUrl"] == "https://d1.cloudfront.example"
    assert "CHAT_URL" not in new_addresses
    assert len(new_addresses["EDGE_SECRET"]) == 48
    assert "CHAT_URL" not in published_settings.published(aws.account, "dev")


def test_a_stage_with_an_edge_keeps_it(aws: Aws, deploy: Deploy, checkout: Path) -> None:
    deploy()
    with pytest.raises(click.ClickException, match=r"--no-edge: expected a stage without an edge"):
        deploy(edge="false")
    assert addresses(aws)["PUBLIC_URL"] == "https://d1.cloudfront.example"
    destroy(aws.deployment(checkout), break_lock=False, with_data=False)
    result = deploy(edge="false")
    assert addresses(aws) == direct(result)


def test_domains_need_the_edge(aws: Aws, deploy: Deploy) -> None:
    with pytest.raises(click.ClickException, match="expected no domain, received SitesDomain"):
        deploy(edge="false", sites_domain="sites.example")
    assert aws.client("cloudformation").list_stacks()["StackSummaries"] == []
