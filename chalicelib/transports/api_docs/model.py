"""The OpenAPI document in the form that the reference shows."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

REF = "#/components/schemas/"
_JSON = "application/json"
_LIMITS = (
    ("minLength", "maxLength", "characters"),
    ("minItems", "maxItems", "items"),
    ("minimum", "maximum", ""),
)
# Fields that every successful response has, next to its own.
_ENVELOPE = frozenset({"status", "warnings", "warningDetails"})


class TypePart(NamedTuple):
    """A part of a type's name. ``record`` is the component that it names, if any."""

    text: str
    record: str | None = None


@dataclass(frozen=True)
class Field:
    """A field of an input, a response or a record. ``place`` of an input is path, query or body."""

    name: str
    type: tuple[TypePart, ...]
    description: str
    required: bool
    facts: tuple[str, ...] = ()  # Bounds, values and the default, as Markdown.
    place: str = ""
    fields: tuple["Field", ...] = ()  # Fields of an object that is not a named record.

    @property
    def type_text(self) -> str:
        return "".join(part.text for part in self.type)


class Failure(NamedTuple):
    status: str
    codes: tuple[str, ...]


class RateLimit(NamedTuple):
    requests: int
    seconds: int
    counts: str


@dataclass(frozen=True, eq=False)
class OperationDoc:
    name: str
    area: str
    title: str
    description: str
    method: str
    path: str
    base_url: str
    tool: str | None
    scope: str | None
    needs_key: bool
    destructive: bool
    limit: RateLimit | None
    takes_idempotency_key: bool
    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    failures: tuple[Failure, ...]
    body_types: tuple[str, ...]  # Content types that the operation accepts besides JSON.
    answer_type: str
    # The values of path, query and body together, in the form that the tool accepts.
    example: Mapping[str, Any]
    answer: Any

    @cached_property
    def call(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        path = {k: v for k, v in self.example.items() if f"{{{k}}}" in self.path}
        body_fields = {k: v for k, v in self.example.items() if k not in path}
        in_query = {field.name for field in self.inputs if field.place == "query"}
        query = {k: v for k, v in body_fields.items() if k in in_query}
        return path, query, {k: v for k, v in body_fields.items() if k not in query}


@dataclass(frozen=True)
class Area:
    """Operations of one scope's area, or the operations for visitors."""

    name: str
    title: str
    description: str
    operations: tuple[OperationDoc, ...]


class Code(NamedTuple):
    code: str
    status: int
    description: str


class WarningDoc(NamedTuple):
    code: str
    description: str
    facts: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """A named object, or a string that has a few allowed values. ``facts`` lists these values."""

    name: str
    description: str
    fields: tuple[Field, ...]
    facts: tuple[str, ...] = ()


class Reference:
    """The reference of a server at ``base_url``."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._schemas: Mapping[str, Any] = document["components"]["schemas"]
        self.base_url: str = document["servers"][0]["url"]
        self.version: str = document["info"]["version"]
        operations = [
            self._operation(method.upper(), path=path, entry=entry)
            for path, entries in document["paths"].items()
            for method, entry in entries.items()
        ]
        self.areas = tuple(
            Area(
                tag["name"],
                tag["x-displayName"],
                tag["description"],
                tuple(_sorted(tag["name"], (o for o in operations if o.area == tag["name"]))),
            )
            for tag in document["tags"]
        )
        self.codes = tuple(Code(**error) for error in document["x-errors"])
        self.error_keys: Mapping[str, Sequence[str]] = document["x-error-keys"]
        self.warnings = tuple(WarningDoc(**warning) for warning in document["x-warnings"])

    @cached_property
    def operations(self) -> tuple[OperationDoc, ...]:
        return tuple(operation for area in self.areas for operation in area.operations)

    def operation(self, name: str) -> OperationDoc:
        return next(operation for operation in self.operations if operation.name == name)

    @cached_property
    def chat_url(self) -> str:
        # The chat may have a server of its own.
        (chat,) = (operation for operation in self.operations if operation.name == "chat_stream")
        return chat.base_url + chat.path

    @cached_property
    def chat_events(self) -> dict[str, Record]:
        """The events of the chat stream, by type."""
        mapping = self._schemas["ChatEvent"]["discriminator"]["mapping"]
        events = {}
        for kind, ref in mapping.items():
            name = ref.removeprefix(REF)
            fields = (f for f in self._fields(self._schemas[name]) if f.name != "type")
            events[kind] = Record(name, self._schemas[name]["description"], tuple(fields))
        return events

    @cached_property
    def limits(self) -> dict[RateLimit, list[OperationDoc]]:
        operations_by_limit: dict[RateLimit, list[OperationDoc]] = {}
        for operation in self.operations:
            if operation.limit is not None:
                operations_by_limit.setdefault(operation.limit, []).append(operation)
        return operations_by_limit

    def operations_with_input(self, name: str) -> dict[OperationDoc, Field]:
        pairs = ((o, field) for o in self.operations for field in o.inputs if field.name == name)
        return dict(pairs)

    @cached_property
    def paged(self) -> dict[OperationDoc, Field]:
        """The paginated lists, each with the input that sets the page size."""
        inputs = {o: {field.name: field for field in o.inputs} for o in self.operations}
        return {
            o: fields["size"] for o, fields in inputs.items() if {"page", "size"} <= fields.keys()
        }

    def area(self, name: str) -> Area | None:
        return next((area for area in self.areas if area.name == name), None)

    def records(self, area: Area) -> list[Record]:
        """Return the records that an area's operations accept and return, sorted by name."""
        records: dict[str, Record] = {}

        def collect(fields: Iterable[Field]) -> None:
            for field in fields:
                collect(field.fields)
                for name in filter(None, (part.record for part in field.type)):
                    if name not in records:
                        schema = self._schemas[name]
                        fields_of_record = tuple(self._fields(schema))
                        facts = tuple(_facts(schema))
                        records[name] = Record(
                            name, schema.get("description", ""), fields_of_record, facts
                        )
                        collect(fields_of_record)

        for operation in area.operations:
            collect((*operation.inputs, *operation.outputs))
        return [records[name] for name in sorted(records)]

    def _operation(self, method: str, *, path: str, entry: Mapping[str, Any]) -> OperationDoc:
        # The last paragraph repeats scope and tool for OpenAPI viewers that ignore extensions.
        description = entry["description"].rpartition("\n\n")[0]
        (answer_type, success), *_ = entry["responses"]["200"]["content"].items()
        contents = entry.get("requestBody", {}).get("content", {})
        body = contents.get(_JSON, {})
        parameters = entry["parameters"]
        codes: Mapping[str, Any] = entry["x-error-codes"]
        limit = entry.get("x-rate-limit")
        examples = {p["name"]: p["example"] for p in parameters if "example" in p}
        return OperationDoc(
            name=entry["operationId"],
            area=entry["tags"][0],
            title=entry["summary"],
            description=description,
            method=method,
            path=path,
            base_url=entry.get("servers", self._document["servers"])[0]["url"],
            tool=entry.get("x-tool"),
            scope=entry.get("x-scope"),
            needs_key="security" not in entry,
            destructive=entry.get("x-destructive", False),
            limit=RateLimit(**limit) if limit else None,
            takes_idempotency_key=any(p["in"] == "header" for p in parameters),
            inputs=(*map(self._parameter, _values(parameters)), *self._body(body)),
            outputs=tuple(self._outputs(answer_type, success["schema"])),
            failures=tuple(
                Failure(status, tuple(codes_of_status)) for status, codes_of_status in codes.items()
            ),
            body_types=tuple(kind for kind in contents if kind != _JSON),
            answer_type=answer_type,
            example={**examples, **body.get("example", {})},
            answer=success.get("example"),
        )

    def _outputs(self, media_type: str, schema: Mapping[str, Any]) -> Iterator[Field]:
        if media_type == _JSON:
            data = self._resolved(schema["properties"]["data"])
            yield from (field for field in self._fields(data) if field.name not in _ENVELOPE)

    def _body(self, content: Mapping[str, Any]) -> Iterator[Field]:
        if content:
            yield from self._fields(self._resolved(content["schema"]), "body")

    def _parameter(self, parameter: Mapping[str, Any]) -> Field:
        schema = {**parameter["schema"], "description": parameter["description"]}
        required = parameter["required"]
        return self._field(parameter["name"], schema, parameter["in"], required=required)

    def _fields(self, schema: Mapping[str, Any], place: str = "") -> Iterator[Field]:
        required = schema.get("required", ())
        for name, declared in schema.get("properties", {}).items():
            yield self._field(name, declared, place, required=name in required)

    def _field(
        self, name: str, schema: Mapping[str, Any], place: str = "", *, required: bool
    ) -> Field:
        schema = _drop_omitting_null(schema)
        inner = schema.get("items", schema)
        return Field(
            name=name,
            type=tuple(_type(schema)),
            description=schema.get("description", ""),
            required=required,
            facts=tuple(_facts(schema)),
            place=place,
            fields=tuple(self._fields(inner)) if "$ref" not in inner else (),
        )

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" not in schema:
            return schema
        resolved: Mapping[str, Any] = self._schemas[schema["$ref"].removeprefix(REF)]
        return resolved


def _values(parameters: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    # A guide explains the headers once.
    return (parameter for parameter in parameters if parameter["in"] != "header")


def _sorted(area: str, operations: Iterable[OperationDoc]) -> list[OperationDoc]:
    def noun(operation: OperationDoc) -> str:
        return operation.path.split("/")[2]

    return sorted(operations, key=lambda o: (noun(o) != area, noun(o), o.method != "GET"))


def _type(schema: Mapping[str, Any]) -> Iterator[TypePart]:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REF)
        yield TypePart(name, name)
    elif options := schema.get("anyOf"):
        for number, option in enumerate(options):
            if number:
                yield TypePart(" or ")
            yield from _type(option)
    else:
        kinds = schema.get("type", "any")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds[0] == "array":
            yield TypePart("array of ")
            yield from _type(schema.get("items", {}))
        else:
            yield TypePart(kinds[0])
        for kind in kinds[1:]:
            yield TypePart(f" or {kind}")


def _drop_omitting_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    # The guide explains once that ``null`` omits a field. Where ``null`` clears one, the field's
    # description says so.
    if not schema.get("x-null-omits"):
        return schema
    merged = {name: value for name, value in schema.items() if name != "anyOf"}
    for option in schema.get("anyOf", ()):
        if option != {"type": "null"}:
            merged |= option
    if "type" in merged and not isinstance(merged["type"], str):
        kinds = [kind for kind in merged["type"] if kind != "null"]
        merged["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "enum" in merged:
        merged["enum"] = [value for value in merged["enum"] if value is not None]
    return merged


_FLAGS = {"uniqueItems": "no item twice", "deprecated": "deprecated"}


def _facts(schema: Mapping[str, Any]) -> Iterator[str]:
    if "enum" in schema:
        yield "one of " + ", ".join(f"`{_json_text(value)}`" for value in schema["enum"])
    if "const" in schema:
        yield f"always `{_json_text(schema['const'])}`"
    if "pattern" in schema:
        yield schema.get("x-pattern-name") or f"pattern `{schema['pattern']}`"
    if schema.get("format"):
        yield f"{schema['format']}"
    for minimum, maximum, what in _LIMITS:
        if bounds := _range(schema.get(minimum), maximum=schema.get(maximum)):
            yield f"{bounds} {what}".strip()
    yield from (fact for keyword, fact in _FLAGS.items() if schema.get(keyword))
    items = schema.get("items")
    if isinstance(items, Mapping) and (inner := list(_facts(items))):
        yield "each: " + ", ".join(inner)
    if schema.get("default") is not None:
        yield f"default `{_json_text(schema['default'])}`"


def _range(minimum: float | None, *, maximum: float | None) -> str:
    if minimum is not None and maximum is not None:
        return f"{minimum:,}" if minimum == maximum else f"{minimum:,} to {maximum:,}"
    if maximum is not None:
        return f"at most {maximum:,}"
    return f"at least {minimum:,}" if minimum is not None else ""


def _json_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
