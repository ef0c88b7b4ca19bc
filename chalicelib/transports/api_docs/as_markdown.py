"""Guides and areas of the reference as Markdown, for models and for docs/reference.md."""

import re
from collections.abc import Iterable, Iterator

from chalicelib.transports.api_docs import prose, samples
from chalicelib.transports.api_docs.model import Area, Field, OperationDoc, Reference

_HEADING = re.compile(r"^(#+) ", re.MULTILINE)


def page(reference: Reference, name: str) -> str | None:
    """Return a guide or an area with absolute links, or None if there is neither."""
    for guide in (prose.START, *prose.GUIDES):
        if guide.name == name:
            text = f"# {guide.title}\n\n{prose.guide(name, reference)}"
            return _with_absolute_links(text, reference.base_url)
    area = reference.area(name)
    if area is None:
        return None
    text = "\n\n".join(part.strip() for part in area_parts(reference, area)) + "\n"
    return _with_absolute_links(text.removeprefix("#"), reference.base_url)


def _with_absolute_links(text: str, base_url: str) -> str:
    return text.replace("](/", f"]({base_url}/")


def guide_part(reference: Reference, name: str, *, title: str) -> str:
    """Return a guide as a part of a longer document."""
    text = _HEADING.sub(r"#\1 ", prose.guide(name, reference))
    return f"## {title}\n\n{text}"


def area_parts(reference: Reference, area: Area) -> Iterator[str]:
    """Yield the parts of an area: its introduction, its operations and its records."""
    if prose.has_guide(area.name):
        yield guide_part(reference, area.name, title=area.title)
    else:
        yield f"## {area.title}\n\n{area.description}"
    for operation in area.operations:
        yield from _operation(operation)
    if records := reference.records(area):
        yield f"### Records of {area.title.lower()}"
        for record in records:
            yield f"#### {record.name}\n\n{record.description}"
            if record.facts:
                yield ", ".join(record.facts)
            if record.fields:
                yield "\n".join(_fields(record.fields, required=False))


def _operation(operation: OperationDoc) -> Iterator[str]:
    yield f'<a id="{operation.name}"></a>\n\n### {operation.title}'
    ways = f"`{operation.method} {operation.path}`"
    if operation.tool:
        ways += f" · tool `{operation.tool}`"
    if not operation.needs_key:
        ways += " · no API key"
    else:
        ways += f" · scope `{operation.scope}`" if operation.scope else " · any valid key"
    yield ways
    yield operation.description
    yield "\n".join(_notes(operation))
    if operation.inputs:
        yield "Input:\n\n" + "\n".join(_fields(operation.inputs, required=True))
    if operation.outputs:
        yield "Answer:\n\n" + "\n".join(_fields(operation.outputs, required=False))
    elif operation.answer_type != "application/json":
        yield f"Answer: `{operation.answer_type}`"
    codes = (f"{f.status} {_codes(f.codes)}" for f in operation.failures)
    yield f"Errors: {'; '.join(codes)}"
    yield f"```sh\n{samples.curl(operation)}\n```"


def _codes(codes: Iterable[str]) -> str:
    return ", ".join(f"`{code}`" for code in codes)


def _notes(operation: OperationDoc) -> Iterator[str]:
    if operation.destructive:
        yield "- Removes or overwrites what was there."
    if operation.takes_idempotency_key:
        yield "- Takes an [idempotency key](/api/docs/conventions#idempotency)."
    if operation.limit:
        yield f"- {operation.limit.requests} {operation.limit.counts}."
    if operation.body_types:
        yield f"- Also takes {_codes(operation.body_types)}."


def _fields(fields: Iterable[Field], depth: int = 0, *, required: bool) -> Iterator[str]:
    for field in fields:
        remarks = [field.type_text]
        if field.place in {"path", "query"}:
            remarks.append(f"in {field.place}")
        if required and field.required:
            remarks.append("**required**")
        facts = f" ({'; '.join(field.facts)})" if field.facts else ""
        described = f": {field.description}" if field.description else ""
        yield f"{'  ' * depth}- `{field.name}` {', '.join(remarks)}{described}{facts}"
        yield from _fields(field.fields, depth + 1, required=required)
