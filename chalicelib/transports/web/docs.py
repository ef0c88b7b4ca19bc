"""The API reference as pages, with guides and a search.

The pages work without script. They are built from the OpenAPI document that the packager wrote, so
no operation is imported.

An operation's example is rendered as calls that run unchanged, in curl, Python and MCP. The calls
read the key from the environment variable ``API_KEY``. Words in capitals are placeholders for ids.

``static/docs.js`` ranks the same search entries by the same rule, so results are the same with and
without JavaScript.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic_core import from_json, to_json

from chalicelib.transports.api_docs import prose
from chalicelib.transports.api_docs.model import Field, OperationDoc, Reference
from chalicelib.transports.api_docs.reference import document
from chalicelib.transports.http import JSON_TYPE, HttpRequest, HttpResponse, etag
from chalicelib.transports.web import render

_STREAM = "text/event-stream"
_INDENT = "    "
_SHORT = 60
"""Longest value, in characters, that is written on one line."""


def curl(operation: OperationDoc) -> str:
    """Return the call as a shell command."""
    path, query, body = operation.call
    flags = " -N" if operation.answer_type == _STREAM else ""
    flags += " -G" if query else ""
    flags += "" if operation.method == "GET" else f" -X {operation.method}"
    lines = [f"curl{flags} {_shell_quote(operation.base_url + _fill_path(operation.path, path))}"]
    if operation.needs_key:
        lines.append('-H "Authorization: Bearer $API_KEY"')
    texts = {name: query_text(value) for name, value in query.items()}
    lines += [f"--data-urlencode {_shell_quote(f'{name}={text}')}" for name, text in texts.items()]
    if body:
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d {_shell_quote(_json(body))}")
    return " \\\n  ".join(lines)


def query_text(value: object) -> str:
    """Return a value as a query string's value, with booleans as ``true`` and ``false``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def python(operation: OperationDoc) -> str:
    """Return the call as a Python program with ``requests``."""
    path, query, body = operation.call
    url = operation.base_url + _fill_path(operation.path, path)
    arguments = [f'"{url}"']
    if operation.needs_key:
        arguments.append('headers={"Authorization": f"Bearer {os.environ[\'API_KEY\']}"}')
    if query:
        texts = {n: query_text(v) if isinstance(v, bool) else v for n, v in query.items()}
        arguments.append(f"params={_python(texts, 1)}")
    if body:
        arguments.append(f"json={_python(body, 1)}")
    streamed = operation.answer_type == _STREAM
    arguments.append("stream=True, timeout=300" if streamed else "timeout=30")
    inside = "".join(f"{_INDENT}{argument},\n" for argument in arguments)
    call = f"requests.{operation.method.lower()}(\n{inside})"
    imports = "import os\n\nimport requests" if operation.needs_key else "import requests"
    if streamed:
        return (
            f"import json\n\n{imports}\n\nresponse = {call}\nfor line in response.iter_lines():\n"
            f'{_INDENT}if line.startswith(b"data: "):\n{_INDENT * 2}print(json.loads(line[6:]))'
        )
    printed = (
        'response.json()["data"]'
        if operation.answer_type == "application/json"
        else ("response.text")
    )
    return f"{imports}\n\nresponse = {call}\nprint({printed})"


def tool_call(operation: OperationDoc) -> str | None:
    """Return the call as a message to the tool server, or None without a tool."""
    if operation.tool is None:
        return None
    params = {"name": operation.tool, "arguments": dict(operation.example)}
    return _json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


def answer(operation: OperationDoc) -> str:
    """Return the recorded response to the call."""
    if operation.answer is None:
        return ""
    return operation.answer if isinstance(operation.answer, str) else _json(operation.answer)


def _fill_path(path: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


def _shell_quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _json(value: object) -> str:
    """Return indented JSON, with short values on one line."""
    return _format(value, 0, lambda scalar: json.dumps(scalar, ensure_ascii=False), "  ", "")


def _python(value: object, depth: int) -> str:
    """Return a value as a Python literal, formatted as a code formatter would."""

    def scalar(value: object) -> str:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)

    return _format(value, depth, scalar, _INDENT, ",")


def _format(value: Any, depth: int, scalar: Any, indent: str, last: str) -> str:  # noqa: ANN401  any JSON value, and its formatter
    if not isinstance(value, Mapping | list) or not value:
        return "{}" if value == {} else "[]" if value == [] else str(scalar(value))
    inner = indent * (depth + 1)
    if isinstance(value, Mapping):
        opened, closed = "{}"
        parts = [
            f"{scalar(name)}: {_format(member, depth + 1, scalar, indent, last)}"
            for name, member in value.items()
        ]
    else:
        opened, closed = "[]"
        parts = [_format(member, depth + 1, scalar, indent, last) for member in value]
    flat = opened + ", ".join(parts) + closed
    if len(flat) <= _SHORT and "\n" not in flat:
        return flat
    lines = ",\n".join(inner + part for part in parts)
    return f"{opened}\n{lines}{last}\n{indent * depth}{closed}"


PATH = "/api/docs"
MAX_QUERY = 100
MAX_RESULTS = 40
"""Maximum results on a page. The page also shows the total."""


class Entry(NamedTuple):
    """An entry of the search index.

    ``words`` are all words that match it, in lower case.
    """

    title: str
    about: str
    url: str
    words: str


