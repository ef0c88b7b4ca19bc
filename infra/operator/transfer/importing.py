"""Create a workspace from a file of ``export`` (``infra admin import``).

First the whole file is read and checked, and everything that it claims must be free. Then rows and
objects are written, which nothing shows yet. Then one transaction creates the workspace itself, and
at last its jobs are written. After an interruption, the import continues with the step that was
interrupted.
"""

import secrets
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
from pynamodb.expressions.update import Action

from chalicelib.core.errors import ConflictError, NotFoundError
from chalicelib.core.operations import load_all
from chalicelib.core.settings import settings
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.clients.store import erased_records
from chalicelib.domains.exports.flows import contents
from chalicelib.domains.exports.rules.archive import Line
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.identity.store.workspaces import MembershipRow, WorkspaceRow
from chalicelib.domains.sites.store import sites
from chalicelib.engine.claims import ClaimRow
from chalicelib.engine.unit import UnitOfWork, run_unit, split_batches
from chalicelib.lib import slugs
from infra.operator.transfer import marks, members
from infra.operator.transfer.erased import Erased
from infra.operator.transfer.marks import ImportRow
from infra.operator.transfer.members import NewMember
from infra.operator.transfer.preflight import Claim, ExportFile, check_file, claimed_elsewhere
from infra.operator.transfer.restoring import Restoring
from infra.operator.transfer.rewriting import NewIds, Rewriting, UrlPrefixes, UrlRewriting

Ids = Literal["keep", "new"]
ROWS_A_UNIT = 90


def import_workspace(path: Path, *, owner: str | None, ids: Ids | None) -> dict[str, Any]:
    """Import a workspace; return a summary. Safe to repeat after an interruption.

    Args:
        path: the file.
        owner: e-mail of the account that will own it; by default the former owner's.
        ids: whether ids are kept or all replaced. By default ids are kept, and a file of another
            stage is refused.

    Raises:
        FileError: the file is not a complete export.
        ClickException: the import is refused; nothing was written.
        AppError: the database or the object store is unavailable: run it again.
    """
    load_all()
    started = time.monotonic()
    export_file = check_file(path, with_ids=ids == "new")
    _check_stage(export_file.header, ids)
    account = _owner(export_file, owner)
    mark, resumed = _mark(export_file, is_copy=ids == "new")
    rewriting = _rewriting(export_file, mark)
    erased = erased_records.erased_ids(export_file.workspace_id)
    if rewriting.ids is not None:
        # The list of erased records has the ids of the original workspace.
        erased = {rewriting.ids.new_id(record_id) for record_id in erased}
    payments = export_file.payments
    if rewriting.ids is not None:
        payments = {rewriting.ids.new_id(payment_id) for payment_id in payments}
    restoring = Restoring(path, mark.workspace_id, rewriting, mark.slugs, Erased(erased), payments)
    without_account = []
    if not mark.workspace_created:
        restoring.write()
        without_account = _create_workspace(export_file, mark, restoring.claims, account)
    # A job that is due would run before its workspace exists, so jobs are written last.
    jobs = restoring.write_jobs()
    marks.end(mark)
    workspace = workspaces.get(mark.workspace_id)
    return {
        "workspaceId": workspace.id,
        "slug": workspace.slug,
        "plan": workspace.plan,
        "owner": account.email,
        "ids": ids or "keep",
        "resumed": resumed,
        "counts": {**export_file.trailer["counts"], "jobs": jobs},
        "slugsChanged": {old: new for old, new in mark.slugs.items() if old != new},
        "domainsDropped": export_file.domains if ids == "new" else [],
        "membersWithoutAccount": without_account,
        "erasedAgain": restoring.erased.count,
        "notIncluded": export_file.header.get("notIncluded", dict(contents.NOT_INCLUDED)),
        "seconds": round(time.monotonic() - started, 1),
    }


def _check_stage(header: Line, ids: Ids | None) -> None:
    here, there = settings().stage, header["stage"]
    if ids is None and there != here:
        msg = (
            f"This is an export of the stage {there}, and this stage is {here}. Say whether its ids"
            " stay: --ids new makes a copy with new ones, --ids keep moves it here with its own."
        )
        raise click.ClickException(msg)


def _owner(export_file: ExportFile, email: str | None) -> AccountRow:
    """Return the account that will own the workspace."""
    owner_email = email or export_file.workspace["owner"]
    try:
        return accounts.require_by_email(owner_email)
    except NotFoundError:
        msg = (
            f"No account here has the address {owner_email}"
            f"{'' if email else ', whose the workspace was'}. Create it with create-account, or"
            " name another: --owner EMAIL."
        )
        raise click.ClickException(msg) from None


def _mark(export_file: ExportFile, *, is_copy: bool) -> tuple[ImportRow, bool]:
    """Return the mark of the import, and whether an interrupted run had created it."""
    checksum: str = export_file.trailer["sha256"]
    there = marks.find(export_file.workspace_id, checksum if is_copy else None)
    if there is not None and there.checksum != checksum:
        msg = (
            f"The import of another file into this workspace, exported at {there.exported_at}, was "
            "interrupted. Import that file again to finish it, or make a copy of this one: "
            "--ids new."
        )
        raise click.ClickException(msg)
    if not (there is not None and there.workspace_created) and not is_copy:
        _check_free(export_file)
    if there is not None:
        return there, True
    seed = secrets.token_hex(32) if is_copy else None
    target = export_file.workspace_id
    if seed:
        target = NewIds(bytes.fromhex(seed), export_file.ids).new_id(target)
    begun = marks.begin(
        export_file.workspace_id,
        checksum if is_copy else None,
        checksum=checksum,
        exported_at=export_file.header["exportedAt"],
        workspace_id=target,
        seed=seed,
        slug=_free(workspaces.SLUG_CLAIM, [_slug(export_file)])[_slug(export_file)]
        if is_copy
        else _slug(export_file),
        slugs=_free(sites.SLUG_CLAIM, export_file.sites)
        if is_copy
        else {s: s for s in export_file.sites},
    )
    if begun is None:
        raise click.ClickException("The same file is being imported at this moment.")
    return begun, False


