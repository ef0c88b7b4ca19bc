"""Hosts of customers' sites, with TLS and routing for domains that customers own (ADR 48).

On AWS each host is a distribution tenant of CloudFront, with a certificate that CloudFront manages.
A tenant is found by its name, which follows from stage and host. So no id is stored, and the next
step finds everything that a lost response leaves behind. CloudFront creates a tenant only for a
host whose DNS record leads to CloudFront already. It then has a certificate made, which ``serve``
attaches once it is issued. Only then is the domain active (CloudFront developer guide, Request
certificates for your CloudFront distribution tenant). The local server finds the site by the
``Host`` header, without set-up.
"""

import hashlib
import logging
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol, Self

from chalicelib.core.errors import UnavailableError
from chalicelib.core.settings import settings

STAGE_TAG = "workspace-api-stage"  # The functions may change tenants of their own stage only.
# CloudFront is global. Its requests are signed for this region (AWS general reference).
_REGION = "us-east-1"
CONNECT_SECONDS = 2
READ_SECONDS = 7
# A step takes three requests. A run of jobs has 60 seconds left for the jobs it began last. With
# its defaults, botocore waits for minutes for each request.
ATTEMPTS = 2
_GONE = "EntityNotFound"
_CHANGED_MEANWHILE = {"PreconditionFailed", "InvalidIfMatchVersion"}
LOOPBACK = "127.0.0.1"
# Names below ``localhost`` lead to the machine itself, and no DNS has them (RFC 6761, 6.3).
LOCALHOST = ".localhost"


class Address(NamedTuple):
    """Type and value of the DNS record that leads a host to the installation."""

    type: str
    value: str


class HostState(NamedTuple):
    """Progress of a host."""

    # ``waiting``: the DNS does not lead here. ``certificate``: the TLS certificate is being made.
    state: Literal["waiting", "certificate", "active", "failed"]
    reason: str | None = None  # for a wait or a failure


class SiteHosts(Protocol):
    """A gateway for hosts. Calls may be repeated: each reads the state and changes the rest."""

    def address(self, *, apex: bool) -> Address:
        """Return the record to set. An ``apex`` is a domain without a further label."""

    def proves(self, host: str) -> bool:
        """Whether a host needs no proof of ownership."""

    def serve(self, host: str) -> HostState:
        """Take the next step towards serving a host; return its state or raise UnavailableError."""

    def release(self, host: str) -> bool:
        """Take a step towards no longer serving a host, as ``serve``; return whether it is done."""


class LocalHosts:
    """Hosts of the local server, which serves every domain that a site has proven."""

    def address(self, *, apex: bool) -> Address:  # noqa: ARG002  the protocol's
        return Address("A", LOOPBACK)

    def proves(self, host: str) -> bool:
        return host.endswith(LOCALHOST)

    def serve(self, host: str) -> HostState:  # noqa: ARG002
        return HostState("active")

    def release(self, host: str) -> bool:  # noqa: ARG002
        return True


_MAKING = HostState("certificate", "The TLS certificate is being made, which takes minutes.")

log = logging.getLogger(__name__)


