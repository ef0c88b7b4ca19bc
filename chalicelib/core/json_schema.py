"""JSON Schemas of wire models, as tools, the reference and the query parser read them."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic.json_schema import (
    GenerateJsonSchema,
    JsonSchemaMode,
    JsonSchemaValue,
    models_json_schema,
)
from pydantic_core import core_schema

from chalicelib.core.fields import fields_of
from chalicelib.core.schema import Wire

NULL = {"type": "null"}
REF = "#/components/schemas/"


class _Generate(GenerateJsonSchema):
    """Pydantic's generator; a ``null`` that only stands for an omission is not advertised."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the schema of a model."""
        made = super().model_schema(schema)
        model = schema["cls"]
        if self.mode == "validation" and issubclass(model, Wire):
            fields = fields_of(model)
            for name, declared in made.get("properties", {}).items():
                if "anyOf" in declared and not fields[name].null_counts:
                    options = [each for each in declared.pop("anyOf") if each != NULL]
                    more = options[0] if len(options) == 1 else {"anyOf": options}
                    declared.update(more | declared)
        return made


@cache
def json_schema(model: type[Wire]) -> dict[str, Any]:
    """Return the closed JSON Schema (2020-12) of an input, as agents read it best.

    That is without ``$ref``, titles and defaults of null and false.
    """
    raw = model.model_json_schema(by_alias=True, schema_generator=_Generate)
    schema: dict[str, Any] = _tidy(raw, raw.get("$defs", {}))
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def components(
    inputs: Iterable[type[Wire]], outputs: Iterable[type[Wire]]
) -> tuple[dict[type[Wire], str], dict[str, Any]]:
    """Return what models are called as OpenAPI's components, and the closed schemas of all those.

    That is as their classes are called, without the ``Out`` of records.

    Raises:
        ValueError: two models would be called the same.
    """
    modes: list[tuple[type[Wire], JsonSchemaMode]] = []
    modes += [(model, "validation") for model in dict.fromkeys(inputs)]
    modes += [(model, "serialization") for model in dict.fromkeys(outputs)]
    refs, raw = models_json_schema(
        modes, by_alias=True, ref_template=f"{REF}{{model}}", schema_generator=_Generate
    )
    definitions = raw["$defs"]
    renamed = {f"{REF}{name}": f"{REF}{name.removesuffix('Out')}" for name in definitions}
    if len(set(renamed.values())) < len(renamed):
        raise ValueError("two models would be called the same as components")
    schemas = {
        name.removesuffix("Out"): _rename(_tidy(schema, None), renamed)
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


def _tidy(node: Any, definitions: Mapping[str, Any] | None) -> Any:  # noqa: ANN401  any JSON value
    """Close objects and drop what only fills bytes; with definitions, put them in place."""
    implied = (None,) if definitions is None else (None, False)
    if isinstance(node, list):
        return [_tidy(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node and definitions is not None:
        target = definitions[node["$ref"].rpartition("/")[2]]
        merged = {k: v for k, v in target.items() if k != "description"}
        node = merged | {k: v for k, v in node.items() if k != "$ref"}
    if "anyOf" in node:
        node = _merge_nullable(node, definitions)
    tidy = {
        key: (
            {name: _tidy(prop, definitions) for name, prop in value.items()}
            if key == "properties"
            else _tidy(value, definitions)
        )
        for key, value in node.items()
        if key not in {"$defs", "title"}
        and not (key == "default" and any(value is each for each in implied))
    }
    if tidy.get("type") == "object" and "properties" in tidy:
        tidy["additionalProperties"] = False
    return tidy


def _merge_nullable(node: dict[str, Any], definitions: Mapping[str, Any] | None) -> dict[str, Any]:
    """Turn pydantic's ``anyOf: [X, null]`` into X with ``type: [x, "null"]``."""
    options = [_tidy(option, definitions) for option in node["anyOf"]]
    solid = [option for option in options if option != NULL]
    if len(solid) != 1 or len(options) != 2 or "$ref" in solid[0]:  # noqa: PLR2004  X or null
        return node
    merged = {**solid[0], **{k: v for k, v in node.items() if k != "anyOf"}}
    if "type" in merged:
        merged["type"] = [merged["type"], "null"]
    if "enum" in merged:
        merged["enum"] = [*merged["enum"], None]
    return merged
