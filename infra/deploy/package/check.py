"""Checks of a Lambda zip before its deployment.

``chalice package`` exits with 0 even if a wheel is missing, or if it was built from source and
Lambda cannot load it. The zip itself is therefore checked: its contents, and whether Lambda can
load them.
"""

import io
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from chalicelib.core import manifest

MIB = 1024 * 1024
MAX_ZIP = 34 * MIB
"""Maximum size in bytes, one MiB more than today, so that a dependency that adds more is noticed.

Lambda accepts 50 MB directly; larger zips need a bucket.
"""
MAX_UNPACKED = 250 * MIB
"""Maximum size in bytes that Lambda accepts (Lambda quotas, "Deployment package size")."""

REQUIRED = ("app.py", "chalice/app.py", "chalicelib/__init__.py", "stream_bootstrap")
ANYBODY_RUNS = 0o111
RUN = ("stream_bootstrap",)
"""Files that Lambda executes."""
PRIVATE = {".chalice", ".env", ".git", ".local", ".venv", "build", "docs", "infra", "tests"}
"""Top-level names of the checkout that must not be deployed."""
OURS = ("app.py", "chalicelib/")
SECRETS = re.compile(
    rb"svc_(?:live|bot)_\w{32,}|AKIA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)

SHARED_OBJECT = re.compile(r"\.so(\.\d+)*$")
SYSTEM_LIBRARIES = re.compile(
    r"(libc|libm|libdl|librt|libpthread|libutil|libgcc_s|libstdc\+\+|libz|ld-linux-[\w-]+)\.so\.\d+"
)
"""Libraries of Amazon Linux. Any other library must be in the zip."""
ELF_MACHINES = {"x64": "x86_64", "AArch64": "aarch64"}
"""Names of the architectures in pyelftools."""
GLIBC = (2, 34)
"""Version in Amazon Linux 2023, the base of every Lambda runtime from Python 3.12 on."""


@dataclass(frozen=True, slots=True)
class Target:
    """The Lambda runtime of the zip, with ``x86_64`` or ``aarch64`` as its machine."""

    python: tuple[int, int]
    machine: str = "x86_64"

    @property
    def extension(self) -> str:
        """File name suffix of a compiled module for exactly this Python."""
        return f".cpython-{self.python[0]}{self.python[1]}-{self.machine}-linux-gnu.so"


def faults(path: Path, target: Target, resolved: set[tuple[str, str]]) -> list[str]:
    """Return the faults of a zip, one sentence each; empty if it may be deployed.

    ``resolved`` has the normalised names and the versions that pip resolves the requirements to.
    """
    with ZipFile(path) as archive:
        return [
            *_layout(archive),
            *_manifest(archive),
            *_distributions(archive, resolved),
            *_wheels(archive, target),
            *_compiled(archive, target),
            *_sizes(archive, path),
        ]


def normalised(name: str) -> str:
    """Return a distribution's name, normalised as in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def largest(path: Path, count: int = 10) -> list[tuple[str, int, int]]:
    """Return the largest top-level names of a zip, with their compressed and unpacked bytes."""
    sizes: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    with ZipFile(path) as archive:
        for entry in archive.infolist():
            size = sizes[entry.filename.partition("/")[0]]
            size[0] += entry.compress_size
            size[1] += entry.file_size
    ranked = sorted(sizes.items(), key=lambda item: -item[1][0])
    return [(name, packed, unpacked) for name, (packed, unpacked) in ranked[:count]]


def _layout(archive: ZipFile) -> Iterator[str]:
    names = archive.namelist()
    for name in REQUIRED:
        if name not in names:
            yield f"{name} is missing."
    for entry in archive.infolist():
        # The upper 16 bits hold the file mode of Unix, which Lambda applies.
        if entry.filename in RUN and ~(entry.external_attr >> 16) & ANYBODY_RUNS:
            yield f"{entry.filename} may not be run: set its right to (chmod +x) and commit that."
    for name in sorted(PRIVATE & {name.partition("/")[0] for name in names}):
        yield f"{name} is in the zip; only app.py, chalicelib, vendor and wheels belong there."
    for name in names:
        if name.startswith(OURS) and SECRETS.search(archive.read(name)):
            yield f"{name} holds what looks like a secret; revoke it and keep it out of the code."


def _manifest(archive: ZipFile) -> Iterator[str]:
    """Check that the manifest exists and was built from exactly the modules in the zip."""
    package = "chalicelib/"
    names = [name for name in archive.namelist() if name.startswith(package)]
    for name in (manifest.MODULE, manifest.OPENAPI, manifest.LIMITS, manifest.CHANGELOG):
        if package + name not in names:
            yield f"{package}{name} is missing: package with `make package`."
            return
    sources = {n.removeprefix(package): archive.read(n) for n in names if n.endswith(".py")}
    # A stale manifest would hide new operations, because functions find modules only by the
    # manifest.
    if manifest.digest_of(sources.items()).encode() not in sources[manifest.MODULE]:
        yield f"{package}{manifest.MODULE} was made from other modules than those in the zip."


def _metadata(archive: ZipFile, file: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield the distribution folder and the headers of every ``*.dist-info/<file>``."""
    for name in archive.namelist():
        folder, _, file_name = name.partition("/")
        if folder.endswith(".dist-info") and file_name == file:
            message = HeaderParser().parsestr(archive.read(name).decode())
            yield folder, {key: message.get_all(key, []) for key in ("Name", "Version", "Tag")}


def _distributions(archive: ZipFile, resolved: set[tuple[str, str]]) -> Iterator[str]:
    present = {
        (normalised(headers["Name"][0]), headers["Version"][0])
        for _, headers in _metadata(archive, "METADATA")
    }
    for name, version in sorted(resolved - present):
        yield f"{name} {version} is missing: pin a version that has a wheel for the target."


def _wheels(archive: ZipFile, target: Target) -> Iterator[str]:
    for folder, headers in _metadata(archive, "WHEEL"):
        platforms = {part for tag in headers["Tag"] for part in tag.split("-")[-1].split(".")}
        if not any(_fits(platform, target) for platform in platforms):
            wheel = folder.removesuffix(".dist-info")
            built = ", ".join(sorted(platforms))
            yield f"{wheel} is built for {built}, not for manylinux on {target.machine}."


def _fits(platform: str, target: Target) -> bool:
    """Whether a wheel with this platform tag (PEP 600) loads on the target.

    A ``linux_*`` tag means a build on this machine, whose libraries Lambda may not have.
    """
    manylinux = re.fullmatch(r"manylinux(?:1|2010|2014|_(\d+)_(\d+))_(\w+)", platform)
    if manylinux is None:
        return platform == "any"
    major, minor, machine = manylinux.groups()
    return machine == target.machine and (major is None or (int(major), int(minor)) <= GLIBC)


def _compiled(archive: ZipFile, target: Target) -> Iterator[str]:
    """Check the name, machine, libraries and glibc of every shared object, as the loader would."""
    names = [name for name in archive.namelist() if SHARED_OBJECT.search(name)]
    bundled = {name.rpartition("/")[2] for name in names}
    core = f"pydantic_core/_pydantic_core{target.extension}"
    if core not in names:
        yield f"{core} is missing: pydantic would not import."
    for name in names:
        if ".cpython-" in name and not name.endswith(target.extension):
            yield f"{name} is for another Python or platform than *{target.extension}."
            continue
        elf = ELFFile(io.BytesIO(archive.read(name)))
        machine = elf.get_machine_arch()
        if ELF_MACHINES.get(machine) != target.machine:
            yield f"{name} is compiled for {machine}, not for {target.machine}."
        for library in sorted(_libraries(elf) - bundled):
            if not SYSTEM_LIBRARIES.fullmatch(library):
                yield f"{name} needs {library}, which neither Lambda nor the zip has."
        if (glibc := _glibc(elf)) > GLIBC:
            yield f"{name} needs glibc {glibc[0]}.{glibc[1]}; Lambda has {GLIBC[0]}.{GLIBC[1]}."


def _libraries(elf: ELFFile) -> set[str]:
    """Return the names of the libraries that a shared object is linked to."""
    tags: list[Any] = [
        tag
        for section in elf.iter_sections()
        if isinstance(section, DynamicSection)
        for tag in section.iter_tags("DT_NEEDED")
    ]
    return {tag.needed for tag in tags}


def _glibc(elf: ELFFile) -> tuple[int, int]:
    """Return the newest glibc version whose symbols a shared object uses."""
    versions = [
        re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version.name)
        for section in elf.iter_sections()
        if isinstance(section, GNUVerNeedSection)
        for _, needed in section.iter_versions()
        for version in needed
    ]
    return max(((int(v[1]), int(v[2])) for v in versions if v), default=(0, 0))


def _sizes(archive: ZipFile, path: Path) -> Iterator[str]:
    packed = path.stat().st_size
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if packed > MAX_ZIP:
        yield f"The zip has {packed / MIB:.1f} MiB; {MAX_ZIP // MIB} MiB is our limit."
    if unpacked > MAX_UNPACKED:
        size = f"{unpacked / MIB:.1f} MiB"
        yield f"Unpacked it has {size}; {MAX_UNPACKED // MIB} MiB is Lambda's limit."
