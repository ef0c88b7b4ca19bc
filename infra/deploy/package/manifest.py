"""Write the manifest of modules and declarations into a copy of the project (ADR 22).

It runs as a script with the packaging Python, which has only the shipped packages. It therefore
imports nothing but the copy.
"""

import sys
from pathlib import Path


def write(project: Path) -> None:
    """Import a copy of the project and write its manifest.

    Raises:
        ValueError: the copy already has a manifest.
    """
    sys.path.insert(0, str(project))
    from pydantic_core import to_json  # noqa: PLC0415  imported from the copy's environment

    from chalicelib.core import jobs, manifest, operations  # noqa: PLC0415

    for name in (manifest.MODULE, manifest.OPENAPI):
        if (manifest.PACKAGE / name).exists():
            msg = f"{manifest.PACKAGE / name} is there already; only a fresh copy gets a manifest."
            raise ValueError(msg)
    operations.load_all()  # first: the manifest keeps the order of imports
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


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