def _slug(export_file: ExportFile) -> str:
    slug: str = export_file.workspace["workspace"]["slug"]["S"]
    return slug


def _check_free(export_file: ExportFile) -> None:
    """Refuse a workspace that exists, or that claims names which other workspaces hold."""
    try:
        workspaces.get(export_file.workspace_id)
    except NotFoundError:
        pass
    else:
        msg = (
            f"The workspace {export_file.workspace_id} already exists and is not overwritten. "
            "To import the file as a copy, add --ids new."
        )
        raise click.ClickException(msg)
    slug_claim = Claim(workspaces.SLUG_CLAIM, _slug(export_file), export_file.workspace_id)
    if conflicts := claimed_elsewhere([slug_claim, *export_file.claims], export_file.workspace_id):
        msg = (
            "Others have here what the workspace claims: "
            f"{', '.join(map(str, conflicts))}. Free it, or import the file as a copy with "
            "slugs of its own: --ids new."
        )
        raise click.ClickException(msg)


def _free(kind: str, names: Iterable[str]) -> dict[str, str]:
    """Return a free slug for each wanted slug, with a number appended if that is taken."""
    free_names: dict[str, str] = {}
    for slug in names:
        options = list(slugs.candidates(slug))
        taken_names = ClaimRow.find_claimed(kind, options) | set(free_names.values())
        free_names[slug] = slugs.first_free(options, taken_names, reserved=slugs.RESERVED)
    return free_names


def _rewriting(export_file: ExportFile, mark: ImportRow) -> Rewriting:
    urls = UrlRewriting(
        UrlPrefixes.from_header(export_file.header),
        UrlPrefixes.from_settings(settings()),
        mark.slugs,
    )
    ids = NewIds(bytes.fromhex(mark.seed), export_file.ids) if mark.seed else None
    return Rewriting(urls, ids)


def _create_workspace(
    export_file: ExportFile, mark: ImportRow, claims: list[ClaimRow], owner: AccountRow
) -> list[str]:
    """Create the claims and the workspace; return the addresses of members without an account.

    Raises:
        ConflictError: another workspace has taken a claim since the import began.
    """
    workspace_id = mark.workspace_id
    for batch in split_batches(claims, ROWS_A_UNIT):
        run_unit(workspace_id, None, partial(_stage_claims, claims=batch))
    found_members = list(
        members.new_members(
            export_file.workspace["members"],
            workspace_id,
            owner_id=owner.id,
            rewrite=_rewriting(export_file, mark).rewrite_text,
        )
    )
    for some in split_batches(found_members, ROWS_A_UNIT // 3):
        run_unit(workspace_id, None, partial(_stage_members, found_members=some))
    workspace = _workspace_row(export_file, mark, owner)

    def stage(unit: UnitOfWork) -> None:
        unit.create(
            workspace, on_conflict=ConflictError(f"The workspace {workspace_id} is there now.")
        )
        conflict = ConflictError(f'The slug "{workspace.slug}" was taken meanwhile. Run it again.')
        unit.create(workspaces.slug_claim(workspace), on_conflict=conflict)
        joined_at = workspace.created_at
        place = workspaces.membership_row(
            owner.id, workspace_id=workspace_id, role="owner", joined_at=joined_at
        )
        _stage_memberships(unit, [place])
        unit.update(mark, [ImportRow.workspace_created.set(True)])

    resources = (f"workspace:{workspace_id}",)
    run_unit(workspace_id, AuditEvent("import_workspace", "operator", resources=resources), stage)
    return [member.email for member in found_members if not member.has_account]


def _stage_claims(unit: UnitOfWork, claims: list[ClaimRow]) -> None:
    """Stage claims that no other workspace holds.

    An interrupted run of this import may have created some of the claims.
    """
    for claim in claims:
        free = ClaimRow.pk.does_not_exist()
        is_same_claim = (ClaimRow.workspace_id == unit.workspace_id) & (
            ClaimRow.target == claim.target
        )
        values: list[Action] = [
            ClaimRow.target.set(claim.target),
            ClaimRow.workspace_id.set(claim.workspace_id),
        ]
        msg = f"Another workspace has taken {claim.pk.partition('#')[2]} meanwhile. Run it again."
        unit.update(claim, values, free | is_same_claim, on_conflict=ConflictError(msg))


def _stage_members(unit: UnitOfWork, found_members: list[NewMember]) -> None:
    for member in found_members:
        if member.membership:
            _stage_memberships(unit, [member.membership])
        if member.choices:
            unit.save(member.choices)


def _stage_memberships(unit: UnitOfWork, memberships: list[MembershipRow]) -> None:
    for membership in memberships:
        unit.save(membership)
        unit.save(
            workspaces.member_row(membership.account_id, workspace_id=membership.workspace_id)
        )


def _workspace_row(export_file: ExportFile, mark: ImportRow, owner: AccountRow) -> WorkspaceRow:
    """Return the workspace's new row."""
    key = workspaces.row(mark.workspace_id)
    item = export_file.workspace["workspace"] | {"pk": {"S": key.pk}, "owner_id": {"S": owner.id}}
    workspace: WorkspaceRow = WorkspaceRow.from_raw_data(item)
    workspace.slug = mark.slug
    if workspace.logo_url:
        workspace.logo_url = _rewriting(export_file, mark).rewrite_text(workspace.logo_url)
    return workspace