class CloudFrontHosts:
    """Tenants of one multi-tenant distribution, behind one connection group."""

    def __init__(self, distribution: str, *, group: str, endpoint: str, stage: str) -> None:
        self._distribution, self._group, self._endpoint = distribution, group, endpoint
        self._stage = stage

    @classmethod
    def from_setting(cls, setting: str, *, stage: str) -> Self:
        """Return the gateway for ``cloudfront:<distribution>/<connection group>/<endpoint>``."""
        distribution, group, endpoint = setting.removeprefix("cloudfront:").split("/")
        return cls(distribution, group=group, endpoint=endpoint, stage=stage)

    def address(self, *, apex: bool) -> Address:
        # An apex cannot have a CNAME (RFC 1034, 3.6.2). Providers of DNS call its replacement
        # ALIAS, ANAME or a flattened CNAME.
        return Address("ALIAS" if apex else "CNAME", self._endpoint)

    def proves(self, host: str) -> bool:  # noqa: ARG002  the protocol's
        return False  # Every domain needs a proof.

    def serve(self, host: str) -> HostState:
        tenant_and_version = self._find(host)
        if tenant_and_version is None:
            return self._create(host)
        tenant, version = tenant_and_version
        if not tenant.get("Enabled", True):
            return self._update(tenant, version, Enabled=True)
        if _is_active(tenant):
            return HostState("active")
        return self._attach_certificate(tenant, version)

    def release(self, host: str) -> bool:
        """Disable the tenant of a host, then delete it; return whether it is gone."""
        # CloudFront may have created the tenant although its response was lost.
        tenant_and_version = self._find(host)
        if tenant_and_version is None:
            return True
        tenant, version = tenant_and_version
        if tenant.get("Enabled", True):
            disabled = self._call(
                "update_distribution_tenant",
                _CHANGED_MEANWHILE,
                Id=tenant["Id"],
                IfMatch=version,
                Enabled=False,
            )
            # Another run has changed the tenant. The next step reads it again.
            if isinstance(disabled, str):
                return False
            version = disabled["ETag"]
        # CloudFront deletes a disabled tenant only after all its locations have disabled it.
        refusals = {_GONE, "ResourceNotDisabled", *_CHANGED_MEANWHILE}
        deleted = self._call(
            "delete_distribution_tenant", refusals, Id=tenant["Id"], IfMatch=version
        )
        # A tenant that is still being disabled is refused, and the next run of the job deletes it.
        return not isinstance(deleted, str) or deleted == _GONE

    def _find(self, host: str) -> tuple[dict[str, Any], str] | None:
        response = self._call("get_distribution_tenant", {_GONE}, Identifier=self._name(host))
        return (
            None
            if isinstance(response, str)
            else (response["DistributionTenant"], response["ETag"])
        )

    def _create(self, host: str) -> HostState:
        refusals = {"InvalidArgument", "CNAMEAlreadyExists", "EntityAlreadyExists"}
        response = self._call(
            "create_distribution_tenant",
            refusals,
            DistributionId=self._distribution,
            ConnectionGroupId=self._group,
            Name=self._name(host),
            Domains=[{"Domain": host}],
            Enabled=True,
            ManagedCertificateRequest={
                "ValidationTokenHost": "cloudfront",
                "PrimaryDomainName": host,
            },
            Tags={"Items": [{"Key": STAGE_TAG, "Value": self._stage}]},
        )
        if response == "InvalidArgument":
            # CloudFront has no specific error code for a host that does not lead to CloudFront.
            return HostState("waiting", f"{host} does not lead to {self._endpoint} yet.")
        if response == "CNAMEAlreadyExists":
            reason = f"Another distribution of CloudFront has {host}. Remove the domain there."
            return HostState("waiting", reason)
        return _MAKING

    def _attach_certificate(self, tenant: dict[str, Any], version: str) -> HostState:
        response = self._call("get_managed_certificate_details", {_GONE}, Identifier=tenant["Id"])
        if isinstance(response, str):
            return _MAKING
        about = response["ManagedCertificateDetails"]
        status = about.get("CertificateStatus", "pending-validation")
        arn = about.get("CertificateArn")
        if status not in {"pending-validation", "issued"}:
            reason = f"The TLS certificate was not made: its status is {status}."
            return HostState("failed", f"{reason} Check the DNS records, then call again.")
        if status != "issued" or arn is None:
            return _MAKING
        if tenant.get("Customizations", {}).get("Certificate", {}).get("Arn") == arn:
            return _MAKING  # CloudFront is bringing the certificate to its locations.
        return self._update(
            tenant,
            version,
            Domains=[{"Domain": domain["Domain"]} for domain in tenant["Domains"]],
            Customizations={**tenant.get("Customizations", {}), "Certificate": {"Arn": arn}},
        )

    def _update(self, tenant: dict[str, Any], version: str, **changes: Any) -> HostState:  # noqa: ANN401  the tenant's fields
        updated = self._call(
            "update_distribution_tenant",
            _CHANGED_MEANWHILE,
            Id=tenant["Id"],
            IfMatch=version,
            **changes,
        )
        if not isinstance(updated, str) and _is_active(updated["DistributionTenant"]):
            return HostState("active")
        return _MAKING

    def _name(self, host: str) -> str:
        # A host may be longer than a name.
        return f"{self._stage}-{hashlib.sha256(host.encode()).hexdigest()[:40]}"

    def _call(self, operation: str, expected: set[str], **arguments: Any) -> Any:  # noqa: ANN401  AWS's answers
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(client(), operation)(**arguments)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            about = {"operation": operation, "code": code, "said": str(error)[:300]}
            if code in expected:
                log.info("CloudFront refused", extra=about)
                return code
            log.exception("CloudFront failed", extra=about)
            raise UnavailableError from error
        except BotoCoreError as error:
            raise UnavailableError from error


def site_hosts() -> SiteHosts | None:
    """Return the gateway that the settings choose, or None if sites have no hosts of their own."""
    setting = settings().site_hosts
    if not setting:
        return None
    if setting == "local":
        return LocalHosts()
    return CloudFrontHosts.from_setting(setting, stage=settings().stage)


def _is_active(tenant: dict[str, Any]) -> bool:
    return all(domain.get("Status") == "active" for domain in tenant.get("Domains", ()))


@cache
def client() -> Any:  # noqa: ANN401  botocore's
    """Return the client. Its description takes a while to load, so it is made once."""
    from botocore.config import Config
    from botocore.session import get_session

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
    )
    return get_session().create_client("cloudfront", region_name=_REGION, config=config)
