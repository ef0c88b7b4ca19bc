"""Tenants of customers' domains, deleted before their distribution."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from infra.deploy.aws import site_tenants
from infra.deploy.progress import Progress

KEPT = "workspace-api-dev-sites"


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    monkeypatch.setattr(site_tenants, "POLL_SECONDS", 0)
    client = boto3.client(
        "cloudfront", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


def tenant(name: str, *, enabled: bool, status: str = "Deployed") -> dict[str, Any]:
    domains = [{"Domain": f"{name}.example", "Status": "active"}]
    times = {"CreatedTime": "2026-01-01T00:00:00Z", "LastModifiedTime": "2026-01-01T00:00:00Z"}
    about = {"Id": f"dt_{name}", "DistributionId": "E1", "Name": name, "Arn": "arn:one"}
    return {**about, **times, "Domains": domains, "ETag": "v", "Enabled": enabled, "Status": status}


def stub_tenants(
    stub: Stubber, *tenants: dict[str, Any], marker: str = "", following: str = ""
) -> None:
    query: dict[str, Any] = {"AssociationFilter": {"DistributionId": "E1"}}
    answer: dict[str, Any] = {"DistributionTenantList": list(tenants)}
    stub.add_response(
        "list_distribution_tenants",
        answer | ({"NextMarker": following} if following else {}),
        query | ({"Marker": marker} if marker else {}),
    )


def test_tenants_are_disabled_then_deleted_and_the_stacks_own_stays(stub: Stubber) -> None:
    own_tenant = tenant(KEPT, enabled=True)
    stub_tenants(stub, own_tenant, tenant("one", enabled=True), following="next")
    stub_tenants(stub, tenant("two", enabled=False), marker="next")
    stub.add_response(
        "update_distribution_tenant", {}, {"Id": "dt_one", "IfMatch": "v", "Enabled": False}
    )
    stub.add_response("delete_distribution_tenant", {}, {"Id": "dt_two", "IfMatch": "v"})
    stub_tenants(stub, own_tenant, tenant("one", enabled=False, status="InProgress"))
    stub_tenants(stub, own_tenant, tenant("one", enabled=False))
    stub.add_client_error("delete_distribution_tenant", "ResourceNotDisabled")
    stub_tenants(stub, own_tenant, tenant("one", enabled=False))
    stub.add_client_error("delete_distribution_tenant", "EntityNotFound")
    stub_tenants(stub, own_tenant)
    messages: list[str] = []
    site_tenants.delete(stub.client, "E1", kept_name=KEPT, progress=Progress(messages.append))
    assert any("one.example" in line for line in messages)


def test_a_refusal_stops_the_deletion(stub: Stubber) -> None:
    stub_tenants(stub, tenant("one", enabled=True))
    stub.add_client_error("update_distribution_tenant", "AccessDenied")
    with pytest.raises(stub.client.exceptions.AccessDenied):
        site_tenants.delete(stub.client, "E1", kept_name=KEPT, progress=Progress(lambda _: None))
