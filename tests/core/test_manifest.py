"""The manifest matches the modules' declarations, and responses do not depend on the manifest."""

import ast
import json
import marshal
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.manifest import Declarations, Manifest, PackedEntry, digest_of, sources
from chalicelib.core.operations import REGISTRY, Entry, load_all
from chalicelib.core.wire.limits import Limits, limits_by_path
from chalicelib.engine.listing.registry import NOUNS
from chalicelib.lib import precompiled
from chalicelib.transports import tools
from chalicelib.transports.api_docs import openapi
from chalicelib.transports.web import control_limits
from infra.deploy.package import build
from tests.support.effort import slow_but_for
from tests.support.sweep import sweep

ROOT = Path(__file__).parents[2]
LAMBDA = {"AWS_LAMBDA_FUNCTION_NAME": "workspace-api-dev"}
ENVIRONMENT = {
    "STAGE": "dev",
    "PUBLIC_URL": "https://one.example",
    "AWS_DEFAULT_REGION": "eu-west-1",
}

load_all()


def copied(folder: Path) -> Path:
    """Return a copy of the application without a manifest."""
    ignored = shutil.ignore_patterns("__pycache__", "manifest.pyc")
    shutil.copytree(ROOT / "chalicelib", folder / "chalicelib", ignore=ignored)
    shutil.copyfile(ROOT / "app.py", folder / "app.py")
    (folder / "docs").mkdir()
    for source in build.RECORDED:
        shutil.copyfile(ROOT / source, folder / source)
    return folder


def write_manifest(project: Path) -> subprocess.CompletedProcess[str]:
    script = [
        sys.executable,
        "-P",
        str(ROOT / "infra" / "deploy" / "package" / "manifest.py"),
        str(project),
    ]
    return subprocess.run(script, check=False, capture_output=True, text=True)


