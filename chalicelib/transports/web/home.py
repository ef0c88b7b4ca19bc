"""The start page of the service, with links to the console, the reference and the blog."""

from chalicelib.transports import chalice_app
from chalicelib.transports.http import HttpRequest, HttpResponse, failure, prefers_html
from chalicelib.transports.web import render


@render.failures_as_pages
def page(request: HttpRequest) -> HttpResponse:
    """Show the start page to a browser.

    Other clients get the JSON response of an unknown path.
    """
    if not prefers_html(request):
        return failure(chalice_app.unknown_path(), request.request_id, Vary="Accept")
    response = render.page(request, "home.html")
    return response._replace(headers={**response.headers, "Vary": "Accept, Accept-Language"})
