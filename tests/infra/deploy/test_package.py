"""The zip check refuses faults, and the real zip works outside the checkout."""

import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from chalicelib.core import manifest
from infra.deploy.package import build as package
from infra.deploy.package import check as zipcheck
from tests.fakes import lambda_runtime_api
from tests.fakes.lambda_process import Lambda
from tests.fakes.lambda_runtime_api import event
from tests.infra.deploy.conftest import ENVIRONMENT, FUNCTION
from tests.support.patience import stretched
from tests.support.zips import digests

MACHINE = platform.machine()
OTHER_MACHINE = {"x86_64": "aarch64"}.get(MACHINE, "x86_64")
TARGET = zipcheck.Target((3, 12), MACHINE)
CORE = f"pydantic_core/_pydantic_core.cpython-312-{MACHINE}-linux-gnu.so"
RESOLVED = {("pydantic-core", "2.50.4")}


def shared_object() -> bytes:
    """A shared object of an installed wheel; it needs libc.so.6 and glibc 2.14."""
    spec = importlib.util.find_spec("_argon2_cffi_bindings._ffi")
    assert spec
    assert spec.origin
    return Path(spec.origin).read_bytes()


def wheel_info(*platforms: str) -> str:
    return "Wheel-Version: 1.0\n" + "".join(f"Tag: cp312-cp312-{name}\n" for name in platforms)


