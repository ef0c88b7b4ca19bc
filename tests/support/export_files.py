"""Runs the export and import commands, and changes export files."""

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from infra.operator.admin import admin
from infra.operator.transfer import file_format
from tests.conftest import OBJECTS, PASSWORD, call_operator
from tests.factories.files import list_stored_files

PRODUCTS, WORKSPACE = "rows/PRODUCT.jsonl", "rows/workspace.jsonl"


def invoke(*words: str) -> Result:
    return CliRunner().invoke(admin, words)


def run(*words: str) -> dict[str, Any]:
    result = invoke(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    printed: dict[str, Any] = json.loads(result.stdout)
    return printed


def run_failing(*words: str) -> str:
    result = invoke(*words)
    assert result.exit_code == 1, (result.output, result.exception)
    assert result.stdout == ""
    return result.stderr.splitlines()[-1]


def start_empty(empty: Callable[[], None], email: str) -> None:
    """Empty the database and the object store, and create one account."""
    empty()
    for folder in OBJECTS.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    call_operator("create_account", email=email, password=PASSWORD)


def objects() -> dict[str, bytes]:
    return {key: (OBJECTS / key).read_bytes() for key in list_stored_files()}


def read_whole(path: Path) -> list[Any]:
    """Return the lines and objects of a file, without header, workspace and trailer."""
    return [
        line for line in file_format.read(path) if not {"format", "workspace", "trailer"} & {*line}
    ]


Entries = dict[str, bytes]


def entries_of(path: Path) -> Entries:
    """Return the entries of a zip file."""
    return entries_in(path.read_bytes())


def packed(entries: Entries, *, summed: bool = True) -> bytes:
    """Return a zip file of some entries. ``summed`` adds their checksums to its manifest."""
    if summed:
        manifest = json.loads(entries["manifest.json"])
        manifest["files"] = {
            name: hashlib.sha256(data).hexdigest()
            for name, data in entries.items()
            if name != "manifest.json"
        }
        entries = entries | {"manifest.json": json.dumps(manifest).encode()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return file.getvalue()


def change_line(
    name: str, change: Callable[[Any], object], *, summed: bool = True
) -> Callable[[bytes], bytes]:
    """Return a function that changes the first line of an entry, or the manifest."""

    def change_bytes(data: bytes) -> bytes:
        entries = entries_in(data)
        first, *others = entries[name].splitlines() if ".jsonl" in name else [entries[name]]
        line = json.loads(first)
        change(line)
        first = json.dumps(line, ensure_ascii=False).encode()
        entries[name] = b"\n".join([first, *others])
        return packed(entries, summed=summed)

    return change_bytes


def renamed(old: str, new: str, *, summed: bool = True) -> Callable[[bytes], bytes]:
    """Return a function that renames the first entry whose name begins with ``old``."""

    def renamed(data: bytes) -> bytes:
        entries = entries_in(data)
        name = next(name for name in entries if name.startswith(old))
        entries = {
            new if entry_name == name else entry_name: body for entry_name, body in entries.items()
        }
        return packed(entries, summed=summed)

    return renamed


def drop_entry(start: str, *, summed: bool = False) -> Callable[[bytes], bytes]:
    """Return a function that removes the first entry whose name begins with ``start``."""

    def remove_entry(data: bytes) -> bytes:
        entries = entries_in(data)
        del entries[next(name for name in entries if name.startswith(start))]
        return packed(entries, summed=summed)

    return remove_entry


def entries_in(data: bytes) -> Entries:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
