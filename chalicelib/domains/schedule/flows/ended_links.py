"""End the link of a calendar feed whose member of the staff has lost the right to the calendar."""

from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.identity.rules.job_kinds import END_CALENDAR_LINK
from chalicelib.domains.schedule.store import calendar_links
from chalicelib.domains.schedule.store.calendar_links import CalendarLinkRow
from chalicelib.engine.unit import UnitOfWork, run_unit


@job_handler(END_CALENDAR_LINK)
def end_calendar_link(job: Job) -> None:
    """Delete the link of a resource's calendar. It may run more than once."""
    resource_id = job.payload["resourceId"]
    if CalendarLinkRow.of(job.workspace_id, resource_id) is None:
        return

    def stage(unit: UnitOfWork) -> None:
        calendar_links.stage_deletion(unit, resource_id)
        unit.mention(f"resource:{resource_id}")

    run_unit(job.workspace_id, AuditEvent.by_job(END_CALENDAR_LINK), stage)
