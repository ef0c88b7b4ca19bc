"""Contents of export files, and faults for which ``import`` refuses a file."""

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.operations import load_all
from chalicelib.core.settings import settings
from chalicelib.domains.exports.rules.archive import Archive, StoredObject
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine import jobs
from infra.operator.transfer import file_format, importing
from tests.conftest import Api, Owner, all_rows, call_operator
from tests.factories.files import list_stored_files
from tests.factories.transfer import Furnished
from tests.support.export_files import (
    PRODUCTS,
    WORKSPACE,
    change_line,
    drop_entry,
    entries_of,
    objects,
    packed,
    renamed,
    run,
    run_failing,
    start_empty,
)

pytestmark = pytest.mark.usefixtures("database")
load_all()


class TestContents:
    def test_every_kind_of_rows_is_an_entry_of_json_lines(
        self, bakery: Furnished, export_file: Path
    ) -> None:
        entries = entries_of(export_file)
        manifest = json.loads(entries.pop("manifest.json"))
        rows = {name: body for name, body in entries.items() if name.endswith(".jsonl")}
        lines = {
            name: [json.loads(line) for line in body.splitlines()] for name, body in rows.items()
        }
        counts = {
            name.removeprefix("rows/").removesuffix(".jsonl"): len(kind_lines)
            for name, kind_lines in lines.items()
        }
        expected_counts = {
            name.replace("#", "-"): count for name, count in manifest["counts"].items()
        }
        assert counts == {name: n for name, n in expected_counts.items() if name != "objects"}
        assert len(lines[PRODUCTS]) == 2
        assert {line["at"] for line in lines[PRODUCTS]} == {"PRODUCT"}
        assert manifest["workspaceId"] == bakery.workspace

    def test_every_object_is_an_entry_and_every_entry_has_its_checksum(
        self, export_file: Path
    ) -> None:
        entries = entries_of(export_file)
        manifest = json.loads(entries.pop("manifest.json"))
        assert manifest["files"] == {
            name: hashlib.sha256(body).hexdigest() for name, body in entries.items()
        }
        stored_objects = objects()
        exported = {
            name.removeprefix("objects/"): body
            for name, body in entries.items()
            if name.startswith("objects/")
        }
        assert exported.items() <= stored_objects.items()
        assert len(exported) == manifest["counts"]["objects"] > 0

    def test_an_export_is_a_whole_zip_file_to_other_tools(self, export_file: Path) -> None:
        command = (sys.executable, "-m", "zipfile", "--test", str(export_file))
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        assert result.stdout == "Done testing\n"

    def test_entries_beyond_the_limit_of_zip_32_are_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
        path, body = tmp_path / "large.zip", bytes(range(256)) * 4096
        archive = Archive()
        for _ in range(2):
            archive.object(StoredObject("files/a", body))
        for number in range(1000):
            archive.line("PRODUCT", {"at": "PRODUCT", "item": {"n": number}})
        archive.complete({"workspaceId": "w"})
        path.write_bytes(archive.take())
        header, object_line, *lines, trailer = file_format.read(path)
        assert isinstance(header, dict)
        assert header["workspaceId"] == "w"
        assert object_line == StoredObject("files/a", body)
        assert [line["item"]["n"] for line in lines] == list(range(1000))
        assert isinstance(trailer, dict)
        assert trailer["trailer"]["counts"] == {"PRODUCT": 1000, "objects": 1}


