"""The short URL in an SMS, which leads to the page of a booking."""

from chalicelib.domains.bookings.flows import booking_links
from chalicelib.transports.http import HttpRequest, HttpResponse, redirect
from chalicelib.transports.web import render


def show(request: HttpRequest) -> HttpResponse:
    """Lead to the page of a booking, or respond with 404. Nothing is changed by it."""
    return render.private(_show)(request)


def _show(request: HttpRequest) -> HttpResponse:
    return redirect(booking_links.url_of_short_code(request.path["code"]))
