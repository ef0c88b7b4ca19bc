"""The manifest of named declarations, which lets cold starts import few modules (ADR 22).

In development, all modules are imported to find the declarations. For a deployment, the packager
does so once and writes the name and module of each to ``chalicelib/manifest.py``
(``infra.deploy.package.manifest``). A function then imports only what its request needs.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

PACKAGE = Path(__file__).parents[1]
MODULE = "manifest.py"
# Few requests need the OpenAPI document, the limits of arguments or the changelog, so they are
# separate files.
OPENAPI = "openapi.json"
LIMITS = "limits.json"
CHANGELOG = "CHANGELOG.md"  # copied from beside the package
# The placeholder for the server's base URL in the OpenAPI document and its examples.
SERVER = "https://server.invalid"

V = TypeVar("V")


class PackedEntry(NamedTuple):
    """The fields of a ``core.operations.Entry`` as plain values."""

    name: str
    title: str
    module: str
    tool: str | None
    method: str
    path: str
    scope: str | None
    audience: tuple[str, ...]
    role: str | None
    for_staff: bool


class Manifest(NamedTuple):
    """The location of every declaration, in the order of declaration."""

    digest: str  # of the sources that the manifest was made from
    operations: tuple[PackedEntry, ...] = ()
    tools: Mapping[str, bytes] = {}  # definitions as JSON
    jobs: Mapping[str, str] = {}  # modules by name
    nouns: Mapping[str, str] = {}


@cache
def manifest() -> Manifest:
    """Return the package's manifest, or an empty one if all modules must be imported."""
    if find_spec("chalicelib.manifest") is None:
        return Manifest("")
    packed = Manifest(*import_module("chalicelib.manifest").MANIFEST)
    packed = packed._replace(operations=tuple(map(PackedEntry._make, packed.operations)))
    # Outside Lambda, sources may have changed since.
    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ or packed.digest == digest_of(sources()):
        return packed
    return Manifest("")


def openapi() -> bytes | None:
    """Return the OpenAPI document that was made with the manifest, or None without a manifest."""
    return (PACKAGE / OPENAPI).read_bytes() if manifest().digest else None


def changelog() -> str:
    """Return the changelog of the code that runs."""
    folder = PACKAGE if manifest().digest else PACKAGE.parent
    return (folder / CHANGELOG).read_text(encoding="utf-8")


@cache
def limits() -> Mapping[str, Mapping[str, Sequence[Any]]]:
    """Return the ``Limits`` of each argument, by operation, or nothing without a manifest.

    A page shows the limits of a form without importing what runs when it is sent.
    """
    from pydantic_core import from_json

    return from_json((PACKAGE / LIMITS).read_bytes()) if manifest().digest else {}


def sources() -> Iterator[tuple[str, bytes]]:
    """Yield the path of each module within the package, and its content."""
    for path in PACKAGE.rglob("*.py"):
        yield path.relative_to(PACKAGE).as_posix(), path.read_bytes()


def digest_of(files: Iterable[tuple[str, bytes]]) -> str:
    """Return the digest of a package's modules, without the manifest itself."""
    from hashlib import sha256  # Lambda functions do not need it

    digest = sha256()
    for name, content in sorted(files):
        if name != MODULE:
            # The length separates the name from the content, so that no two trees give the same
            # bytes.
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


class Declarations(Mapping[str, V]):
    """Declarations by name. Modules of names in the manifest are imported on first access."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.modules = dict(modules)  # by name, in the order of declaration
        self._declared: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        module = self.modules[name]
        if name not in self._declared:
            import_module(module)
        return self._declared[name]

    def __contains__(self, name: object) -> bool:
        # No import is needed.
        return name in self.modules

    def __iter__(self) -> Iterator[str]:
        # An import during the iteration may add declarations, so it runs over a copy.
        return iter(list(self.modules))

    def __len__(self) -> int:
        return len(self.modules)

    def declare(self, name: str, value: V, module: str) -> None:
        """Add a declaration of a module, or raise ValueError if the name is taken."""
        if name in self._declared or self.modules.setdefault(name, module) != module:
            msg = f'"{name}" is declared twice, in {module} and in {self.modules[name]}'
            raise ValueError(msg)
        self._declared[name] = value