class TestRefusals:
    def test_existing_workspace_is_not_overwritten(
        self, bakery: Furnished, export_file: Path
    ) -> None:
        old_rows = all_rows()
        assert "--ids new" in run_failing("import", str(export_file))
        assert all_rows() == old_rows

    def test_all_claims_of_other_workspaces_are_named(
        self,
        bakery: Furnished,
        export_file: Path,
        empty_database: Callable[[], None],
        api: Api,
        owner: Owner,
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        workspace = call_operator("create_workspace", owner=bakery.owner_email, name="Workspace")
        Owner(workspaces.get(workspace["workspaceId"])).api().post(
            "/api/projects/create", {"title": "Bakery"}
        )
        old_rows, old_objects = all_rows(), objects()
        line = run_failing("import", str(export_file))
        assert 'workspace slug "workspace"' in line
        assert 'site slug "bakery"' in line
        assert (all_rows(), objects()) == (old_rows, old_objects)

    def test_file_of_another_stage_requires_the_ids_option(
        self,
        bakery: Furnished,
        export_file: Path,
        empty_database: Callable[[], None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        there = replace(
            settings(), stage="prod", public_url="https://svc.example", sites_domain="sites.example"
        )
        for module in (importing,):
            monkeypatch.setattr(module, "settings", lambda: there)
        old_rows = all_rows()
        line = run_failing("import", str(export_file))
        assert "stage test" in line
        assert "--ids new" in line
        assert all_rows() == old_rows
        assert run("import", str(export_file), "--ids", "keep")["workspaceId"] == bakery.workspace
        (page,) = (body.decode() for body in objects().values() if b"<form" in body)
        assert "127.0.0.1" not in page
        assert f"https://svc.example/api/public/forms/{bakery.things.form}/submit" in page
        assert '<a href="/about">' in page

    @pytest.mark.parametrize(
        ("damage", "says"),
        [
            (lambda data: data[: len(data) // 2], "cut off"),
            (lambda data: data[:-9], "cut off"),
            (lambda _: b"", "cut off"),
            (lambda _: b"name,price\n", "no export"),
            (lambda _: packed({"prices.csv": b"name,price"}, summed=False), "no manifest.json"),
            (lambda _: packed({"manifest.json": b"[]"}, summed=False), "none of an export"),
            (change_line("manifest.json", lambda m: m.update(format="other")), "no export"),
            (change_line("manifest.json", lambda m: m.update(version=9)), "version 9"),
            (change_line("manifest.json", lambda m: m.pop("counts")), "KeyError"),
            (change_line("manifest.json", lambda m: m.pop("files"), summed=False), "KeyError"),
            (lambda data: _flipped(data, b"rows/PRODUCT.jsonl"), "cut off or damaged"),
            (lambda data: _flipped(data, b"objects/"), "cut off or damaged"),
            (change_line("rows/SITE.jsonl", lambda line: line.update(at="SATE")), "SATE"),
            (change_line(PRODUCTS, lambda line: line.update(x=1), summed=False), "checksum of"),
            (drop_entry("objects/"), "lists other files"),
            (drop_entry(PRODUCTS), "lists other files"),
            (drop_entry("manifest.json"), "no manifest.json"),
            (change_line(PRODUCTS, lambda line: line.pop("item")), "lines that are none"),
            (change_line(PRODUCTS, lambda line: line["item"].pop("name")), "TypeError in a line"),
            (change_line("manifest.json", lambda m: m.update(workspaceId="../x")), "'../x' is no"),
            (
                change_line(WORKSPACE, lambda w: w["workspace"].update(plan={"S": "gold"})),
                "on 'gold'",
            ),
            (
                change_line(WORKSPACE, lambda w: w["workspace"].update(name={"S": " "})),
                "called ' '",
            ),
            (drop_entry(WORKSPACE, summed=True), "does not say what workspace"),
            (renamed("objects/", "objects/theirs/a"), "'theirs/a'"),
        ],
    )
    def test_a_damaged_or_foreign_file_writes_nothing(
        self,
        damage: Callable[[bytes], bytes],
        says: str,
        bakery: Furnished,
        export_file: Path,
        empty_database: Callable[[], None],
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        export_file.write_bytes(damage(export_file.read_bytes()))
        old_rows = all_rows()
        assert says in run_failing("import", str(export_file))
        assert (all_rows(), list_stored_files()) == (old_rows, set())

    def test_two_records_with_one_unique_value_are_refused(
        self, bakery: Furnished, export_file: Path, empty_database: Callable[[], None]
    ) -> None:
        start_empty(empty_database, bakery.owner_email)
        entries = entries_of(export_file)
        loaf = entries[PRODUCTS].splitlines()[0]
        twin = json.loads(loaf)
        *sort_key_start, last = twin["item"]["sk"]["S"]
        twin["item"]["sk"]["S"] = "".join(sort_key_start) + ("Y" if last == "Z" else "Z")
        export_file.write_bytes(
            packed(entries | {PRODUCTS: loaf + b"\n" + json.dumps(twin).encode()})
        )
        old_rows = all_rows()
        assert "same sku" in run_failing("import", str(export_file))
        assert all_rows() == old_rows

    def test_ids_of_another_format_cannot_be_replaced(
        self, bakery: Furnished, export_file: Path
    ) -> None:
        change = change_line(PRODUCTS, lambda line: line["item"].update(sk={"S": "seeded-1"}))
        export_file.write_bytes(change(export_file.read_bytes()))
        old_rows = all_rows()
        assert "'seeded-1' is no id" in run_failing("import", str(export_file), "--ids", "new")
        assert all_rows() == old_rows

    def test_existing_file_is_not_overwritten(self, bakery: Furnished, export_file: Path) -> None:
        old_bytes = export_file.read_bytes()
        words = ("export", "--workspace", bakery.workspace, "--out", str(export_file))
        assert "already exists" in run_failing(*words)
        assert export_file.read_bytes() == old_bytes

    def test_an_unknown_workspace_leaves_no_file(self, connected: None, tmp_path: Path) -> None:
        path = tmp_path / "x.zip"
        assert "No workspace" in run_failing("export", "--workspace", "x", "--out", str(path))
        assert list(tmp_path.iterdir()) == []

    def test_interrupted_export_is_refused_by_the_import(
        self, bakery: Furnished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def breaks(_: str) -> Any:
            raise RuntimeError("killed")

        path = tmp_path / "x.zip"
        with monkeypatch.context() as patched:
            patched.setattr(jobs, "read_workspace_jobs", breaks)
            run_failing("export", "--workspace", bakery.workspace, "--out", str(path))
        assert [path.name for path in tmp_path.iterdir()] == ["x.zip.part"]
        assert "cut off" in run_failing("import", str(tmp_path / "x.zip.part"), "--ids", "new")
        run("export", "--workspace", bakery.workspace, "--out", str(path))
        assert [path.name for path in tmp_path.iterdir()] == ["x.zip"]

    def test_only_its_owner_may_read_the_file(self, export_file: Path) -> None:
        assert export_file.stat().st_mode & 0o777 == 0o600

    def test_no_secret_of_an_account_or_a_key_is_in_the_file(
        self, bakery: Furnished, api: Api, export_file: Path
    ) -> None:
        text = b"".join(entries_of(export_file).values()).decode(errors="replace")
        assert "password" not in text
        assert str(api.token) not in text
        key = next(key for key in all_rows() if key.startswith("identity/KEY#"))
        assert key.split("#")[1].split("/")[0] not in text


def _flipped(data: bytes, name: bytes) -> bytes:
    """Change one byte of an entry's compressed data."""
    at = data.index(name) + len(name) + 60
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
