"""JSON Schemas of wire models, as tools, the reference and the query parser read them."""

from collections.abc import Mapping
from typing import Any

from chalicelib.core.schema import Wire

_schemas: dict[tuple[type[Wire], str], dict[str, Any]] = {}


def json_schema(model: type[Wire], mode: str = "validation") -> dict[str, Any]:
    """Return a closed JSON Schema (2020-12) without ``$ref``, titles or null defaults.

    What agents read best.
    """
    if (model, mode) not in _schemas:
        raw = model.model_json_schema(
            by_alias=True, mode="serialization" if mode == "serialization" else "validation"
        )
        schema = _tidy(raw, raw.get("$defs", {}))
        schema.pop("description", None)
        schema.setdefault("properties", {})
        _schemas[model, mode] = schema
    return _schemas[model, mode]


def _tidy(node: Any, definitions: Mapping[str, Any]) -> Any:  # noqa: ANN401  any JSON value
    if isinstance(node, list):
        return [_tidy(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
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
        if key not in {"$defs", "title"} and not (key == "default" and value is None)
    }
    if tidy.get("type") == "object" and "properties" in tidy:
        tidy["additionalProperties"] = False
    return tidy


def _merge_nullable(node: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Turn pydantic's ``anyOf: [X, null]`` into X with ``type: [x, "null"]``."""
    options = [_tidy(option, definitions) for option in node["anyOf"]]
    solid = [option for option in options if option != {"type": "null"}]
    if len(solid) != 1 or len(options) != 2:  # noqa: PLR2004  X or null
        return node
    merged = {**solid[0], **{k: v for k, v in node.items() if k != "anyOf"}}
    if "type" in merged:
        merged["type"] = [merged["type"], "null"]
    if "enum" in merged:
        merged["enum"] = [*merged["enum"], None]
    return merged
