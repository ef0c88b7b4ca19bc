"""Distribution tenants that the service made for customers' domains, deleted with their stage."""

import time
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from infra.deploy.aws.errors import code
from infra.deploy.progress import Progress

POLL_SECONDS = 15.0
_LATER = {"EntityNotFound", "InvalidIfMatchVersion", "PreconditionFailed", "ResourceNotDisabled"}
"""Errors of a tenant that another process is changing or has deleted."""


def delete(client: Any, distribution: str, *, kept_name: str, progress: Progress) -> None:  # noqa: ANN401  boto3's own
    """Delete all tenants of a distribution but the one named ``kept_name``, and wait for that.

    CloudFront deletes no distribution with tenants, and no tenant that is enabled anywhere.
    """
    while tenants := [
        tenant for tenant in _list(client, distribution) if tenant["Name"] != kept_name
    ]:
        for tenant in tenants:
            names = ", ".join(domain["Domain"] for domain in tenant["Domains"])
            try:
                if tenant.get("Enabled", True):
                    progress.note(f"{names}: no longer served")
                    client.update_distribution_tenant(
                        Id=tenant["Id"], IfMatch=tenant["ETag"], Enabled=False
                    )
                elif tenant.get("Status") == "Deployed":
                    client.delete_distribution_tenant(Id=tenant["Id"], IfMatch=tenant["ETag"])
            except ClientError as error:
                if code(error) not in _LATER:
                    raise
        time.sleep(POLL_SECONDS)


def _list(client: Any, distribution: str) -> Iterator[dict[str, Any]]:  # noqa: ANN401  boto3's own
    query: dict[str, Any] = {"AssociationFilter": {"DistributionId": distribution}}
    while True:
        page = client.list_distribution_tenants(**query)
        yield from page.get("DistributionTenantList", ())
        if not page.get("NextMarker"):
            return
        query["Marker"] = page["NextMarker"]