def faults_of(
    path: Path, *, left_out: str = "", rights: int = 0o755, **changes: str | bytes
) -> list[str]:
    """Build a valid zip with some changes and missing files, and return its faults."""
    folder = "pydantic_core-2.50.4.dist-info"
    contents: dict[str, str | bytes] = {
        "app.py": "app = None",
        "chalice/app.py": "",
        "chalicelib/__init__.py": "",
        "chalicelib/openapi.json": "{}",
        "chalicelib/limits.json": "{}",
        "chalicelib/CHANGELOG.md": "# Changelog",
        CORE: shared_object(),
        f"{folder}/METADATA": "Metadata-Version: 2.4\nName: pydantic_core\nVersion: 2.50.4\n",
        f"{folder}/WHEEL": wheel_info(f"manylinux_2_17_{MACHINE}", f"manylinux2014_{MACHINE}"),
        **changes,
    }
    contents.pop(left_out, None)
    modules = [
        (name.removeprefix("chalicelib/"), content.encode())
        for name, content in contents.items()
        if name.startswith("chalicelib/") and name.endswith(".py") and isinstance(content, str)
    ]
    if left_out != "chalicelib/manifest.py":
        manifest_line = f"MANIFEST = ('{manifest.digest_of(modules)}', ...)"
        contents.setdefault("chalicelib/manifest.py", manifest_line)
    with zipfile.ZipFile(path / "deployment.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
        if left_out != "stream_bootstrap":
            program = zipfile.ZipInfo("stream_bootstrap")
            program.external_attr = rights << 16
            archive.writestr(program, "#!/bin/sh")
    return zipcheck.faults(path / "deployment.zip", TARGET, RESOLVED)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a wheel's ELF file")
class TestZipCheck:
    def test_passes_a_sound_zip(self, tmp_path: Path) -> None:
        assert faults_of(tmp_path) == []

    @pytest.mark.parametrize(
        "name", ["app.py", "chalice/app.py", "chalicelib/__init__.py", "stream_bootstrap"]
    )
    def test_refuses_a_zip_without_the_application(self, tmp_path: Path, name: str) -> None:
        assert faults_of(tmp_path, left_out=name) == [f"{name} is missing."]

    def test_refuses_a_program_that_is_not_executable(self, tmp_path: Path) -> None:
        (fault,) = faults_of(tmp_path, rights=0o644)
        assert fault.startswith("stream_bootstrap may not be run")

    @pytest.mark.parametrize(
        "name",
        [
            "tests/test_app.py",
            "infra/operator/admin.py",
            ".venv/pyvenv.cfg",
            ".local/dev.json",
            ".env",
        ],
    )
    def test_refuses_files_that_belong_to_the_checkout_only(
        self, tmp_path: Path, name: str
    ) -> None:
        (fault,) = faults_of(tmp_path, **{name: ""})
        assert fault.startswith(f"{name.partition('/')[0]} is in the zip")

    @pytest.mark.parametrize("secret", ["svc_live_" + "A1b2" * 10, "AKIA" + "Z" * 16])
    def test_refuses_a_secret_in_our_code(self, tmp_path: Path, secret: str) -> None:
        (fault,) = faults_of(tmp_path, **{"chalicelib/keys.py": f"KEY = '{secret}'"})
        assert fault.startswith("chalicelib/keys.py holds what looks like a secret")

    @pytest.mark.parametrize(
        "name",
        [
            f"chalicelib/{name}"
            for name in ("manifest.py", "openapi.json", "limits.json", "CHANGELOG.md")
        ],
    )
    def test_refuses_a_zip_without_its_manifest(self, tmp_path: Path, name: str) -> None:
        (fault,) = faults_of(tmp_path, left_out=name)
        assert fault.startswith(f"{name} is missing")

    def test_refuses_a_manifest_of_other_modules(self, tmp_path: Path) -> None:
        stale = {"chalicelib/manifest.py": f"MANIFEST = ('{manifest.digest_of([])}', ...)"}
        (fault,) = faults_of(tmp_path, **stale)
        assert fault.endswith("was made from other modules than those in the zip.")

    def test_refuses_a_missing_distribution(self, tmp_path: Path) -> None:
        (fault,) = faults_of(tmp_path, left_out="pydantic_core-2.50.4.dist-info/METADATA")
        assert fault.startswith("pydantic-core 2.50.4 is missing")

    def test_refuses_another_version_than_resolved(self, tmp_path: Path) -> None:
        metadata = {"pydantic_core-2.50.4.dist-info/METADATA": "Name: pydantic_core\nVersion: 2\n"}
        (fault,) = faults_of(tmp_path, **metadata)
        assert fault.startswith("pydantic-core 2.50.4 is missing")

    @pytest.mark.parametrize(
        "tag",
        [
            f"linux_{MACHINE}",
            f"manylinux_2_17_{OTHER_MACHINE}",
            f"manylinux_2_35_{MACHINE}",
            "macosx_11_0_arm64",
            f"musllinux_1_2_{MACHINE}",
        ],
    )
    def test_refuses_a_wheel_of_another_platform(self, tmp_path: Path, tag: str) -> None:
        (fault,) = faults_of(tmp_path, **{"pydantic_core-2.50.4.dist-info/WHEEL": wheel_info(tag)})
        assert fault == f"pydantic_core-2.50.4 is built for {tag}, not for manylinux on {MACHINE}."

    def test_refuses_a_zip_without_pydantic_core_for_its_python(self, tmp_path: Path) -> None:
        assert faults_of(tmp_path, left_out=CORE) == [
            f"{CORE} is missing: pydantic would not import."
        ]

    def test_refuses_a_module_compiled_for_another_python(self, tmp_path: Path) -> None:
        name = CORE.replace("312", "311")
        (fault,) = faults_of(tmp_path, **{name: shared_object()})
        assert fault.startswith(f"{name} is for another Python")

    def test_refuses_another_machine_whatever_the_name_says(self, tmp_path: Path) -> None:
        machine = {"x86_64": 62, "aarch64": 183}[OTHER_MACHINE]  # e_machine of the ELF header
        foreign = bytearray(shared_object())
        foreign[18:20] = machine.to_bytes(2, "little")
        (fault,) = faults_of(tmp_path, **{CORE: bytes(foreign)})
        assert fault.startswith(f"{CORE} is compiled for ")

    def test_refuses_a_missing_shared_library(self, tmp_path: Path) -> None:
        linked = shared_object().replace(b"libc.so.6\0", b"libq.so.6\0")
        (fault,) = faults_of(tmp_path, **{CORE: linked})
        assert fault == f"{CORE} needs libq.so.6, which neither Lambda nor the zip has."

    def test_passes_a_shared_library_in_the_zip(self, tmp_path: Path) -> None:
        linked = shared_object().replace(b"libc.so.6\0", b"libq.so.6\0")
        bundled = {CORE: linked, "pydantic_core.libs/libq.so.6": shared_object()}
        assert faults_of(tmp_path, **bundled) == []

    @pytest.mark.skipif(MACHINE != "x86_64", reason="the wheel's versions differ elsewhere")
    def test_refuses_a_newer_glibc_than_lambdas(self, tmp_path: Path) -> None:
        linked = shared_object().replace(b"GLIBC_2.14\0", b"GLIBC_2.99\0")
        (fault,) = faults_of(tmp_path, **{CORE: linked})
        assert fault == f"{CORE} needs glibc 2.99; Lambda has 2.34."

    @pytest.mark.parametrize("limit", ["MAX_ZIP", "MAX_UNPACKED"])
    def test_refuses_a_zip_that_is_too_large(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
    ) -> None:
        monkeypatch.setattr(zipcheck, limit, 1000)
        (fault,) = faults_of(tmp_path)
        assert "MiB is" in fault

    def test_report_names_the_largest_parts_of_the_zip(self, tmp_path: Path) -> None:
        faults_of(tmp_path)
        (name, packed, unpacked), *others = zipcheck.largest(tmp_path / "deployment.zip")
        assert (name, unpacked) == ("pydantic_core", len(shared_object()))
        assert 0 < packed < unpacked
        assert others


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


class TestFindPython:
    def test_finds_the_first_python_that_runs_and_fits(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = script(tmp_path / "shim", "echo 'pyenv: python3.12: command not found'; exit 127")
        old = script(tmp_path / "old", "echo 3 11")
        fitting = script(tmp_path / "fitting", "echo 3 12")
        choice = [str(tmp_path / "absent"), broken, old, fitting, "never reached"]
        monkeypatch.setattr(package, "_candidates", lambda _: iter(choice))
        assert package.find_python() == package.Python(fitting, (3, 12))

    def test_missing_python_error_names_the_candidates(self, tmp_path: Path) -> None:
        old = script(tmp_path / "old", "echo 3 11")
        with pytest.raises(package.PackageError) as failure:
            package.find_python(old)
        assert "Packaging needs a Python from 3.12 to 3.14" in failure.value.message
        assert f"{old} (3.11)" in failure.value.message


class TestBuild:
    def test_refuses_an_unknown_stage(self, tmp_path: Path) -> None:
        with pytest.raises(click.ClickException, match='No stage "prd"'):
            package.build("prd", tmp_path)

    def test_copies_only_tracked_files_that_the_service_needs(self, tmp_path: Path) -> None:
        root = tmp_path / "checkout"
        (root / "chalicelib" / "__pycache__").mkdir(parents=True)
        (root / "docs").mkdir()
        for name in ("app.py", "chalicelib/a.py", "chalicelib/secret.key", "secret.txt"):
            (root / name).write_text(name)
        for name in (*package.RECORDED, "docs/reference.md"):
            (root / name).write_text(name)
        (root / "chalicelib" / "a.py").chmod(0o755)
        (root / "chalicelib" / "__pycache__" / "a.pyc").write_bytes(b"")
        (root / ".gitignore").write_text("__pycache__/\n*.key\n")
        (root / "requirements.txt").write_text("-c constraints.txt\nboto3==1\nChalice==1.34.0\n")
        (root / "constraints.txt").write_text("botocore==1\n")
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        copy = package._copy(root, project=tmp_path / "copy")
        files = {str(f.relative_to(copy)) for f in copy.rglob("*") if f.is_file()}
        ours = {"app.py", "chalicelib/a.py", *package.RECORDED}
        assert files == {*ours, "requirements.txt", "constraints.txt"}
        assert (copy / "chalicelib" / "a.py").stat().st_mode & 0o777 == 0o755
        assert (copy / "requirements.txt").read_text() == "-c constraints.txt\nboto3==1\n"

    def test_refuses_an_incompatible_wheel_of_which_chalice_only_warns(
        self, tmp_path: Path
    ) -> None:
        warning = "Could not install dependencies:\nspam==1.0\neggs==2.0\nYou will have to build"
        (tmp_path / "chalice").write_text(f"print({warning!r})")
        python = package.Python(script(tmp_path / "python", f'exec {sys.executable} "$@"'), (3, 12))
        with pytest.raises(package.PackageError, match=r"No wheel .* for spam==1\.0, eggs==2\.0"):
            package._chalice_package(python, tmp_path, "dev", tmp_path / "out")

    def test_build_reports_a_missing_network(self, tmp_path: Path) -> None:
        pip_output = (
            "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution"
        )
        python = package.Python(
            script(tmp_path / "python", f"echo '{pip_output}' >&2; exit 1"), (3, 12)
        )
        with pytest.raises(package.PackageError, match="The package index does not answer"):
            package._pip(python, "install", "requests")

    def test_adds_bytecode_that_is_never_checked_against_its_source(self, tmp_path: Path) -> None:
        path = tmp_path / "deployment.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("app.py", "x = 1")
        package._add_bytecode(package.Python(sys.executable, sys.version_info[:2]), path)
        with zipfile.ZipFile(path) as archive:
            compiled = archive.read(f"__pycache__/app.{sys.implementation.cache_tag}.pyc")
        assert compiled[:4] == importlib.util.MAGIC_NUMBER
        assert compiled[4:8] == b"\x01\0\0\0"  # PEP 552: by hash, unchecked


# What follows builds the real zip and stands in for Lambda: `make test-package`.

NO_AWS = {**ENVIRONMENT, **FUNCTION, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}


@pytest.fixture(scope="module")
def function(built_zip: package.Package, unpacked_zip: Path) -> Iterator[Lambda]:
    """The function of all routes. This test has no AWS. ``make test-deployed`` runs the function on
    one."""
    with Lambda(unpacked_zip, built_zip.python.path, NO_AWS) as running:
        yield running


@pytest.mark.package
@pytest.mark.timeout(1800)
class TestTheZip:
    def test_loads_nothing_of_the_checkout(self, function: Lambda) -> None:
        function.call("GET", "/api/health")
        loaded = function.run("", {})
        task = Path(loaded["path"][0])
        assert not [p for p in loaded["path"] if Path(p).is_relative_to(package.ROOT)]
        ours = {
            n: f for n, f in loaded["files"].items() if n.split(".")[0] in {"app", "chalicelib"}
        }
        assert len(ours) > 10
        assert all(Path(file).is_relative_to(task) for file in ours.values())
        assert not [n for n in loaded["files"] if n.split(".")[0] in {"site", "pip", "infra"}]

    def test_zip_holds_the_versions_that_constraints_pin(self, built_zip: package.Package) -> None:
        pins = re.findall(
            r"^([\w.-]+)==(\S+)", (package.ROOT / "constraints.txt").read_text(), re.MULTILINE
        )
        with zipfile.ZipFile(built_zip.zip) as archive:
            folders = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        shipped = [folder.removesuffix(".dist-info").split("-") for folder in folders]
        assert len(shipped) > 10
        assert {(zipcheck.normalised(name), version) for name, version in shipped} <= set(pins)

    def test_zip_has_precompiled_code_for_its_python(self, built_zip: package.Package) -> None:
        tag = "cpython-{}{}".format(*built_zip.python.version)
        with zipfile.ZipFile(built_zip.zip) as archive:
            names = [n for n in archive.namelist() if n.startswith("chalicelib/precompiled.")]
        assert [name.split(".")[1] for name in names] == [tag]

    def test_zip_imports_no_domain_before_its_first_call(self, built_zip: package.Package) -> None:
        with zipfile.ZipFile(built_zip.zip) as archive, tempfile.TemporaryDirectory() as folder:
            archive.extractall(folder)
            with Lambda(Path(folder), built_zip.python.path, NO_AWS) as function:
                function.call("GET", "/api/openapi.json")
                status, products = function.call("GET", "/api/openapi.json?tags=products")
                assert (status, [tag["name"] for tag in products["tags"]]) == (200, ["products"])
                loaded = function.run("", {})["files"]
        assert "chalicelib.manifest" in loaded
        assert not [name for name in loaded if name.startswith("chalicelib.domains.")]

    def test_zip_streams_without_the_checkout(
        self, built_zip: package.Package, unpacked_zip: Path, tmp_path: Path
    ) -> None:
        handler = (tmp_path / "streaming.py").resolve()
        shutil.copy(package.ROOT / "tests" / "fakes" / "streaming_handlers.py", handler)
        variables = {
            **ENVIRONMENT,
            "STREAM_HANDLER": "streaming:handle",
            "PYTHONPATH": str(tmp_path),
            "PYTHONNOUSERSITE": "1",
        }
        with lambda_runtime_api.function(
            unpacked_zip / "stream_bootstrap",
            variables,
            python=str(Path(built_zip.python.path).resolve()),
        ) as running:

            def attempt(every: float) -> list[tuple[float, bytes]]:
                body = json.dumps({"pieces": 3, "every": every, "modules": True})
                invocation = running.invoke(event(body))
                return [(time.monotonic(), piece) for piece in invocation.pieces()]

            pieces = stretched(attempt, 0.2, lambda pieces: pieces[-1][0] - pieces[0][0] > 0.5)
            assert running.api.faults == []
        assert len(pieces) == 5
        files = json.loads(pieces[0][1].removeprefix(b"data: "))["modules"]
        packed = ("chalicelib", "pydantic")
        ours = {n: f for n, f in files.items() if f and n.partition(".")[0] in packed}
        assert len(ours) > 20
        assert all(Path(file).is_relative_to(unpacked_zip) for file in ours.values())
        assert not [f for f in files.values() if f and Path(f).is_relative_to(package.ROOT)]

    def test_the_template_sets_runtime_and_limits(self, built_zip: package.Package) -> None:
        template = json.loads((built_zip.zip.parent / "sam.json").read_text())
        functions = {
            name: resource["Properties"]
            for name, resource in template["Resources"].items()
            if resource["Type"] == "AWS::Serverless::Function"
        }
        runtime = "python{}.{}".format(*built_zip.python.version)
        assert {f["Runtime"] for f in functions.values()} == {runtime}
        assert functions["APIHandler"]["Timeout"] == 29
        assert functions["RunJobs"]["Timeout"] == 300
        chat = functions["ChatStream"]
        assert (chat["Timeout"], chat["MemorySize"]) == (360, 512)
        variables = chat["Environment"]["Variables"]
        assert variables["AWS_LAMBDA_EXEC_WRAPPER"] == "/var/task/stream_bootstrap"
        assert variables["STAGE"] == "dev"
        others = [f["Environment"]["Variables"] for n, f in functions.items() if n != "ChatStream"]
        assert not any("AWS_LAMBDA_EXEC_WRAPPER" in path for path in others)

    def test_chalice_takes_the_checked_zip_again(
        self, built_zip: package.Package, tmp_path: Path
    ) -> None:
        package_command = ("package", "--stage", "dev", str(tmp_path / "again"))
        package.chalice(built_zip.python, built_zip.project, *package_command)
        again = (tmp_path / "again" / "deployment.zip").read_bytes()
        assert digests(again) == digests(built_zip.zip.read_bytes())
