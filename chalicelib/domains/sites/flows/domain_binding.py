"""Prove, activate and release the custom domain of a site (ADR 48).

A call checks the proof. Jobs do the rest, because only the function that runs jobs may change
hosts. Each check reads the state and takes the next step, so a repeated check does no harm.
"""

from datetime import datetime, timedelta
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import ConflictError
from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.domains.sites.rules import hostnames
from chalicelib.domains.sites.store.sites import (
    ACTIVE,
    CERTIFICATE,
    EXPIRED,
    FAILED,
    PENDING,
    PROVEN,
    SITES,
    TIME_LIMIT,
    VERIFIED,
    DomainMap,
    SiteRow,
    domain_claim,
    find_by_host,
    find_domain_claim,
    free_domain,
    take_over_domain,
)
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork, run_job_unit
from chalicelib.gateways import dns
from chalicelib.gateways.site_hosts import HostState, site_hosts

CHECK = JobKind("site-domain-check")
RELEASE = JobKind("site-domain-release")
FIRST_PAUSE = timedelta(minutes=2)
# Factor by which each pause between two checks exceeds the last. 72 hours have 34 checks.
GROWTH = 1.2
RELEASE_PAUSE = timedelta(minutes=5)
_PROOF_GONE = "The TXT record no longer exists. Create the record again, and repeat the call."
# State of a domain by the state of its host.
_STATES = {"waiting": VERIFIED, "certificate": CERTIFICATE, "active": ACTIVE, "failed": FAILED}


class DomainTakenError(ConflictError):
    """Another site has proven that it owns this domain."""

    code = "domain_taken"


def look_up_proofs(domain: DomainMap) -> frozenset[str] | None:
    """Return the TXT records of a domain's proof, or None if the DNS does not respond."""
    hosts = site_hosts()
    if hosts is not None and hosts.proves(domain.name):
        return frozenset({hostnames.txt_record_value(domain.token)})
    try:
        return dns.lookup_txt(hostnames.txt_record_name(domain.name))
    except dns.DnsUnavailableError:
        return None


def apply_proofs(
    unit: UnitOfWork, site: SiteRow, domain: DomainMap, proofs: frozenset[str]
) -> None:
    """Stage the claim of a proven domain, and set the domain's state by its proof.

    Raises DomainTakenError if another site has the domain and its proof is still in the DNS.
    """
    if hostnames.txt_record_value(domain.token) in proofs:
        _claim_domain(unit, site, domain.name, proofs)
        if domain.state not in PROVEN:
            domain.become(VERIFIED)
    elif domain.state in PROVEN:
        domain.become(FAILED, _PROOF_GONE)
        _stage_release(unit, domain.name)


def _claim_domain(unit: UnitOfWork, site: SiteRow, name: str, proofs: frozenset[str]) -> None:
    # Another site with the domain loses it if its own proof is no longer in the DNS.
    claim = find_domain_claim(name)
    if claim is None:
        unit.create(domain_claim(unit.workspace_id, domain=name, site_id=site.id))
    elif claim.target != site.id:
        holder = SITES.find(claim.workspace_id or "", record_id=claim.target)
        # The other site keeps the domain as long as its own record is still in the DNS.
        if holder and holder.domain and hostnames.txt_record_value(holder.domain.token) in proofs:
            msg = (
                f"Another site has proven that it owns {name}, and its TXT record still exists. "
                "Unbind the domain from that site, or remove the other TXT record from "
                f"{hostnames.txt_record_name(name)}. Then repeat the call."
            )
            raise DomainTakenError(msg)
        take_over_domain(unit, claim, holder, site.id)


def release(unit: UnitOfWork, site: SiteRow) -> None:
    """Stage the release of the claim on a site's domain, and a job that releases the host."""
    if (host := free_domain(unit, site)) is not None:
        _stage_release(unit, host)


def stage_checks(unit: UnitOfWork, site: SiteRow, domain: DomainMap) -> None:
    """Stage the first check of a domain, which runs later if the domain is pending."""
    number = {PENDING: 1, FAILED: None}.get(domain.state, 0)
    if number is not None and (domain.state == PENDING or site_hosts() is not None):
        payload = {"siteId": site.id, "host": domain.name, "since": domain.requested_at.isoformat()}
        unit.save(_check_job(unit.workspace_id, payload, number))


