"""Rank entries of the reference by the same rule as ``static/docs.js``, with the same results."""

from collections.abc import Iterator
from typing import NamedTuple

from chalicelib.transports.api_docs import prose
from chalicelib.transports.api_docs.model import Field, Reference

PATH = "/api/docs"
MAX_QUERY = 100


class Entry(NamedTuple):
    """An entry of the search index. ``words`` are all words that match it, in lower case."""

    title: str
    about: str
    url: str
    words: str


def entries(reference: Reference) -> list[Entry]:
    """Return all entries, with operations before the others."""
    return [*_operations(reference), *_guides(reference), *_records(reference)]


def find(all_entries: list[Entry], query: str) -> list[Entry]:
    """Return all entries that have every word of a query. Matches in the title come first."""
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
        yield from _sections(
            reference, guide.name, title=guide.title, about=f"{guide.title} {guide.about}"
        )
    for area in reference.areas:
        if prose.has_guide(area.name):
            yield from _sections(reference, area.name, title=area.title)
    for code in reference.codes:
        about = f"Error code, HTTP {code.status}"
        yield Entry(code.code, about, f"{PATH}/errors#all-codes", _tidy(code.description))
    for warning in reference.warnings:
        url = f"{PATH}/errors#warnings"
        yield Entry(warning.code, "Code of a warning", url, _tidy(warning.description))


def _sections(reference: Reference, name: str, *, title: str, about: str = "") -> Iterator[Entry]:
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
    return " ".join(dict.fromkeys(words.lower().replace("`", "").split()))
