"""Fill in the sections whose content other records determine.

It is read when a visitor opens the page, so a new price is shown without delay.
"""

from functools import partial
from html import unescape

from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.booking_page.store.page_settings import BookingPageRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.leads.flows.form_html import embed_html
from chalicelib.domains.leads.store.forms import FORMS
from chalicelib.domains.services.flows import active_offers
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.rules.offers import summary_of
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.domains.sites.rules import sections
from chalicelib.engine.workspace_currency import currency_of
from chalicelib.lib.zoned_times import WEEKDAYS
from chalicelib.transports.web import render, texts
from chalicelib.transports.web.texts import Language

# Maximum number of services or resources that a section reads: the first ones in their order.
# Prices say how many more there are. Hours are those of these resources together.
MAX_RECORDS = 200


Hours = list[tuple[open_windows.Interval, ...]]


def fill(
    workspace_id: str, html: str, *, policy_url: str | None = None, hours: Hours | None = None
) -> str:
    """Return a page's HTML with the present content of its sections.

    Forms link to the privacy policy at ``policy_url``. ``hours`` are those of the week, if the
    caller has read them.
    """
    language = sections.language(html, title="")

    def content(kind: str, form_id: str, label: str) -> str:
        match kind:
            case "prices":
                return _prices(language, workspace_id)
            case "hours":
                return _hours(language, weekly_hours(workspace_id) if hours is None else hours)
            case "booking":
                return _booking(language, workspace_id, label=unescape(label))
            case _:
                return _form(workspace_id, form_id=form_id, policy_url=policy_url)

    return sections.fill_places(html, content)


def _prices(language: Language, workspace_id: str) -> str:
    ids = SERVICES.ordered_ids(workspace_id, status="active")
    services = SERVICES.fetch(workspace_id, ids[:MAX_RECORDS], consistent=False) if ids else []
    offers = active_offers.find(workspace_id, services)
    return render.document(
        language,
        "sites/section_prices.html",
        services=[(each.name, summary_of(offers[each.id])) for each in services],
        more=len(ids[MAX_RECORDS:]),
        money=partial(texts.money, language, currency=currency_of(workspace_id)),
    )


def weekly_hours(workspace_id: str) -> Hours:
    """Return the hours of each weekday, Monday first, or an empty list if there are none.

    A weekday has the hours at which at least one resource is open.
    """
    ids = RESOURCES.ordered_ids(workspace_id, status="active")[:MAX_RECORDS]
    schedules = [
        opening_hours.schedule_of(row)
        for _, row in opening_hours.find_with_schedules(workspace_id, ids)
    ]
    days = list(map(open_windows.intervals, open_windows.merge_weeks(schedules)))
    return days if any(days) else []


def _hours(language: Language, days: Hours) -> str:
    if not days:
        return ""
    return render.document(
        language, "sites/section_hours.html", days=list(zip(WEEKDAYS, days, strict=True))
    )


def booking_url(workspace: WorkspaceRow, page_settings: BookingPageRow) -> str | None:
    """Return the URL of a workspace's booking page, or None if it is off."""
    if not page_settings.is_on:
        return None
    return f"{settings().public_url}{open_page.PATH}/{workspace.slug}"


def _booking(language: Language, workspace_id: str, *, label: str) -> str:
    url = booking_url(workspaces.get(workspace_id), BookingPageRow.read(workspace_id))
    if url is None:
        return ""
    return render.document(language, "sites/section_booking.html", url=url, label=label)


def _form(workspace_id: str, *, form_id: str, policy_url: str | None) -> str:
    form = FORMS.find(workspace_id, record_id=form_id)
    if form is None:
        return ""
    url = f"{settings().public_url}/api/public/forms/{form.id}/submit"
    return embed_html(
        form.title,
        form.specs,
        url,
        language=form.language,
        on_own_page=True,
        policy_url=policy_url,
    )
