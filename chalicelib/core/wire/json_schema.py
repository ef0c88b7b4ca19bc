"""Generate JSON Schemas of request and response models.

The tool list, the OpenAPI document, the reference and the query parser use them. A wire model is a
subclass of ``Wire``.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic.json_schema import (
    GenerateJsonSchema,
    JsonSchemaMode,
    JsonSchemaValue,
    models_json_schema,
)
from pydantic_core import core_schema, to_json

from chalicelib.core.wire.fields import fields_of
from chalicelib.core.wire.schema import NOT_IN_TOOLS, OPENAPI_ONLY, Patch, Wire, wire_name

NULL = {"type": "null"}
REF = "#/components/schemas/"


NULL_OMITS = "x-null-omits"
"""Keyword in the OpenAPI document that marks a field for which ``null`` means "not sent"."""


class _SchemaGenerator(GenerateJsonSchema):
    """Pydantic's schema generator, but without ``null`` for fields where it means "not sent"."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        generated = super().model_schema(schema)
        model = schema["cls"]
        if self.mode == "validation" and issubclass(model, Wire):
            fields = fields_of(model)
            for name, declared in generated.get("properties", {}).items():
                if not fields[name].null_is_value:
                    _remove_null(declared)
                    self.describe_null(declared)
                self.describe_default(declared)
            self.describe_rules(model, generated)
        return generated

    def describe_null(self, declared: dict[str, Any]) -> None:
        """Describe a field for which ``null`` means "not sent", except in tool schemas."""

    def describe_default(self, declared: dict[str, Any]) -> None:
        """Describe the default of a field in its words, except in tool schemas."""

    def describe_rules(self, model: type[Wire], generated: JsonSchemaValue) -> None:
        """Describe the rules between the fields of a model, except in tool schemas."""


class _OpenApiGenerator(_SchemaGenerator):
    """Schema generator for OpenAPI components. They publish every rule that the service enforces.

    A rule between fields is published as a sentence in the description and as ``minProperties``.
    ``anyOf`` and ``oneOf`` are not used, because client generators turn such a model into a union.
    A default is published as a sentence in the description of its field.
    """

    def describe_null(self, declared: dict[str, Any]) -> None:
        outer_keys = ("description", "default")
        non_null = {name: value for name, value in declared.items() if name not in outer_keys}
        for name in non_null:
            del declared[name]
        declared.update({"anyOf": [non_null, NULL], NULL_OMITS: True})

    def describe_default(self, declared: dict[str, Any]) -> None:
        """Move the default of a field to its description.

        openapi-typescript requires a field with ``default``, as if every schema were a response's
        (openapi-ts/openapi-typescript#2012).
        """
        default = declared.pop("default", None)
        if default is not None:
            value = default if isinstance(default, str) else to_json(default).decode()
            declared["description"] = f"{declared['description']} Default: {value}."

    def describe_rules(self, model: type[Wire], generated: JsonSchemaValue) -> None:
        if rules := _rules(model):
            generated["description"] = " ".join(
                filter(None, (generated.get("description"), *rules))
            )
            generated["minProperties"] = len(generated.get("required", ())) + len(rules)


def _remove_null(declared: dict[str, Any]) -> None:
    if "anyOf" in declared:
        options = [option for option in declared.pop("anyOf") if option != NULL]
        remaining = options[0] if len(options) == 1 else {"anyOf": options}
        declared.update(remaining | declared)


def _rules(model: type[Wire]) -> list[str]:
    groups = [(names, "Exactly") for names in model.EXACTLY_ONE_OF]
    if model.AT_LEAST_ONE_OF:
        groups.append((model.AT_LEAST_ONE_OF, "At least"))
    rules = ["At least one change is required."] if issubclass(model, Patch) else []
    for names, quantity in groups:
        wire_names = [f"`{wire_name(model, name)}`" for name in names]
        rules.append(
            f"{quantity} one of {', '.join(wire_names[:-1])} and {wire_names[-1]} is required."
        )
    return rules


