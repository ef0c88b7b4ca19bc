"""Pages of forms."""

from collections.abc import Mapping
from typing import Any

from chalicelib.core.errors import AppError
from chalicelib.domains.leads.flows.form_html import PREVIEW_STYLES
from chalicelib.domains.leads.rules import form_templates
from chalicelib.transports.console.bots.embed import BUILDERS
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.deletion import deletion
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.console.sites import placing
from chalicelib.transports.console.sites.placing import Snippet
from chalicelib.transports.http import HttpResponse, redirect

FORMS_PER_PAGE = 20


def new_form_page(request: ConsoleRequest) -> HttpResponse:
    """Show the templates of forms."""
    return _new_page(request, 200)


def create(request: ConsoleRequest) -> HttpResponse:
    """Create a form from a template. A form that is sent twice creates one."""
    template = request.form_value("template")
    if template not in form_templates.TEMPLATES:
        text = request.translate("wrong_template")
        problem = Problem(request.translate("wrong_fields"), {"template": text})
        return _new_page(request, 400, problem)
    title = request.form_value("title").strip()
    try:
        response = request.call_once(
            "create_form",
            title=title or form_templates.title(template, language=request.language),
            fields=form_templates.fields(template, language=request.language),
        )
    except AppError as error:
        return _new_page(request, error.status, request.problem(error))
    return redirect(f"{form_path(request, response['form'])}?done=form_created")


def embed(request: ConsoleRequest) -> HttpResponse:
    """Show the embed code of a form, a preview, and the pages on which it can be placed."""
    return _embed_page(request, 200)


def place(request: ConsoleRequest) -> HttpResponse:
    """Add the form to a page of one of the workspace's sites, or update it there."""
    form = find_form(request)
    begins = form["embedHtml"].partition(' method="')[0]
    try:
        return placing.place(request, Snippet(form["embedHtml"], begins, "</form>"))
    except AppError as error:
        return _embed_page(request, error.status, placing.problem(request, error))


def find_form(request: ConsoleRequest) -> dict[str, Any]:
    """Return the form of a page, or raise NotFoundError."""
    form: dict[str, Any] = request.call("get_form", id=request.http.path["form"])["form"]
    return form


def form_path(request: ConsoleRequest, form: Mapping[str, Any]) -> str:
    """Return the path of a form's pages."""
    return f"{request.current_membership.path}/forms/{form['id']}"


def _new_page(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    templates = [
        {
            "key": key,
            "title": form_templates.title(key, language=request.language),
            "labels": [
                field["label"] for field in form_templates.fields(key, language=request.language)
            ],
        }
        for key in form_templates.TEMPLATES
    ]
    template_key = request.form_value("template") or request.query_value("template")
    return request.page(
        "form_new",
        status,
        problem=problem,
        templates=templates,
        chosen=template_key if template_key in form_templates.TEMPLATES else templates[0]["key"],
        typed_title=request.form_value("title"),
    )


def _embed_page(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    form = find_form(request)
    response = request.page(
        "form_embed",
        status,
        problem=problem,
        form=form,
        tab="embed",
        path=form_path(request, form),
        builders=BUILDERS,
        **placing.places(request),
    )
    policy = response.headers["Content-Security-Policy"].replace(
        "style-src 'self'", f"style-src 'self' {PREVIEW_STYLES}"
    )
    return response._replace(headers={**response.headers, "Content-Security-Policy": policy})


def _confirmation_values(request: ConsoleRequest) -> dict[str, Any]:
    form = find_form(request)
    return {"form": form, "path": form_path(request, form)}


confirm_delete, delete = deletion(
    "form_delete", _confirmation_values, "delete_form", notice="form_deleted", id="form"
)
index = ListPage("forms", "list_forms", FORMS_PER_PAGE, {"q": "q"}).index
