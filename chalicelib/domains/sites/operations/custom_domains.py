"""Bind custom domains to sites after their owners have proven ownership in the DNS."""

import secrets
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import ForbiddenError, InTestWorkspaceError, ValidationError
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import Wire
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.sites.flows import domain_binding
from chalicelib.domains.sites.flows.domain_binding import DomainTakenError
from chalicelib.domains.sites.operations.sites import DomainOut, SiteRef
from chalicelib.domains.sites.rules import hostnames
from chalicelib.domains.sites.store.sites import SITES, VERIFIED, DomainMap, SiteRow, domain_request
from chalicelib.gateways.site_hosts import site_hosts


class SiteDomain(SiteRef):
    """Custom domain to bind to a site."""

    domain: Annotated[str, StringConstraints(max_length=1000)] | None = Field(
        description="Host name, such as www.example.com; null unbinds."
    )


class DomainResult(Wire):
    """Custom domain of a site."""

    domain: DomainOut | None = Field(description="The custom domain, or null when unbound.")


@operation(
    tool=True,
    rest="POST /api/projects/set-domain",
    scope=Scope.PROJECTS_WRITE,
    title="Bind a custom domain",
    destructive=True,
    idempotent=True,
    open_world=True,
    limit=HEAVY,
    example={"id": "SITE_ID", "domain": "www.example.com"},
    errors=(DomainTakenError, ForbiddenError),
    role=Role.MANAGER,
)
def set_site_domain(ctx: Context, args: SiteDomain) -> DomainResult:
    """Bind a custom domain to a site.

    Then create the DNS records of the response. They are checked for 72 hours, and by each call.
    With the status active, the domain shows the site.
    """
    site = SITES.require(ctx.workspace_id, record_id=args.id)
    if args.domain is not None and is_test(ctx.workspace_id):
        msg = "A site of a test workspace has no domain of its own."
        raise InTestWorkspaceError(msg, key="own_domain")
    if args.domain is not None and workspaces.get(ctx.workspace_id).awaits_review:
        msg = "A new workspace takes a domain once the operator has looked at it. Ask the operator."
        raise ForbiddenError(msg, key="awaits_review")
    name = None if args.domain is None else _check_domain(args.domain)
    if site.domain is None or site.domain.name != name:
        domain_binding.release(ctx.unit, site)
        site.domain_binding = None if name is None else _request_domain(ctx, name)
    if site.domain is not None:
        _check_proof(ctx, site, site.domain)
    ctx.unit.save(site)
    return DomainResult(domain=DomainOut.from_domain(site.domain) if site.domain else None)


def _check_domain(name: str) -> str:
    own_host = urlsplit(settings().public_url).hostname or ""
    try:
        return hostnames.normalize(name, own_host, settings().sites_domain)
    except ValueError as error:
        raise ValidationError.of("domain", message=f'{error}; received "{name[:80]}"') from None


def _request_domain(ctx: Context, name: str) -> DomainMap:
    token = ctx.unit.run_side_effect_once("token", lambda: secrets.token_hex(16))
    return domain_request(name, token=token, apex=hostnames.is_apex(name))


def _check_proof(ctx: Context, site: SiteRow, domain: DomainMap) -> None:
    proofs = ctx.unit.run_side_effect_once("txt", lambda: domain_binding.look_up_proofs(domain))
    domain.requested_at = domain.checked_at = clock.now()
    if proofs is None:
        host = hostnames.txt_record_name(domain.name)
        ctx.warn(
            f"The DNS servers did not answer for {host}, so the status is unchanged. Try again "
            "later.",
            code=WarningCode.DNS_NOT_ANSWERED,
            host=host,
        )
    else:
        domain_binding.apply_proofs(ctx.unit, site, domain, proofs)
    domain_binding.stage_checks(ctx.unit, site, domain)
    if domain.state == VERIFIED and site_hosts() is None:
        ctx.warn(
            "This installation has no custom domains, so the URL of the site is unchanged.",
            code=WarningCode.NO_CUSTOM_DOMAINS,
        )
