"""Write the sources of the TypeScript and the Python package of the API into ``build/sdk``.

They are the files of ``sdk``, written by hand, and beside them what the OpenAPI document says.
``make sdk`` builds the packages of them.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType

from chalicelib import VERSION
from chalicelib.core import idempotency_keys
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from chalicelib.transports.api_docs import openapi

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "sdk"
OUTPUT = ROOT / "build" / "sdk"
PACKAGE = "workspace_automation"
_STREAMED = {"chat_stream"}  # The hand-written part has it.
_UNVERSIONED = "0.0.0"


def write() -> Path:
    """Write the sources of both packages, and return their folder."""
    document = openapi.document()
    write_typescript(document, OUTPUT / "typescript")
    write_python(document, OUTPUT / "python")
    return OUTPUT


def write_typescript(document: dict[str, Any], folder: Path) -> None:
    """Write the sources of the TypeScript package. What npm has installed there stays."""
    for made in ("src", "dist"):
        shutil.rmtree(folder / made, ignore_errors=True)
    _copy(SOURCES / "typescript", folder, manifest="package.json")
    routes = "\n".join(_routes(document))
    (folder / "src" / "routes.ts").write_text(f"{routes}\n")
    (folder / "openapi.json").write_text(json.dumps(_without_answers(document)))


def _routes(document: dict[str, Any]) -> Iterator[str]:
    yield f"export const version = {json.dumps(VERSION)};\n"
    yield "export const routes = {"
    for path, methods in document["paths"].items():
        for method, entry in methods.items():
            if (name := entry["operationId"]) in _STREAMED:
                continue
            items = json.dumps(_items(document, entry)) if _is_list(entry) else "undefined"
            yield f"  /** {entry['summary']}. */"
            yield (
                f'  {_camel(name)}: {{ operation: "{name}", method: "{method.upper()}", path: '
                f'"{path}", takesKey: {json.dumps(_takes_key(entry))}, isRepeatable: '
                f"{json.dumps(_is_repeatable(entry))}, items: {items} }},"
            )
    yield "} as const;"


def _camel(name: str) -> str:
    return re.sub("_([a-z])", lambda match: match[1].upper(), name)


def _takes_key(entry: dict[str, Any]) -> bool:
    return any(given["name"] == idempotency_keys.HEADER for given in entry["parameters"])


def _is_repeatable(entry: dict[str, Any]) -> bool:
    # Whether a second execution has the effect of one.
    return _takes_key(entry) or entry["operationId"] in _idempotent()


@cache
def _idempotent() -> frozenset[str]:
    operations = REGISTRY.select(Audience.KEY, Audience.PUBLIC)
    return frozenset(operation.name for operation in operations if operation.idempotent)


def _is_list(entry: dict[str, Any]) -> bool:
    return {"page", "size"} <= {given["name"] for given in entry["parameters"]}


def _items(document: dict[str, Any], entry: dict[str, Any]) -> str:
    # A list has its records in an array beside ``total``. The list of files has folders before.
    (content,) = entry["responses"]["200"]["content"].values()
    reference = content["schema"]["properties"]["data"]["$ref"].rpartition("/")[2]
    fields = document["components"]["schemas"][reference]["properties"]
    arrays: list[str] = [name for name, field in fields.items() if field.get("type") == "array"]
    return next(name for name in reversed(arrays) if not name.startswith("warning"))


def _without_answers(document: dict[str, Any]) -> dict[str, Any]:
    # They are half of the document, and the reference shows them.
    whole: dict[str, Any] = json.loads(json.dumps(document))
    for methods in whole["paths"].values():
        for entry in methods.values():
            for content in entry["responses"]["200"]["content"].values():
                content.pop("example", None)
    return whole


def write_python(document: dict[str, Any], folder: Path) -> None:
    """Write the sources of the Python package into a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source = folder / "openapi.json"
    source.write_text(json.dumps(document))
    problems = generate(
        config=Config.from_sources(
            ConfigFile(post_hooks=[], literal_enums=True),
            MetaType.NONE,
            source,
            file_encoding="utf-8",
            overwrite=False,
            output_path=folder / PACKAGE,
        )
    )
    if problems:
        msg = f"openapi-python-client: {problems}"
        raise RuntimeError(msg)
    source.unlink()
    _copy(SOURCES / "python", folder, manifest="pyproject.toml")
    (folder / PACKAGE / "routes.py").write_text(
        f'"""What the package knows of the service."""\n\nVERSION = "{VERSION}"\n'
        f"TAKE_KEY = (\n{_expression(document, _takes_key)})\n"
        '"""Expression of the paths whose calls take an idempotency key."""\n'
        f"ARE_REPEATABLE = (\n{_expression(document, _is_repeatable)})\n"
        '"""Expression of the paths whose calls have the effect of one if they are repeated."""\n'
    )


def _expression(document: dict[str, Any], applies: Callable[[dict[str, Any]], bool]) -> str:
    # Only POST needs it: the other methods take no key, and are repeatable.
    paths = [
        re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
        for path, methods in document["paths"].items()
        if "post" in methods and applies(methods["post"])
    ]
    return "".join(f'    r"|{path}"\n' for path in paths).replace("|", "", 1)


def _copy(sources: Path, folder: Path, *, manifest: str) -> None:
    own = shutil.ignore_patterns("node_modules", "dist", "__pycache__")
    shutil.copytree(sources, folder, ignore=own, dirs_exist_ok=True)
    shutil.copy(ROOT / "LICENSE", folder)
    path = folder / manifest
    path.write_text(path.read_text().replace(_UNVERSIONED, VERSION, 1))
