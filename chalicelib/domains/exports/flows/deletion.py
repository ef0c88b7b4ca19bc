"""Delete the records of a workspace that its owner has closed 30 days ago.

The classes of rows are those that an export knows. Payments, refunds, the ledger and the audit log
stay. The workspace's row and its sites stay as the holders of their slugs and domains, which no
other account may get.
"""

from functools import partial

from chalicelib.core.jobs import Job, job_handler
from chalicelib.domains.exports.flows import contents
from chalicelib.domains.identity.flows.memberships import stage_revocations
from chalicelib.domains.identity.rules.job_kinds import DELETE_WORKSPACE
from chalicelib.domains.identity.store import api_keys, workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.overview.flows import cancelling, emptying
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine.partition_rows import stage_deletions
from chalicelib.engine.tables import Row
from chalicelib.engine.unit import UnitOfWork, cascade, run_job_unit

KEPT: frozenset[type[Row]] = frozenset(
    {payments.PaymentRow, payments.RefundRow, merchants.MerchantRow}
)
"""Rows of money, which the law requires to be kept."""


@job_handler(DELETE_WORKSPACE)
def delete_workspace(job: Job) -> None:
    """Delete what a closed workspace has, unless it was reopened. A repeated job continues."""
    if not cancelling.is_closed(job):
        return
    emptying.delete_records(job, kept={SITES.noun})
    for kind in contents.PLAIN:
        if kind.row not in KEPT:
            pk = contents.partition(job.workspace_id, at=kind.at)
            cascade(job, partial(stage_deletions, pk=pk))
    last_id = ""
    while sites := SITES.read_after(job.workspace_id, record_id=last_id, limit=emptying.BATCH):
        for site in sites:
            run_job_unit(job, partial(_stage_blank_site, site.id))
        last_id = sites[-1].id
    run_job_unit(job, _stage_no_keys)
    for member in workspaces.members(job.workspace_id):
        run_job_unit(job, partial(_stage_no_membership, member.account.id))
    run_job_unit(job, _stage_blank_workspace)


def _stage_blank_site(site_id: str, unit: UnitOfWork) -> None:
    site = SITES.require(unit.workspace_id, record_id=site_id)
    site.title, site.description, site.home_page_id = site.slug, None, None
    unit.save(site)


def _stage_no_keys(unit: UnitOfWork) -> None:
    stage_revocations(unit, api_keys.live(unit.workspace_id))


def _stage_no_membership(account_id: str, unit: UnitOfWork) -> None:
    membership = workspaces.membership(account_id, workspace_id=unit.workspace_id)
    if membership is not None:
        unit.delete(membership, if_there=True)
    unit.delete(workspaces.member_row(account_id, workspace_id=unit.workspace_id))


def _stage_blank_workspace(unit: UnitOfWork) -> None:
    workspace = workspaces.get(unit.workspace_id)
    facts = (
        WorkspaceRow.logo_url,
        WorkspaceRow.address,
        WorkspaceRow.phone,
        WorkspaceRow.accent,
        WorkspaceRow.privacy_url,
    )
    removals = [fact.remove() for fact in facts]
    unit.update(workspace, [WorkspaceRow.name.set(workspace.slug), *removals])
