"""Describe a business for programs, with JSON-LD (schema.org) and ``llms.txt`` (llmstxt.org)."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import to_json

from chalicelib.core.errors import NotFoundError
from chalicelib.core.settings import settings
from chalicelib.core.text import one_line
from chalicelib.domains.booking_page.flows import open_page
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


def _minutes(service: Mapping[str, Any]) -> str:
    shortest = service["durationFromMin"]
    return f"from {shortest} min" if shortest else f"{service['durationMin']} min"


def _price(service: Mapping[str, Any], currency: str) -> str:
    text = f"{currencies.plain(service['price'], currency)} {currency}"
    return text if service["priceFrom"] is None else f"from {text}"


@render.failures_as_pages
def book_llms(request: HttpRequest) -> HttpResponse:
    """Return ``llms.txt`` of a booking page, or raise NotFoundError if it is off or unknown."""
    slug = request.path["workspace"]
    page = call(request, "open_booking_page", {"workspace": slug})
    url = f"{settings().public_url}{open_page.PATH}/{slug}"
    currency = page["currency"]
    offers = [
        _link(
            service["name"],
            url=f"{url}/{service['id']}",
            about=f"{_minutes(service)}, {_price(service, currency)}",
        )
        for service in page["services"]
    ]
    contacts = [one_line(page[name], MAX_LINE) for name in ("address", "phone") if page[name]]
    text = _document(page["name"], summary=". ".join(contacts), sections={"Services": offers})
    tools = _tools(url) if page["servesAssistants"] else ""
    response = file(text + tools)
    if page["isIndexed"]:
        return response
    return response.with_headers({**response.headers, "X-Robots-Tag": "noindex"})


def site_llms(title: str, pages: Iterable[tuple[str, str]], workspace_id: str) -> HttpResponse:
    """Return ``llms.txt`` of a site, whose ``pages`` have a title and a URL."""
    links = [_link(page_title, url=url) for page_title, url in pages]
    try:
        page = open_page.open_page(workspace_id)
    except NotFoundError:  # The booking page is off.
        return file(_document(title, summary="", sections={"Pages": links}))
    url = f"{settings().public_url}{open_page.PATH}/{page.workspace.slug}"
    text = _document(
        title, summary="", sections={"Pages": links, "Booking": [_link("Book online", url=url)]}
    )
    return file(text + (_tools(url) if page.assistants.is_on else ""))


def _document(title: str, *, summary: str, sections: Mapping[str, Iterable[str]]) -> str:
    lines = [f"# {one_line(title, MAX_LINE)}", ""] + ([f"> {summary}", ""] if summary else [])
    for name, links in sections.items():
        lines += [f"## {name}", "", *links, ""]
    return "\n".join(lines)


def _link(name: str, *, url: str, about: str = "") -> str:
    label = one_line(name, MAX_LINE).translate({ord("["): "(", ord("]"): ")"})
    return f"- [{label}]({url})" + (f": {about}" if about else "")


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