def _check_job(workspace_id: str, payload: dict[str, Any], number: int) -> JobRow:
    # Equal arguments give the same row.
    since = datetime.fromisoformat(payload["since"])
    pauses = (GROWTH**number - 1) / (GROWTH - 1)
    due = since + min(FIRST_PAUSE * pauses, TIME_LIMIT)
    numbered = payload | {"number": number}
    # The id of the site makes a check that is scheduled twice the same job.
    return jobs.row(CHECK, workspace_id, numbered, due, job_id=payload["siteId"])


@job_handler(CHECK)
def check_domain(job: Job) -> None:
    """Take a domain as far as it can go, and schedule the next check unless it is settled."""
    state = _check_proof(job)
    if state != PENDING:
        state = _check_host(job)
    if state in {PENDING, VERIFIED, CERTIFICATE} and not _is_last(job):
        jobs.schedule(_check_job(job.workspace_id, job.payload, job.payload["number"] + 1))
    elif _current(job) is None:
        # A host that was set up while its domain was unbound is released again.
        release_host(job)


def _is_last(job: Job) -> bool:
    return clock.now() - datetime.fromisoformat(job.payload["since"]) >= TIME_LIMIT


def _check_host(job: Job) -> str | None:
    # Returns None if a later call has replaced the check, or if nothing serves hosts.
    current, hosts = _current(job), site_hosts()
    if current is None or hosts is None or current[1].state not in PROVEN:
        return None
    _, domain = current
    host = hosts.serve(domain.name)
    # The domain must not wait for ever, because each check costs requests to CloudFront.
    if host.state != "active" and _is_last(job):
        host = HostState("failed", f"{EXPIRED} {host.reason or ''}".strip())
    state = _STATES[host.state]
    # Most checks find the same state, which costs no write.
    if (domain.state, domain.explanation) == (state, host.reason):
        return state

    def stage(unit: UnitOfWork) -> str | None:
        latest = _current(job)
        # A later call may have bound another domain while CloudFront was asked.
        if latest is None or latest[1].state not in PROVEN:
            return None
        site, domain = latest
        domain.become(state, host.reason)
        if state == FAILED:
            _stage_release(unit, domain.name)
        unit.save(site)
        return state

    return run_job_unit(job, stage)


def _check_proof(job: Job) -> str | None:
    current = _current(job)
    if current is None or current[1].state != PENDING:
        return None
    texts = look_up_proofs(current[1])
    if texts is None or hostnames.txt_record_value(current[1].token) not in texts:
        return PENDING

    def stage(unit: UnitOfWork) -> str | None:
        latest = _current(job)
        if latest is None or latest[1].state != PENDING:
            return None
        site, domain = latest
        apply_proofs(unit, site, domain, texts)
        unit.save(site)
        return VERIFIED

    try:
        return run_job_unit(job, stage)
    except DomainTakenError:
        # The error of the next call explains what to do.
        return PENDING


def _current(job: Job) -> tuple[SiteRow, DomainMap] | None:
    # A later call may have replaced the check.
    site = SITES.find(job.workspace_id, record_id=job.payload["siteId"])
    domain = site.domain if site else None
    if site is None or domain is None:
        return None
    is_current = domain.requested_at == datetime.fromisoformat(job.payload["since"])
    return (site, domain) if is_current else None


def _stage_release(unit: UnitOfWork, host: str) -> None:
    if site_hosts() is not None:
        unit.create(jobs.row(RELEASE, unit.workspace_id, {"host": host}))


@job_handler(RELEASE)
def release_host(job: Job) -> None:
    """Release a host, unless a site has the domain again. The job repeats until it is released."""
    host, hosts = job.payload["host"], site_hosts()
    # Another site may have taken the domain since, and its host must not be released.
    if hosts is None or find_by_host(host) is not None or hosts.release(host):
        return
    due = clock.now() + RELEASE_PAUSE
    jobs.schedule(jobs.row(RELEASE, job.workspace_id, {"host": host}, due))
