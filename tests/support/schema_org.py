"""Check JSON-LD against the vocabulary of schema.org.

``schema_org.json`` has the terms that our pages use, as a release of the vocabulary defines them.
"""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_VOCABULARY = json.loads(Path(__file__).with_suffix(".json").read_text())
CLASSES: dict[str, list[str]] = _VOCABULARY["classes"]
PROPERTIES: dict[str, dict[str, list[str]]] = _VOCABULARY["properties"]
MEMBERS: dict[str, list[str]] = _VOCABULARY["members"]
_SCHEMA = "https://schema.org/"


def ancestors(kind: str) -> set[str]:
    """Return a class and those from which it descends."""
    return {kind}.union(*(ancestors(parent) for parent in CLASSES[kind]))


def problems(node: Any, where: str = "") -> list[str]:
    """Return what a node of JSON-LD has that the vocabulary does not allow."""
    kind = node.get("@type")
    if kind not in CLASSES:
        return [f"{where}: unknown type {kind}"]
    found = []
    for name, value in node.items():
        path = f"{where}/{name}"
        if name.startswith("@"):
            continue
        if name not in PROPERTIES:
            found.append(f"{path}: unknown property")
        elif not ancestors(kind) & set(PROPERTIES[name]["domain"]):
            found.append(f"{path}: not a property of {kind}")
        else:
            for each in value if isinstance(value, list) else [value]:
                found += _problems_of_value(each, set(PROPERTIES[name]["range"]), path)
    return found


def _problems_of_value(value: Any, kinds: set[str], path: str) -> list[str]:
    if isinstance(value, dict):
        if not ancestors(value.get("@type", "Thing")) & kinds:
            return [f"{path}: {value.get('@type')} is none of {sorted(kinds)}"]
        return problems(value, path)
    return [] if any(_fits(value, kind) for kind in kinds) else [f"{path}: {value!r}"]


def _fits(value: Any, kind: str) -> bool:
    match kind:
        case "Text":
            return isinstance(value, str) and bool(value.strip())
        case "URL":
            return isinstance(value, str) and urlsplit(value).scheme in {"http", "https"}
        case "Number" | "Integer":
            return isinstance(value, int | float)
        case "Time":
            return isinstance(value, str) and bool(re.fullmatch(r"\d\d:\d\d", value))
        case _:
            member = str(value).removeprefix(_SCHEMA)
            return kind in MEMBERS.get(member, ())
