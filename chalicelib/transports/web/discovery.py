"""Describe a business for programs, with JSON-LD (schema.org) and ``llms.txt`` (llmstxt.org)."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import to_json

from chalicelib.core.errors import NotFoundError
from chalicelib.core.settings import settings
from chalicelib.core.text import one_line
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.services.rules.offers import OfferSummary, summary_of
from chalicelib.domains.sites.store import sites
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.domains.sites.store.sites import SiteRow
from chalicelib.lib import currencies
from chalicelib.transports.http import TEXT_TYPE, HttpRequest, HttpResponse, etag
from chalicelib.transports.web import render
from chalicelib.transports.web.visitor_requests import call

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Services that the data of a page describe. If there are more, the catalogue has their number.
MAX_OFFERS = 30
MAX_LINE = 200


def json_ld(page: Mapping[str, Any], url: str, *, service_url: str) -> str:
    """Return a booking page's JSON-LD; ``service_url`` is the URL before a service's id."""
    business = {
        "@context": "https://schema.org",
        "@type": "LocalBusiness",
        "name": page["name"],
        "url": url,
        "telephone": page["phone"],
        "address": page["address"],
        "image": page["logoUrl"],
        "openingHoursSpecification": [
            {
                "@type": "OpeningHoursSpecification",
                "dayOfWeek": list(DAYS[group["first"] : group["last"] + 1]),
                "opens": opens,
                "closes": closes,
            }
            for group in page["hours"]
            for opens, _, closes in (hours.partition("\u2013") for hours in group["intervals"])
        ],
        "makesOffer": [
            _offer(service, page["currency"], url=f"{service_url}/{service['id']}")
            for service in page["services"][:MAX_OFFERS]
        ],
        "hasOfferCatalog": {
            "@type": "OfferCatalog",
            "numberOfItems": len(page["services"]),
            "url": url,
        }
        if len(page["services"]) > MAX_OFFERS
        else None,
    }
    text = to_json({name: part for name, part in business.items() if part}).decode()
    # The sign would let a name end the element.
    return text.replace("<", "\\u003c")


def _offer(service: Mapping[str, Any], currency: str, *, url: str) -> dict[str, Any]:
    price = currencies.plain(service["price"], currency)
    # The price of an aggregate begins from the lowest one of the staff.
    kind = {"@type": "Offer", "price": price}
    if service["priceFrom"] is not None:
        kind = {"@type": "AggregateOffer", "lowPrice": price}
    return {
        **kind,
        "priceCurrency": currency,
        "itemOffered": {"@type": "Service", "name": service["name"]},
        "potentialAction": {
            "@type": "ReserveAction",
            "target": {"@type": "EntryPoint", "urlTemplate": url},
        },
    }


def _terms(offer: OfferSummary, currency: str) -> str:
    shortest = offer.duration_from_min
    minutes = f"from {shortest} min" if shortest else f"{offer.duration_min} min"
    price = f"{currencies.plain(offer.price, currency)} {currency}"
    return f"{minutes}, {price if offer.price_from is None else f'from {price}'}"


@render.failures_as_pages
def book_llms(request: HttpRequest) -> HttpResponse:
    """Return ``llms.txt`` of a booking page, or raise NotFoundError if it is off or unknown."""
    slug = request.path["workspace"]
    page = call(request, "open_booking_page", {"workspace": slug})
    url = f"{settings().public_url}{open_page.PATH}/{slug}"
    offers = [
        _link(
            service["name"],
            url=f"{url}/{service['id']}",
            about=_terms(
                OfferSummary(
                    price=service["price"],
                    price_from=service["priceFrom"],
                    duration_min=service["durationMin"],
                    duration_from_min=service["durationFromMin"],
                ),
                page["currency"],
            ),
        )
        for service in page["services"]
    ]
    products_url = sites.find_products_url(open_page.workspace_of(slug))
    sections = {"Services": offers, **_products(products_url, page["currency"])}
    text = _document(page["name"], summary=_summary(page["address"], page["phone"]), **sections)
    tools = _tools(url) if page["servesAssistants"] else ""
    response = file(text + tools)
    if page["isIndexed"]:
        return response
    return response.with_headers({**response.headers, "X-Robots-Tag": "noindex"})


def site_llms(site: SiteRow, pages: Iterable[PageRow], workspace_id: str) -> HttpResponse:
    """Return ``llms.txt`` of a site with its ``pages``."""
    links = {"Pages": [_link(each.title, url=each.url) for each in pages]}
    try:
        page = open_page.open_page_or_site(workspace_id, with_hours=False)
    except NotFoundError:  # Visitors find no page of the business.
        return file(_document(site.title, summary=_summary(site.description), **links))
    url, currency, workspace = page.url, page.workspace.currency, page.workspace
    links["Services"] = [
        _link(
            service.name,
            url=f"{url}/{service.id}" if url else None,
            about=_terms(summary_of(page.offers[service.id]), currency),
        )
        for service in page.services
    ]
    links |= _products(site.products_url, currency)
    contacts = (workspace.address, page.settings.phone or workspace.phone) if url else ()
    if url:
        links["Booking"] = [_link("Book online", url=url)]
    text = _document(site.title, summary=_summary(site.description, *contacts), **links)
    return file(text + (_tools(url) if url and page.assistants.is_on else ""))


def _products(url: str | None, currency: str) -> dict[str, list[str]]:
    if url is None:
        return {}
    feed = _link("Feed", url=f"{url}/feed.xml", about="RSS 2.0, with all of them")
    about = f"a page of each, with its price in {currency}"
    return {"Products": [_link("Products", url=url, about=about), feed]}


def _summary(*parts: str | None) -> str:
    return ". ".join(filter(None, (one_line(part or "", MAX_LINE).rstrip(".") for part in parts)))


def _document(title: str, *, summary: str, **sections: Iterable[str]) -> str:
    lines = [f"# {one_line(title, MAX_LINE)}", ""] + ([f"> {summary}", ""] if summary else [])
    for name, links in sections.items():
        if links:
            lines += [f"## {name}", "", *links, ""]
    return "\n".join(lines)


def _link(name: str, *, url: str | None, about: str = "") -> str:
    label = one_line(name, MAX_LINE).translate({ord("["): "(", ord("]"): ")"})
    return (f"- [{label}]({url})" if url else f"- {label}") + (f": {about}" if about else "")


def _tools(page_url: str) -> str:
    return (
        "\n## Tools for assistants\n\n"
        f"- [MCP server]({page_url}/mcp): streamable HTTP, no key. It answers questions and "
        "prepares bookings, which the visitor confirms.\n"
    )


def file(text: str, *, media_type: str = f"{TEXT_TYPE}; charset=utf-8") -> HttpResponse:
    """Return a file that search engines may keep for minutes."""
    body = text.encode()
    headers = {
        "Content-Type": media_type,
        "Cache-Control": render.CACHED_LONGER,
        "ETag": etag(body),
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(200, body, headers)
