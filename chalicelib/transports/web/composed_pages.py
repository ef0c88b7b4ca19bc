"""Show pages of sections with the header, the footer and the colours of their business.

A page whose author has written HTML is shown as it is, with its sections filled in.
"""

from datetime import date
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote

from chalicelib.domains.booking_page.store.page_settings import BookingPageRow
from chalicelib.domains.identity.flows import brands
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.services.rules.open_windows import Interval
from chalicelib.domains.sites.flows import site_pages
from chalicelib.domains.sites.flows.site_pages import RenderedPage
from chalicelib.domains.sites.rules import composed_pages, sections, site_urls
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.domains.sites.store.sites import SiteRow
from chalicelib.lib import accents
from chalicelib.transports.web import page_sections, render, texts
from chalicelib.transports.web.texts import Language

MAX_LINKS = 7
"""Pages in the menu, the first by their order. Later ones need a link on a page."""
# How the slugs of privacy policies begin, in English and in Russian.
_PRIVACY = ("privacy", "politika")


class _Hours(NamedTuple):
    """The same hours of consecutive weekdays, 0 is Monday."""

    first: int
    last: int
    intervals: tuple[Interval, ...]


def show(page: RenderedPage) -> str:
    """Return the HTML of a page with sections, as visitors see it."""
    html = page.html
    composed = composed_pages.find_composed(html)
    if composed is None or page.workspace is None or page.site is None:
        policy_url = page.workspace.privacy_url if page.workspace else None
        return page_sections.fill(page.workspace_id, html, policy_url=policy_url)
    language = sections.language(html, title="")
    hours = page_sections.weekly_hours(page.workspace_id)
    values = frame_values(
        page.workspace,
        page.site,
        language,
        BookingPageRow.read(page.workspace_id),
        hours=[] if composed.has_hours else hours,
        page_id=page.page_id,
    )
    framed = composed.in_frame(
        head=render.document(language, "sites/site_head.html", **values),
        header=render.document(language, "sites/site_header.html", **values),
        footer=render.document(language, "sites/site_footer.html", **values),
        photo_of=lambda title: texts.translate(language, "site_photo_of", title=title),
    )
    policy_url = values["policy_url"]
    return page_sections.fill(page.workspace_id, framed, policy_url=policy_url, hours=hours)


def frame_values(  # noqa: PLR0913  the parts of a frame
    workspace: WorkspaceRow,
    site: SiteRow,
    language: Language,
    page_settings: BookingPageRow,
    *,
    hours: page_sections.Hours,
    page_id: str = "",
    sheet: str = "site",
) -> dict[str, Any]:
    """Return the values of the templates of the head, the header and the footer.

    The footer has the ``hours``, if any. ``sheet`` begins the name of the style sheet.
    """
    pages = site_pages.menu_pages(workspace.id, site)
    policy = find_policy(pages)
    accent = workspace.accent if workspace.accent in accents.ACCENTS else accents.DEFAULT
    has_own_list = any(each.slug == site_urls.PRODUCTS for each in pages)
    return {
        "workspace": workspace,
        "home": f"{site.url}/",
        "phone": page_settings.phone or workspace.phone,
        "booking_url": page_sections.booking_url(workspace, page_settings),
        "links": [each for each in pages if each is not policy and not each.noindex][:MAX_LINKS],
        "page_id": page_id,
        "on_products": None,
        "products_url": None if has_own_list else site.products_url,
        "map_url": brands.brand_of(workspace).map_url,
        "hours": group_hours(hours),
        "policy_url": workspace.privacy_url or (policy.canonical_url if policy else None),
        "weekday": partial(_weekday, language),
        "sheet": f"{sheet}-{accent}",
        "icon_url": None if workspace.logo_url else _initial_icon(workspace.name, accent),
    }


def find_policy(pages: list[PageRow]) -> PageRow | None:
    """Return the page with the privacy policy, which its slug tells, or None."""
    return next((page for page in pages if page.slug.startswith(_PRIVACY)), None)


def group_hours(days: list[tuple[Interval, ...]]) -> list[_Hours]:
    """Return the hours of a week, with the weekdays side by side that have the same."""
    groups = []
    for intervals, weekdays in groupby(enumerate(days), key=lambda day: day[1]):
        numbers = [number for number, _ in weekdays]
        if intervals:
            groups.append(_Hours(numbers[0], numbers[-1], intervals))
    return groups


def _weekday(language: Language, number: int) -> str:
    return texts.dated(language, date(2024, 1, 1 + number), "ccc")  # 2024 began on a Monday.


def _initial_icon(name: str, accent: str) -> str:
    # A square in the colour of the business with the first letter of its name.
    letter = next((character for character in name if character.isalnum()), "•").upper()
    background, _ = accents.colours(accent)
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
        f'<rect width="32" height="32" rx="7" fill="{background}"/><text x="16" y="23" '
        'font-family="system-ui,sans-serif" font-size="20" font-weight="700" fill="#fff" '
        f'text-anchor="middle">{letter}</text></svg>'
    )
    return f"data:image/svg+xml,{quote(svg)}"