def run(project: Path, script: str, *arguments: str, **environment: str) -> str:
    """Run a script in a copy of the application, and return its output."""
    inherited = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME"}}
    process = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        check=False,
        cwd=project,
        env={**inherited, **ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def plain_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def packaged_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = copied(tmp_path_factory.mktemp("packaged"))
    built = write_manifest(project)
    assert built.returncode == 0, built.stderr
    return project


@pytest.fixture(scope="module")
def manifest(packaged_copy: Path) -> Manifest:
    text = (packaged_copy / "chalicelib" / "manifest.py").read_text()
    values = ast.literal_eval(text.partition("MANIFEST = ")[2])
    return Manifest(*values)


def ours(declared: Declarations[Any]) -> dict[str, str]:
    """Return the declarations of the service's own modules, without the declarations of tests."""
    return {k: v for k, v in declared.modules.items() if v.startswith("chalicelib.")}


class TestManifestContent:
    def test_the_manifest_has_every_operation(self, manifest: Manifest) -> None:
        assert {row[0]: row for row in manifest.operations} == {
            o.name: o.packed() for o in REGISTRY
        }
        entries = [Entry.unpacked(PackedEntry(*row)) for row in manifest.operations]
        assert [entry.packed() for entry in entries] == list(manifest.operations)

    def test_the_manifest_has_every_tool(self, manifest: Manifest) -> None:
        assert manifest.tools == {o.tool: to_json(tools.tool(o)) for o in REGISTRY if o.tool}

    def test_the_manifest_has_every_kind_of_job(self, manifest: Manifest) -> None:
        assert manifest.jobs == ours(JOB_HANDLERS)

    def test_the_manifest_has_every_noun(self, manifest: Manifest) -> None:
        assert manifest.nouns == ours(NOUNS)

    def test_the_manifest_has_the_hash_of_the_sources(self, manifest: Manifest) -> None:
        assert manifest.digest == digest_of(sources())

    def test_the_manifest_has_the_whole_reference(self, packaged_copy: Path) -> None:
        document = json.loads((packaged_copy / "chalicelib" / "openapi.json").read_bytes())
        assert document["paths"] == openapi.document()["paths"]

    def test_the_manifest_has_the_limits_of_every_argument(self, packaged_copy: Path) -> None:
        packed = json.loads((packaged_copy / "chalicelib" / "limits.json").read_bytes())
        assert set(packed) == {operation.name for operation in REGISTRY}
        for operation in REGISTRY:
            found = {path: Limits(*limits) for path, limits in packed[operation.name].items()}
            assert found == dict(limits_by_path(operation.input)), operation.name

    def test_a_form_is_shown_without_the_operation_that_it_calls(self, packaged_copy: Path) -> None:
        script = """
import sys
from chalicelib.transports.web import control_limits
shown = control_limits.of("create_booking.client.name")
print(shown, "chalicelib.domains.bookings.operations" in sys.modules)
"""
        shown = run(packaged_copy, script, **LAMBDA)
        assert shown == f"{control_limits.of('create_booking.client.name')} False\n"


class TestPrecompiledCode:
    def test_each_code_is_what_the_standard_library_compiles(self, packaged_copy: Path) -> None:
        (table,) = (packaged_copy / "chalicelib").glob(precompiled.TABLE.name)
        codes = marshal.loads(table.read_bytes())  # noqa: S302  made by the test
        assert {"exec", "eval", 0, int(re.IGNORECASE)} <= {how for _, how in codes}
        for (text, how), packed in codes.items():
            code = marshal.loads(packed)  # noqa: S302
            if isinstance(how, str):
                assert code == precompiled.compiled(text, mode=how)
            else:
                pattern = re._compiler._sre.compile(text, *code)
                assert pattern == re.compile(text, how), text
                assert pattern.groupindex == re.compile(text, how).groupindex

    def test_a_first_request_compiles_hardly_any_text(self, packaged_copy: Path) -> None:
        script = """
import sys
compiled = []
sys.addaudithook(lambda event, values: event == "compile" and compiled.append(values[0]))
import app
health = {"httpMethod": "GET", "resourcePath": "/api/health", "identity": {}}
print(app.app({"requestContext": health, "multiValueQueryStringParameters": None, "headers": {},
    "pathParameters": None, "stageVariables": None, "body": None}, None)["statusCode"])
print(len([text for text in compiled if isinstance(text, str)]))
"""
        status, count = run(packaged_copy, script, **LAMBDA).split()[-2:]
        assert status == "200"
        assert int(count) < 10

    def test_text_that_is_not_in_the_table_is_compiled(self, packaged_copy: Path) -> None:
        script = """
import re
from collections import namedtuple
from dataclasses import dataclass
from typing import ForwardRef
from chalicelib.lib import precompiled
precompiled.use()
@dataclass(frozen=True)
class New:
    unheard_of: int = 7
print(New(), hash(New()) == hash(New()), namedtuple("Never", "seen_before")(1))
print(re.compile("(?P<unheard>o+)f", re.I).search("OOF")["unheard"], ForwardRef("Un.heard | of"))
for invalid in (lambda: re.compile("("), lambda: ForwardRef("1 +")):
    try:
        invalid()
    except (re.error, SyntaxError) as error:
        print(error)
"""
        with_table = run(packaged_copy, script, **LAMBDA)
        assert with_table == run(packaged_copy, script.replace("precompiled.use()", ""))


def test_only_a_fresh_copy_gets_a_manifest(packaged_copy: Path) -> None:
    second_manifest = write_manifest(packaged_copy)
    assert second_manifest.returncode
    assert "is there already" in second_manifest.stderr


ANSWERS = """
import json, logging
import app
from types import SimpleNamespace
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains.identity.store import api_keys
from chalicelib.engine.listing.registry import NOUNS

logging.disable()
api_keys.touch = lambda _: None

def send(method, path, body=None, key=None, **headers):
    attributes = key and dict(
        workspace_id="w", account_id="a", key_id="k", plan=key[0], role=key[1], scopes=key[2:])
    api_keys.find_by_token = lambda _: key and SimpleNamespace(
        live=True, attribute_values=attributes, **attributes)
    about = {"httpMethod": method, "resourcePath": path, "requestId": "r", "identity": {}}
    event = {"requestContext": about, "headers": {"Authorization": "Bearer x", **headers},
             "multiValueHeaders": {}, "pathParameters": {"id": "x"}, "stageVariables": None,
             "multiValueQueryStringParameters": None, "isBase64Encoded": False,
             "body": body and json.dumps(body)}
    print(json.dumps([method, path, key, headers, app.app(event, None)]))

def rpc(method, params, key, **headers):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    send("POST", "/api/mcp", body, key, **headers)

everything = ("business", "admin", "*:read", "*:write")
keys = [everything, ("business", "user", "*:read", "*:write"), ("business", "user", "*:read"),
        ("business", "user", "crm:read"), ("business", "user"), ("free", "user", "*:read"), None]
trims = [{}, {"X-MCP-Toolsets": "crm, nothing"}, {"X-MCP-Tools": "svc_list_leads,svc_lost"},
         {"X-MCP-Exclude-Tools": "svc_list_sites"}, {"X-MCP-Readonly": "true"}]
for key in keys:
    for headers in trims:
        rpc("tools/list", {}, key, **headers)
        rpc("initialize", {}, key, **headers)
rpc("tools/call", {"name": "svc_nothing"}, everything)
rpc("tools/call", {"name": "svc_list_leads", "arguments": {"page": "x"}}, everything)
rpc("tools/call", {"name": "svc_create_site", "arguments": {}}, keys[3])
send("GET", "/api/openapi.json")
for path in ("/api/docs", "/api/docs/search.json"):
    send("GET", path)
send("GET", "/api/nothing")
send("DELETE", "/api/projects/list")
send("OPTIONS", "/api/public/forms/{id}/submit")
send("GET", "/api/projects/list")
send("POST", "/api/projects/create", {"titel": 1}, everything)
print(sorted((path, method, entry.view_name, entry.view_args)
             for path, entries in (app.app.routes | app.app.page_routes).items()
             for method, entry in entries.items()))
print(list(JOB_HANDLERS), sorted(NOUNS), app.app.api.binary_types)
"""


@pytest.mark.parametrize(
    "place", slow_but_for(["https://one.example"], ["https://one.example", "http://127.0.0.1:8000"])
)
def test_answers_with_and_without_a_manifest_are_equal_byte_for_byte(
    place: str, plain_copy: Path, packaged_copy: Path
) -> None:
    with_it = run(packaged_copy, ANSWERS, **LAMBDA, PUBLIC_URL=place)
    assert with_it == run(plain_copy, ANSWERS, PUBLIC_URL=place)
    assert f'{{\\"url\\":\\"{place}\\"}}' in with_it
    assert with_it.count("svc_list_leads") > 10


def test_the_reference_is_rendered_without_importing_a_domain(packaged_copy: Path) -> None:
    script = """
import logging, sys
import app
from chalicelib.transports.http import HttpRequest
from chalicelib.transports.web import docs

for section in ("products", "errors", "chat", "none"):
    print(docs.section(HttpRequest("GET", "/", {}, path={"section": section})).status)
print(docs.start(HttpRequest("GET", "/", {}, query={"q": ["product"]})).status)
print(sorted(name for name in sys.modules if ".operations." in name))
"""
    assert run(packaged_copy, script, **LAMBDA).split() == ["200", "200", "200", "404", "200", "[]"]


EACH = """
import os, sys
import app
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.operations import REGISTRY
from chalicelib.engine.listing.registry import NOUNS

def domains():
    parts = (name.split(".") for name in sys.modules)
    return {p[2] for p in parts if p[:2] == ["chalicelib", "domains"] and "operations" in p}

def alone(module, look):
    'Look something up in a process of its own, which has imported no domain yet.'
    assert not domains(), domains()
    child = os.fork()
    if child:
        assert not os.waitpid(child, 0)[1], module
        return
    try:
        look()
        own = {module.split(".")[2]} if ".operations." in module else set()
        assert domains() == own, (module, domains())
        os._exit(0)
    finally:
        os._exit(1)

def look(entries, kinds, nouns):
    for entry in entries:
        found = REGISTRY[entry.name]
        assert found.packed() == entry.packed() and found.handler.__name__ == entry.name
    for kind in kinds:
        assert JOB_HANDLERS[kind].__module__ == JOB_HANDLERS.modules[kind]
    for noun in nouns:
        assert NOUNS[noun].noun == noun

entries = REGISTRY.entries()
jobs, nouns = JOB_HANDLERS.modules, NOUNS.modules
modules = sorted({*(entry.module for entry in entries), *jobs.values(), *nouns.values()})
for module in modules[int(sys.argv[1]) :: int(sys.argv[2])]:
    alone(module, lambda: look([entry for entry in entries if entry.module == module],
                               [kind for kind in jobs if jobs[kind] == module],
                               [noun for noun in nouns if nouns[noun] == module]))
print(len(entries))
"""


PARTS = 4


@pytest.mark.parametrize("part", slow_but_for([0], range(PARTS)))
def test_each_declaration_is_found_in_its_module_and_imports_no_other_domain(
    part: int, packaged_copy: Path
) -> None:
    """Every fourth module is tried. The slow tests have the others."""
    assert int(run(packaged_copy, EACH, str(part), str(PARTS), **LAMBDA)) == len(REGISTRY)


def test_a_run_of_jobs_imports_no_domain_or_transport(packaged_copy: Path) -> None:
    script = """
import sys
import app
from chalicelib.engine import jobs
jobs.ControlRow.query = lambda *_, **__: type("Rows", (list,), {"last_evaluated_key": None})()
event = dict.fromkeys(("source", "detail-type", "detail", "id", "account", "region", "version",
                       "time", "resources"), "")
print(app.run_jobs(event, None))
app.run_events(event, None)
print([name for name in sys.modules if name.startswith("chalicelib.domains.")])
doors = [f"chalicelib.transports.{name}" for name in ("mcp", "rest", "public")]
print([name for name in doors if name in sys.modules])
"""
    runs, domains, doors = run(packaged_copy, script, **LAMBDA).splitlines()
    assert set(ast.literal_eval(runs)) == set(ours(JOB_HANDLERS))
    assert (domains, doors) == ("[]", "[]")


def test_the_audit_log_names_records_whose_nouns_are_not_imported(packaged_copy: Path) -> None:
    script = """
import sys
from chalicelib.engine.file_uses import FileVersionRow, RAISE
from chalicelib.engine.unit import UnitOfWork
unit = UnitOfWork("w")
unit.update(FileVersionRow("W#w#FILE", "f1"), RAISE)
unit.update(FileVersionRow("W#other#FILE", "f2"), RAISE)
assert "chalicelib.domains.files.store.files" not in sys.modules
print(*unit._resources)
"""
    assert run(packaged_copy, script, **LAMBDA) == "file:f1\n"


def test_a_manifest_is_ignored_once_a_module_has_changed(
    packaged_copy: Path, tmp_path: Path
) -> None:
    script = "from chalicelib.core.manifest import manifest; print(len(manifest().operations))"
    assert int(run(packaged_copy, script)) == len(REGISTRY)
    changed_copy = tmp_path / "changed"
    shutil.copytree(packaged_copy, changed_copy)
    operations = changed_copy / "chalicelib" / "domains" / "blog" / "operations"
    with (operations / "posts.py").open("a") as module:
        module.write("# changed\n")
    assert int(run(changed_copy, script)) == 0


@sweep("package", sorted((ROOT / "chalicelib" / "domains").rglob("__init__.py")))
def test_domains_are_imported_one_module_at_a_time(package: Path) -> None:
    _docstring, *statements = ast.parse(package.read_text()).body
    assert not statements, (
        "load_all finds the modules; what is imported here, every request would import"
    )


class TestDeclarations:
    def test_a_name_declared_twice_is_refused(self) -> None:
        declared = Declarations[int]({})
        declared.declare("a", 1, "first")
        with pytest.raises(ValueError, match=r'"a" is declared twice, in second and in first'):
            declared.declare("a", 2, "second")
        with pytest.raises(ValueError, match="declared twice"):
            declared.declare("a", 2, "first")
        assert dict(declared) == {"a": 1}

    def test_an_undeclared_name_is_not_found(self) -> None:
        declared = Declarations[int]({"a": "json"})
        assert ("a" in declared, "b" in declared, len(declared)) == (True, False, 1)
        assert declared.get("b") is None
        with pytest.raises(KeyError):
            declared["a"]  # The json module declares no such name.
