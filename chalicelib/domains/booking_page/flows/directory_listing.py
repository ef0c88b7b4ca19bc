"""List a business in the directory while its owner wants it and its page is on (ADR 146)."""

from chalicelib.core.jobs import Job, job_handler
from chalicelib.domains.booking_page.store import page_settings
from chalicelib.domains.booking_page.store.page_settings import AssistantsRow, BookingPageRow
from chalicelib.domains.identity.rules.job_kinds import DIRECTORY
from chalicelib.domains.identity.store import directory, workspaces
from chalicelib.domains.identity.store.directory import ListedBusinessRow, Words
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.unit import UnitOfWork, run_job_unit

MAX_SERVICES = 20  # of a business whose names are searched, the first of its page


def keys(workspace_id: str) -> list[Key]:
    """Return the keys of the rows that decide, to read them with others."""
    return [
        directory.key(workspace_id),
        workspaces.key(workspace_id),
        page_settings.key(workspace_id),
        page_settings.assistants_key(workspace_id),
    ]


def stage(
    unit: UnitOfWork,
    rows: Rows,
    *,
    page: BookingPageRow | None = None,
    assistants: AssistantsRow | None = None,
) -> None:
    """Stage what the directory has of a workspace.

    ``page`` or ``assistants`` is a row that the caller saves. Others must stay as they were read.
    """
    workspace_id = unit.workspace_id
    rows.read(keys(workspace_id))
    read_page = page or BookingPageRow.read(workspace_id, rows)
    read_assistants = assistants or AssistantsRow.read(workspace_id, rows)
    own = ListedBusinessRow.read(workspace_id, rows)
    if not (read_page.is_on and read_assistants.is_on and read_assistants.is_listed):
        directory.stage_end(unit, own)
        return
    for row, is_saved in ((read_page, page), (read_assistants, assistants)):
        if is_saved is None:
            unit.require(row, directory.unchanged(row))
    workspace = workspaces.get(workspace_id, rows)
    unit.require(workspace, directory.unchanged(workspace))
    services = SERVICES.fetch(workspace_id, list(read_page.service_ids)[:MAX_SERVICES])
    own.services = [service.name for service in services if service.status == "active"]
    is_shown = directory.is_shown(workspace)
    words = Words.of_business(workspace, own.services) if is_shown else None
    directory.stage(unit, own, words)


@job_handler(DIRECTORY)
def follow(job: Job) -> None:
    """Bring the entries of a business up to date. A repeated job changes nothing."""
    run_job_unit(job, lambda unit: stage(unit, unit.rows))