@cache
def json_schema(model: type[Wire], *, for_openapi: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an input, in the form that suits AI clients.

    It has no ``$ref``, no titles and no defaults of null or false. With ``for_openapi``, it has
    the keywords that only the OpenAPI document publishes.
    """
    raw = model.model_json_schema(by_alias=True, schema_generator=_SchemaGenerator)
    schema: dict[str, Any] = _tidy(raw, raw.get("$defs", {}), for_openapi=for_openapi)
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def components(
    inputs: Iterable[type[Wire]], *, outputs: Iterable[type[Wire]]
) -> tuple[dict[type[Wire], str], dict[str, Any]]:
    """Return the component name of each model, and the OpenAPI schemas of all components.

    A component has the name of its class, without the suffix ``Out``.

    Raises:
        ValueError: two components would have the same name.
    """
    modes: list[tuple[type[Wire], JsonSchemaMode]] = []
    modes += [(model, "validation") for model in dict.fromkeys(inputs)]
    modes += [(model, "serialization") for model in dict.fromkeys(outputs)]
    refs, raw = models_json_schema(
        modes, by_alias=True, ref_template=f"{REF}{{model}}", schema_generator=_OpenApiGenerator
    )
    definitions = raw["$defs"]
    renamed = {f"{REF}{name}": f"{REF}{name.removesuffix('Out')}" for name in definitions}
    if len(set(renamed.values())) < len(renamed):
        raise ValueError("two OpenAPI components would have the same name")
    schemas = {
        name.removesuffix("Out"): _rename(_tidy(schema, None, for_openapi=True), renamed)
        for name, schema in definitions.items()
    }
    names = {model: renamed[refs[model, mode]["$ref"]].removeprefix(REF) for model, mode in modes}
    return names, schemas


def _rename(node: Any, renamed: Mapping[str, str]) -> Any:  # noqa: ANN401  any JSON value
    if isinstance(node, list):
        return [_rename(item, renamed) for item in node]
    if isinstance(node, dict):
        return {
            key: renamed[value] if key == "$ref" else _rename(value, renamed)
            for key, value in node.items()
        }
    return node


def _tidy(
    node: Any,  # noqa: ANN401  any JSON value
    definitions: Mapping[str, Any] | None,
    *,
    for_openapi: bool,
) -> Any:  # noqa: ANN401  as above
    # With ``definitions``, references are replaced by their targets, and defaults of false are also
    # removed. Objects allow additional properties: unknown fields of an input are ignored, and
    # later versions add fields to responses.
    omitted_defaults = (None,) if definitions is None else (None, False)
    if isinstance(node, list):
        return [_tidy(item, definitions, for_openapi=for_openapi) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node and definitions is not None:
        target = definitions[node["$ref"].rpartition("/")[2]]
        merged = {k: v for k, v in target.items() if k != "description"}
        node = merged | {k: v for k, v in node.items() if k != "$ref"}
    if "anyOf" in node:
        node = _merge_nullable(node, definitions, for_openapi=for_openapi)
    if for_openapi:
        node = {**node, **node.get(OPENAPI_ONLY, {})}
    if "const" in node and not for_openapi:  # several AI clients support only enumerations
        node = {("enum" if key == "const" else key): value for key, value in node.items()}
        node["enum"] = [node["enum"]]
    return {
        key: (
            {
                name: _tidy(prop, definitions, for_openapi=for_openapi)
                for name, prop in value.items()
            }
            if key == "properties"
            else _tidy(value, definitions, for_openapi=for_openapi)
        )
        for key, value in node.items()
        if key not in {"$defs", "title", OPENAPI_ONLY}
        and not (key == NOT_IN_TOOLS and for_openapi)
        and not (key == "default" and any(value is default for default in omitted_defaults))
    }


def _merge_nullable(
    node: dict[str, Any], definitions: Mapping[str, Any] | None, *, for_openapi: bool
) -> dict[str, Any]:
    # Several enumerations become one. A reference keeps ``anyOf``, because client generators expect
    # that form.
    options = [_tidy(option, definitions, for_openapi=for_openapi) for option in node["anyOf"]]
    non_null = [option for option in options if option != NULL]
    enums = [
        option.get("enum", [option["const"]] if "const" in option else []) for option in non_null
    ]
    if len(non_null) > 1 and all(enums):
        non_null = [
            {"type": non_null[0]["type"], "enum": [value for enum in enums for value in enum]}
        ]
    if len(non_null) != 1 or "$ref" in non_null[0]:
        return node
    merged = {**non_null[0], **{k: v for k, v in node.items() if k != "anyOf"}}
    if NULL in options and "type" in merged:
        types = merged["type"]
        merged["type"] = [*([types] if isinstance(types, str) else types), "null"]
    if NULL in options and "enum" in merged:
        merged["enum"] = [*merged["enum"], None]
    return merged
