"""The OpenAPI document with some of its areas, for clients that can take few operations.

GPT Actions refuse descriptions of operations above 300 characters, and of parameters above 700.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_DESCRIPTION = 300
MAX_PARAMETER_DESCRIPTION = 700
_COMPONENT = re.compile(r"#/components/(\w+)/(.+)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_REFERENCE_ONLY = {"x-errors", "x-error-keys", "x-warnings", "x-error-codes"}


def trimmed(document: Mapping[str, Any], areas: Sequence[str]) -> dict[str, Any]:
    """Return the document with the operations of some areas and the components that they use.

    It has no recorded responses, and none of the tables that only the reference needs.
    """
    paths: dict[str, dict[str, Any]] = {}
    for path, entries in document["paths"].items():
        for method, entry in entries.items():
            if entry["tags"][0] in areas:
                paths.setdefault(path, {})[method] = _short_operation(entry)
    kept = {name: value for name, value in document.items() if name not in _REFERENCE_ONLY}
    tags = [tag for tag in document["tags"] if tag["name"] in areas]
    return {
        **kept,
        "tags": tags,
        "paths": paths,
        "components": _used_components(document["components"], paths),
    }


def short(description: str) -> str:
    """Return a description without its last sentences that exceed the limit, except the very last.

    The last paragraph names the scope and the tool of an operation, and stays.
    """
    if len(description) <= MAX_DESCRIPTION:
        return description
    text, _, access = description.rpartition("\n\n")
    sentences = _SENTENCE.split(" ".join(text.split()))
    room = MAX_DESCRIPTION - len(access) - len("\n\n")
    while len(sentences) > 1 and len(" ".join(sentences)) > room:
        sentences.pop()
    return f"{' '.join(sentences)}\n\n{access}"


def _short_operation(entry: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in entry.items() if name not in _REFERENCE_ONLY}
    responses = {
        status: _without_example(response) for status, response in entry["responses"].items()
    }
    return {**kept, "description": short(entry["description"]), "responses": responses}


def _without_example(response: Mapping[str, Any]) -> dict[str, Any]:
    if "content" not in response:
        return dict(response)
    content = {
        media_type: {name: value for name, value in shown.items() if name != "example"}
        for media_type, shown in response["content"].items()
    }
    return {**response, "content": content}


def _used_components(components: Mapping[str, Any], paths: Mapping[str, Any]) -> dict[str, Any]:
    used: dict[str, set[str]] = {}
    waiting = [*_references(paths)]
    while waiting:
        kind, name = waiting.pop()
        if name not in used.setdefault(kind, set()):
            used[kind].add(name)
            waiting += _references(components[kind][name])
    return {
        kind: {
            name: value
            for name, value in named.items()
            if kind == "securitySchemes" or name in used.get(kind, ())
        }
        for kind, named in components.items()
    }


def _references(node: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401  any JSON
    if isinstance(node, Mapping):
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)
    elif isinstance(node, str) and (match := _COMPONENT.fullmatch(node)):
        yield match[1], match[2]
