"""Write what packaging knows about modules into a copy of the project (ADR 22).

The manifest has their declarations. A table has the code that the standard library would compile
during their imports. This runs as a script with the packaging Python, which has only the shipped
packages. It therefore imports nothing but the copy.
"""

import marshal
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from re import Pattern, _compiler  # type: ignore[attr-defined]  # absent from the stubs
from types import CodeType, SimpleNamespace
from typing import Any

MARSHAL = 2
"""The last format without references, which would differ from one run to the next."""


def write(project: Path) -> None:
    """Import a copy of the project, and write its manifest and its table of compiled code.

    Raises:
        ValueError: the copy already has a manifest.
    """
    sys.path.insert(0, str(project))
    from chalicelib.lib import precompiled  # noqa: PLC0415  imported from the copy's environment

    table = _record()
    from pydantic_core import to_json  # noqa: PLC0415

    from chalicelib.core import jobs, manifest, operations  # noqa: PLC0415

    written = (manifest.MODULE, manifest.OPENAPI, manifest.LIMITS, manifest.CHANGELOG)
    for name in (*written, precompiled.TABLE.name):
        if (manifest.PACKAGE / name).exists():
            msg = f"{manifest.PACKAGE / name} is there already; only a fresh copy gets a manifest."
            raise ValueError(msg)
    operations.load_all()  # first: the manifest keeps the order of imports
    from chalicelib.core.wire.limits import limits_by_path  # noqa: PLC0415
    from chalicelib.engine.listing import registry  # noqa: PLC0415
    from chalicelib.transports import tools  # noqa: PLC0415
    from chalicelib.transports.api_docs import openapi  # noqa: PLC0415

    document = to_json(openapi.document())
    package_manifest = manifest.Manifest(
        digest=manifest.digest_of(manifest.sources()),
        operations=tuple(entry.packed() for entry in operations.REGISTRY.entries()),
        tools=tools.definitions(),
        jobs=jobs.JOB_HANDLERS.modules,
        nouns=registry.NOUNS.modules,
    )
    head = "What is where, as ``infra.deploy.package.manifest`` found it."
    digest, entries, *others = package_manifest
    values = (digest, tuple(map(tuple, entries)), *others)  # plain values need no import
    text = f'"""{head}"""\n\nMANIFEST = {values!r}\n'
    (manifest.PACKAGE / manifest.MODULE).write_text(text)
    (manifest.PACKAGE / manifest.OPENAPI).write_bytes(document)
    limits = {called.name: dict(limits_by_path(called.input)) for called in operations.REGISTRY}
    (manifest.PACKAGE / manifest.LIMITS).write_bytes(to_json(limits))
    changelog = (project / manifest.CHANGELOG).read_bytes()
    (manifest.PACKAGE / manifest.CHANGELOG).write_bytes(changelog)
    for module in walk_packages([str(manifest.PACKAGE)], "chalicelib."):
        import_module(module.name)
    sorted_table = dict(sorted(table.items(), key=str))
    precompiled.TABLE.write_bytes(marshal.dumps(sorted_table, MARSHAL))


def _record() -> dict[Any, bytes]:
    """Return a table that each source that is compiled from now on is added to, with its code."""
    from chalicelib.lib import precompiled  # noqa: PLC0415  imported from the copy's environment

    table: dict[precompiled.Key, bytes] = {}
    compile_pattern, sre = _compiler.compile, _compiler._sre  # noqa: SLF001  has no public way
    captured: list[Any] = []

    def code(source: str, mode: str) -> CodeType:
        code = precompiled.compiled(source, mode=mode)
        table[source, mode] = marshal.dumps(code, MARSHAL)
        return code

    def pattern(source: str | bytes, flags: int = 0) -> Pattern[Any]:
        compiled: Pattern[Any] = compile_pattern(source, flags)
        all_flags, codes, *groups = captured.pop()
        values = (int(all_flags), list(map(int, codes)), *groups)  # without the types of ``re``
        table[source, int(flags)] = marshal.dumps(values, MARSHAL)
        return compiled

    def capture(source: str | bytes, *values: Any) -> Pattern[Any]:  # noqa: ANN401  private values
        captured.append(values)
        compiled: Pattern[Any] = sre.compile(source, *values)
        return compiled

    _compiler._sre = SimpleNamespace(**{**vars(sre), "compile": capture})  # noqa: SLF001
    precompiled.replace(code, pattern)
    return table


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
