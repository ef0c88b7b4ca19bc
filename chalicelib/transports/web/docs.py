"""The API reference as pages, with guides and a search, which work without script.

They are built from the OpenAPI document of the packager, so no operation is imported.
"""

from functools import lru_cache
from typing import Any

from pydantic_core import from_json, to_json

from chalicelib.transports.api_docs import as_markdown, llms_file, prose, samples, search
from chalicelib.transports.api_docs.model import OperationDoc, Reference
from chalicelib.transports.api_docs.reference import document
from chalicelib.transports.http import (
    CACHED,
    JSON_TYPE,
    TEXT_TYPE,
    HttpRequest,
    HttpResponse,
    etag,
)
from chalicelib.transports.web import render

SCRIPT = "docs"
MARKDOWN = ".md"  # With this ending, a page of the reference is Markdown, as llmstxt.org asks.
INDEX = "search.json"  # Name of the search index for the page's script.
MAX_RESULTS = 40  # Maximum results on a page. The page also shows the total.


@render.failures_as_pages
def start(request: HttpRequest) -> HttpResponse:
    """Show the start page, or the search results for ``q``."""
    query = (request.query.get("q") or [""])[-1].strip()[: search.MAX_QUERY]
    reference = _reference()
    if not query:
        return _guide(request, reference, prose.START)
    matches = search.find(_entries(reference), query)
    page_of_matches = matches[:MAX_RESULTS]
    return _page(
        request,
        reference,
        "docs/search.html",
        query=query,
        found=page_of_matches,
        total=len(matches),
    )


@render.failures_as_pages
def section(request: HttpRequest) -> HttpResponse:
    """Show a guide, the changelog, or the operations of an area, or return the search index."""
    name, reference = request.path["section"], _reference()
    if name == INDEX:
        return _file(_index(reference), JSON_TYPE)
    if name.endswith(MARKDOWN):
        return _markdown(request, reference, name.removesuffix(MARKDOWN))
    if name == prose.CHANGELOG.name:
        return _prose(request, reference, prose.CHANGELOG, prose.changelog())
    for guide in prose.GUIDES:
        if guide.name == name:
            return _guide(request, reference, guide)
    area = reference.area(name)
    if area is None:
        return _missing(request, reference)
    return _page(
        request,
        reference,
        "docs/area.html",
        area=area,
        intro=prose.to_html(prose.guide(name, reference)) if prose.has_guide(name) else "",
        records=reference.records(area),
    )


def llms(_request: HttpRequest) -> HttpResponse:
    """Return ``llms.txt`` of the service, which lists the pages of the reference."""
    return _file(llms_file.text(_reference()), f"{TEXT_TYPE}; charset=utf-8")


def _markdown(request: HttpRequest, reference: Reference, name: str) -> HttpResponse:
    if name == prose.CHANGELOG.name:
        text: str | None = f"# {prose.CHANGELOG.title}\n\n{prose.changelog()}"
    else:
        text = as_markdown.page(reference, name)
    if text is None:
        return _missing(request, reference)
    return _file(text, "text/markdown; charset=utf-8")


def _file(content: str | bytes, media_type: str) -> HttpResponse:
    body = content.encode() if isinstance(content, str) else content
    headers = {"Content-Type": media_type, "ETag": etag(body), "Cache-Control": CACHED}
    return HttpResponse(200, body, headers)


def _missing(request: HttpRequest, reference: Reference) -> HttpResponse:
    return _page(request, reference, "docs/missing.html", status=404, query="")


def _guide(request: HttpRequest, reference: Reference, guide: prose.Guide) -> HttpResponse:
    return _prose(request, reference, guide, prose.guide(guide.name, reference))


def _prose(
    request: HttpRequest, reference: Reference, guide: prose.Guide, markdown: str
) -> HttpResponse:
    sections = [section for section in prose.headings(markdown) if section.level == 2]  # noqa: PLR2004  below h1
    return _page(
        request,
        reference,
        "docs/guide.html",
        guide=guide.name,
        title=guide.title,
        about=guide.about,
        text=prose.to_html(markdown),
        sections=sections,
    )


def _page(request: HttpRequest, reference: Reference, template: str, **values: Any) -> HttpResponse:  # noqa: ANN401  values of any type
    from markupsafe import Markup

    shared: dict[str, Any] = {
        "reference": reference,
        "guides": (*prose.GUIDES, prose.CHANGELOG),
        "here": "",
        "query": "",
        "area": None,
        "prose": lambda text: Markup(prose.to_html(text)),  # noqa: S704  the project's own texts, escaped  # nosec B704
        "inline": lambda text: Markup(prose.inline(text)),  # noqa: S704  as above  # nosec B704
        "samples": _samples,
        "answer_of": samples.answer,
        "coloured": lambda code: Markup(prose.coloured(code)),  # noqa: S704  as above  # nosec B704
        "html": Markup,
    }
    here = {"here": request.path.get("section", "")}
    return render.page(request, template, script=SCRIPT, **shared | here | values)


def _samples(operation: OperationDoc) -> list[tuple[str, str]]:
    calls = {
        "cURL": samples.curl(operation),
        "Python": samples.python(operation),
        "JavaScript": samples.javascript(operation),
        "MCP": samples.tool_call(operation),
    }
    return [(language, code) for language, code in calls.items() if code]


def _reference() -> Reference:
    return _parse(document())


@lru_cache(maxsize=1)
def _parse(text: bytes) -> Reference:
    return Reference(from_json(text))


@lru_cache(maxsize=1)
def _entries(reference: Reference) -> list[search.Entry]:
    return search.entries(reference)


@lru_cache(maxsize=1)
def _index(reference: Reference) -> bytes:
    return to_json(_entries(reference))
