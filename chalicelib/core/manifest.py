"""What modules declare by name, found without importing them all: so cold starts stay short.

Operations, handlers of jobs and nouns are declared where they are written, and importing every
module is how they are found in development. The packager, which has imported them all, writes down
in ``chalicelib/manifest.py`` what is where (``infra.deploy.package.manifest``). A function imports
from it what a request needs (ADR 22).
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypeVar

PACKAGE = Path(__file__).parents[1]
MODULE = "manifest.py"
OPENAPI = "openapi.json"
"""The reference, which few requests need, is a file of its own beside the manifest."""

V = TypeVar("V")


class PackedEntry(NamedTuple):
    """An operation in plain values: its ``core.operations.Entry``."""

    name: str
    title: str
    module: str
    tool: str | None
    method: str
    path: str
    scope: str | None
    audience: tuple[str, ...]


class Manifest(NamedTuple):
    """Where everything is that modules declare, in the order of declaration.

    ``digest`` is that of the sources it was made from; ``operations`` are packed entries of the
    registry, ``tools`` the definitions of tools as JSON; ``jobs`` and ``nouns`` name modules.
    """

    digest: str
    operations: tuple[PackedEntry, ...] = ()
    tools: Mapping[str, bytes] = {}
    jobs: Mapping[str, str] = {}
    nouns: Mapping[str, str] = {}


@cache
def manifest() -> Manifest:
    """Return the package's manifest; an empty one where there is none, and all is to be imported.

    Outside of Lambda, sources may have changed since: then it does not count.
    """
    if find_spec("chalicelib.manifest") is None:
        return Manifest("")
    made = Manifest(*import_module("chalicelib.manifest").MANIFEST)
    made = made._replace(operations=tuple(map(PackedEntry._make, made.operations)))
    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ or made.digest == digest_of(sources()):
        return made
    return Manifest("")


def openapi() -> bytes | None:
    """Return the reference that was made with the manifest; None without one."""
    return (PACKAGE / OPENAPI).read_bytes() if manifest().digest else None


def sources() -> Iterator[tuple[str, bytes]]:
    """Yield the package's modules: their names within it, and what is in them."""
    for path in PACKAGE.rglob("*.py"):
        yield path.relative_to(PACKAGE).as_posix(), path.read_bytes()


def digest_of(files: Iterable[tuple[str, bytes]]) -> str:
    """Return the digest of a package's modules, but for the manifest itself."""
    from hashlib import sha256  # noqa: PLC0415  functions do not ask

    whole = sha256()
    for name, content in sorted(files):
        if name != MODULE:
            whole.update(f"{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()


class Declarations(Mapping[str, V]):
    """What modules declare by name when they are imported.

    Those that the manifest names are there before, and imported when they are asked for.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.modules = dict(modules)
        """The module of each, in the order of declaration."""
        self._declared: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        """Return what is declared by a name; its module is imported."""
        module = self.modules[name]
        if name not in self._declared:
            import_module(module)
        return self._declared[name]

    def __contains__(self, name: object) -> bool:
        """Tell whether a name is declared; nothing is imported."""
        return name in self.modules

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the order of declaration; nothing is imported."""
        return iter(list(self.modules))

    def __len__(self) -> int:
        """Return how many names are declared."""
        return len(self.modules)

    def declare(self, name: str, value: V, module: str) -> None:
        """Add what a module declares.

        Raises:
            ValueError: the name is taken.
        """
        if name in self._declared or self.modules.setdefault(name, module) != module:
            msg = f'"{name}" is declared twice, in {module} and in {self.modules[name]}'
            raise ValueError(msg)
        self._declared[name] = value
