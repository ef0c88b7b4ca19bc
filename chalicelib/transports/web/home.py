"""The start page, which shows owners the uses of the service and has links for programs."""

from dataclasses import replace

from chalicelib.transports import chalice_app
from chalicelib.transports.http import HttpRequest, HttpResponse, failure, prefers_html
from chalicelib.transports.web import render


@render.failures_as_pages
def page(request: HttpRequest) -> HttpResponse:
    """Show the start page to a browser. Other clients get the JSON response of an unknown path."""
    if not prefers_html(request):
        return failure(chalice_app.unknown_path(), request.request_id, Vary="Accept")
    language = (list(request.query.get("lang", ())) or [""])[-1]
    response = render.page(replace(request, language=language), "home.html")
    return response._replace(headers={**response.headers, "Vary": "Accept, Accept-Language"})