def entries(reference: Reference) -> list[Entry]:
    """Return all entries, with operations before the others."""
    return [*_operations(reference), *_guides(reference), *_records(reference)]


def find(all_entries: list[Entry], query: str) -> list[Entry]:
    """Return all entries that have every word of a query.

    Matches in the title come first.
    """
    words = query[:MAX_QUERY].lower().split()
    if not words:
        return []
    ranked = []
    for number, entry in enumerate(all_entries):
        title, about = entry.title.lower(), entry.about.lower()
        score = 0
        for word in words:
            if word in title:
                score += 0 if title.startswith(word) else 1
            elif word in about:
                score += 2
            elif word in entry.words:
                score += 4
            else:
                break
        else:
            ranked.append((score, number, entry))
    return [entry for _score, _number, entry in sorted(ranked)]


def _operations(reference: Reference) -> Iterator[Entry]:
    for operation in reference.operations:
        tool = f" · {operation.tool}" if operation.tool else ""
        names = " ".join(_names((*operation.inputs, *operation.outputs)))
        words = f"{operation.name} {operation.scope or ''} {names} {operation.description}"
        yield Entry(
            operation.title,
            f"{operation.method} {operation.path}{tool}",
            f"{PATH}/{operation.area}#{operation.name}",
            _tidy(words),
        )


def _guides(reference: Reference) -> Iterator[Entry]:
    for guide in prose.GUIDES:
        yield from _sections(reference, guide.name, guide.title, f"{guide.title} {guide.about}")
    for area in reference.areas:
        if prose.has_guide(area.name):
            yield from _sections(reference, area.name, area.title)
    for code in reference.codes:
        about = f"Error code, HTTP {code.status}"
        yield Entry(code.code, about, f"{PATH}/errors#all-codes", _tidy(code.description))


def _sections(reference: Reference, name: str, title: str, about: str = "") -> Iterator[Entry]:
    """Yield a guide and its sections, which match the words of their content."""
    url = f"{PATH}/{name}"
    for heading, text in prose.sections(prose.guide(name, reference)):
        if heading is None:
            yield Entry(title, "Guide", url, _tidy(f"{about} {text}"))
        else:
            yield Entry(heading.text, title, f"{url}#{heading.anchor}", _tidy(text))


def _records(reference: Reference) -> Iterator[Entry]:
    seen = set()
    for area in reference.areas:
        for record in reference.records(area):
            if record.name not in seen:
                seen.add(record.name)
                words = _tidy(" ".join((*_names(record.fields), *record.facts)))
                url = f"{PATH}/{area.name}#{record.name}"
                yield Entry(record.name, f"Record, {area.title}", url, words)


def _names(fields: tuple[Field, ...]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield from _names(field.fields)


def _tidy(words: str) -> str:
    """Return the distinct words, in lower case."""
    return " ".join(dict.fromkeys(words.lower().replace("`", "").split()))


SCRIPT = "docs"


@render.failures_as_pages
def start(request: HttpRequest) -> HttpResponse:
    """Show the start page, or the search results for ``q``."""
    query = (request.query.get("q") or [""])[-1].strip()[:MAX_QUERY]
    reference = _reference()
    if not query:
        return _guide(request, reference, prose.START)
    matches = find(_entries(reference), query)
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
    """Show a guide, or the operations of an area."""
    name, reference = request.path["section"], _reference()
    for guide in prose.GUIDES:
        if guide.name == name:
            return _guide(request, reference, guide)
    area = reference.area(name)
    if area is None:
        return _page(request, reference, "docs/missing.html", status=404, query="")
    return _page(
        request,
        reference,
        "docs/area.html",
        area=area,
        intro=prose.to_html(prose.guide(name, reference)) if prose.has_guide(name) else "",
        records=reference.records(area),
    )


def index(_request: HttpRequest) -> HttpResponse:
    """Return the search index for the page's script."""
    body = _index(_reference())
    headers = {"Content-Type": JSON_TYPE, "ETag": etag(body), "Cache-Control": render.CACHED}
    return HttpResponse(200, body, headers)


def _guide(request: HttpRequest, reference: Reference, guide: prose.Guide) -> HttpResponse:
    markdown = prose.guide(guide.name, reference)
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
        "guides": prose.GUIDES,
        "here": "",
        "query": "",
        "area": None,
        "prose": lambda text: Markup(prose.to_html(text)),  # noqa: S704  the project's own texts, escaped
        "inline": lambda text: Markup(prose.inline(text)),  # noqa: S704  as above
        "samples": _samples,
        "answer_of": answer,
        "coloured": lambda code: Markup(prose.coloured(code)),  # noqa: S704  as above
        "html": Markup,
    }
    here = {"here": request.path.get("section", "")}
    return render.page(request, template, script=SCRIPT, **shared | here | values)


def _samples(operation: OperationDoc) -> list[tuple[str, str]]:
    """Return the sample calls of an operation by the name of the language."""
    calls = {
        "cURL": curl(operation),
        "Python": python(operation),
        "MCP": tool_call(operation),
    }
    return [(language, code) for language, code in calls.items() if code]


def _reference() -> Reference:
    return _parse(document())


@lru_cache(maxsize=1)
def _parse(text: bytes) -> Reference:
    return Reference(from_json(text))


@lru_cache(maxsize=1)
def _entries(reference: Reference) -> list[Entry]:
    return entries(reference)


@lru_cache(maxsize=1)
def _index(reference: Reference) -> bytes:
    return to_json(_entries(reference))
