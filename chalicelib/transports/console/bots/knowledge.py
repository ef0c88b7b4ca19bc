"""Pages of the sources from which a bot answers."""

from typing import Any

from chalicelib.core.errors import AppError, NotFoundError, ValidationError
from chalicelib.core.settings import settings
from chalicelib.domains.knowledge.rules import quotas
from chalicelib.domains.knowledge.store import sources
from chalicelib.transports.console.bots.bots import agent, bot_page, bot_path, find_bot
from chalicelib.transports.console.console_request import ConsoleRequest, Problem, find_by_id
from chalicelib.transports.console.deletion import deletion
from chalicelib.transports.console.uploads import store_files
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

# The field with the content of a new source, by the kind of source.
FIELDS = {sources.TEXT: "text", sources.URL: "url", sources.FILE: "fileId"}
CONTROL = "uploadedFile"  # Name of the file control.
MAX_QUERY = 200
Fields = dict[str, Any]


def index(request: ConsoleRequest) -> HttpResponse:
    """List a bot's sources. ``?add=`` names the kind of source whose form to show."""
    return _page(request, 200, request.query_value("add"))


def add(request: ConsoleRequest) -> HttpResponse:
    """Add a source of the kind that the form names."""
    bot = find_bot(request)
    kind = request.form_value("kind") if request.form_value("kind") in FIELDS else sources.TEXT
    title, content = request.form_value("title"), request.form_value(FIELDS[kind])
    uploads = store_files(request, CONTROL)
    if kind == sources.FILE and uploads.ids:
        content = uploads.ids[-1]
    try:
        if uploads.problem:
            raise ValidationError.of(CONTROL, message=uploads.problem)
        if not content:  # The operation would name another field: it takes one of three.
            raise ValidationError.of(FIELDS[kind], message="expected a value, received none")
        request.call_once("add_knowledge", id=bot["id"], title=title, **{FIELDS[kind]: content})
    except NotFoundError as error:  # The bot has just been found, so it is the file.
        text = request.translate("wrong_fileId")
        problem = Problem(request.translate("wrong_fields"), {"fileId": text})
        return _page(request, error.status, kind, problem)
    except AppError as error:
        problem = request.problem(error)
        if error.key in {"too_many_sources", "too_much_text"}:
            text = request.translate("knowledge_full", most=quotas.MAX_SOURCES)
            problem = Problem(text)
        if "fileId" in problem.fields and not request.form_value("fileId"):
            problem = problem._replace(fields={CONTROL: problem.fields["fileId"]})
        return _page(request, error.status, kind, problem)
    return redirect(f"{_path(request, bot)}?done=source_added_{kind}")


def _path(request: ConsoleRequest, bot: Fields) -> str:
    return f"{bot_path(request, bot)}/knowledge"


def _sources(request: ConsoleRequest, bot: Fields) -> list[Fields]:
    sources = request.call("list_knowledge", id=bot["id"])["sources"]
    return [{**source, "error": _translated(request, source)} for source in reversed(sources)]


def _translated(request: ConsoleRequest, source: Fields) -> str:
    # Rows of earlier releases have sentences without codes.
    if not source["error"] or not source["errorDetails"]:
        return source["error"] or ""
    return " ".join(_sentence(request, detail) for detail in source["errorDetails"])


def _sentence(request: ConsoleRequest, detail: Fields) -> str:
    key = f"reason_{detail['code']}"
    if not texts.has(request.language, key):  # a code of a newer release that was rolled back
        return str(detail["message"])
    facts = {
        name: texts.number(request.language, value) if isinstance(value, int) else value
        for name, value in detail.items()
    }
    return request.translate(key, **facts)


def _page(
    request: ConsoleRequest, status: int, kind: str, problem: Problem | None = None
) -> HttpResponse:
    source_rows = _sources(request, agent(request))
    adding = kind if kind in FIELDS and request.current_membership.may("add_knowledge") else ""
    query = (request.form_value("q") or request.query_value("q"))[:MAX_QUERY].strip()
    files: Fields = {}
    if adding == sources.FILE:
        files = request.call("list_readable_files", **({"q": query} if query else {}))
    return bot_page(
        request,
        "bot_knowledge",
        tab="knowledge",
        status=status,
        problem=problem,
        sources=source_rows,
        most=quotas.MAX_SOURCES,
        adding=adding,
        files=files,
        query=query,
        typed={name: request.form_value(name) for name in ("title", *FIELDS.values())}
        | {CONTROL: request.form.get(CONTROL, [])},
        kinds=tuple(FIELDS),
        base_url=settings().public_url,
    )


def _confirmation_values(request: ConsoleRequest) -> dict[str, Any]:
    bot = find_bot(request)
    source = find_by_id(_sources(request, bot), request.http.path["source"])
    return {"bot": bot, "source": source, "path": _path(request, bot)}


confirm_delete, delete = deletion(
    "bot_source_delete",
    _confirmation_values,
    "delete_knowledge",
    notice="source_deleted",
    id="id",
    sourceId="source",
)
