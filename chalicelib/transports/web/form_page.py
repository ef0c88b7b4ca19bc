"""A form on a page of its own, for a link in a message or a profile."""

from chalicelib.core.settings import settings
from chalicelib.domains.leads.flows import form_html
from chalicelib.domains.leads.flows.submissions import form_with_business
from chalicelib.transports.http import HTML_TYPE, HttpRequest, HttpResponse, etag
from chalicelib.transports.web import render


@render.failures_as_pages
def show(request: HttpRequest) -> HttpResponse:
    """Show a form in its own language.

    Raises:
        NotFoundError: the form does not exist, or its site is suspended.
    """
    form, business = form_with_business(request.path["form"])
    url = f"{settings().public_url}/api/public/forms/{request.path['form']}/submit"
    html = form_html.form_page(
        form.title, form.fields, form.language, submit_url=url, business=business
    )
    headers = {"Content-Type": HTML_TYPE, **form_html.form_page_headers(form.language)}
    headers |= {"Cache-Control": render.CACHED, "ETag": etag(html.encode())}
    return HttpResponse(200, html.encode(), headers)
