"""Custom domains of sites. A domain is bound after its owner has proven ownership in the DNS."""

import secrets
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, ValidationError
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import (
    Id,
    Wire,
)
from chalicelib.domains.sites.operations.sites import DomainOut
from chalicelib.domains.sites.rules import hostnames
from chalicelib.domains.sites.store.sites import (
    ACTIVE,
    ERROR,
    PENDING,
    SITES,
    DomainMap,
    SiteRow,
    domain_claim,
    domain_request,
    find_domain_claim,
    free_domain,
    take_over_domain,
)
from chalicelib.gateways import dns


class DomainTakenError(ConflictError):
    """Another site has proven that it owns this domain."""

    code = "domain_taken"


class SiteDomain(Wire):
    """Custom domain to bind to a site."""

    id: Id = Field(description="Site id.")
    domain: Annotated[str, StringConstraints(max_length=1000)] | None = Field(
        description="Host name, such as www.example.com; null unbinds."
    )


class DomainResult(Wire):
    """Custom domain of a site."""

    domain: DomainOut | None = Field(description="The custom domain, or null when unbound.")


@operation(
    tool="svc_set_site_domain",
    rest="POST /api/projects/set-domain",
    scope=Scope.PROJECTS_WRITE,
    title="Bind a custom domain",
    destructive=True,
    idempotent=True,
    open_world=True,
    limit=HEAVY,
    example={"id": "SITE_ID", "domain": "www.example.com"},
    errors=(DomainTakenError,),
)
def set_site_domain(ctx: Context, args: SiteDomain) -> DomainResult:
    """Bind a custom domain to a site.

    A new domain is pending: create the TXT record of the answer, then call again to check
    it. One not proven within 72 hours is dropped.
    """
    site = SITES.require(ctx.workspace_id, args.id)
    name = None if args.domain is None else _check_domain(args.domain)
    if site.domain is None or site.domain.name != name:
        free_domain(ctx.unit, site)
        site.domain_binding = None if name is None else _request_domain(ctx, name)
    if site.domain is not None:
        _check_proof(ctx, site, site.domain)
    ctx.unit.save(site)
    return DomainResult(domain=DomainOut.of(site.domain) if site.domain else None)


def _check_domain(name: str) -> str:
    own_host = urlsplit(settings().public_url).hostname or ""
    try:
        return hostnames.normalize(name, own_host)
    except ValueError as error:
        raise ValidationError.of("domain", f'{error}; received "{name[:80]}"') from None


def _request_domain(ctx: Context, name: str) -> DomainMap:
    return domain_request(
        name, ctx.unit.run_side_effect_once("token", lambda: secrets.token_hex(16))
    )


def _check_proof(ctx: Context, site: SiteRow, domain: DomainMap) -> None:
    """Look up the TXT record in the DNS, and set the status of the binding by the result."""
    host = hostnames.txt_record_name(domain.name)
    found = ctx.unit.run_side_effect_once("txt", lambda: _lookup_txt(host))
    domain.checked_at = clock.now()
    if found is None:
        ctx.warn(f"The DNS did not answer for {host}; the status is unchanged. Try again later.")
    elif hostnames.txt_record_value(domain.token) in found:
        _claim_domain(ctx, site, domain.name, found)
        domain.status = ACTIVE
    elif domain.status != PENDING:
        domain.status = ERROR


def _claim_domain(ctx: Context, site: SiteRow, name: str, found: frozenset[str]) -> None:
    """Stage the claim of a domain that a site has just proven to own.

    Another site with the domain loses it if its own proof is no longer in the DNS.
    """
    claim = find_domain_claim(name)
    if claim is None:
        ctx.unit.create(domain_claim(ctx.workspace_id, name, site.id))
    elif claim.target != site.id:
        holder = SITES.find(claim.workspace_id or "", claim.target)
        if holder and holder.domain and hostnames.txt_record_value(holder.domain.token) in found:
            msg = (
                f"Another site has proven that it owns {name}, and its record is still there."
                f" Unbind the domain from that site, or remove the other TXT record from"
                f" {hostnames.txt_record_name(name)}; then call again."
            )
            raise DomainTakenError(msg)
        take_over_domain(ctx.unit, claim, holder, site.id)


def _lookup_txt(host: str) -> frozenset[str] | None:
    try:
        return dns.lookup_txt(host)
    except dns.DnsUnavailableError:
        return None
