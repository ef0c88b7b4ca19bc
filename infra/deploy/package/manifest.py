"""Write the manifest of a copy of the project: what its modules declare, and where (ADR 22).

It runs with the Python that packages, which has no more than what is shipped; so it is a script,
and imports nothing but the copy.
"""

import sys
from pathlib import Path


def write(project: Path) -> None:
    """Write the manifest of a copy of the project, which is imported.

    Raises:
        ValueError: there is one already.
    """
    sys.path.insert(0, str(project))
    from pydantic_core import to_json  # noqa: PLC0415  found beside the copy

    from chalicelib.core import jobs, manifest, operations  # noqa: PLC0415

    for name in (manifest.MODULE, manifest.OPENAPI):
        if (manifest.PACKAGE / name).exists():
            msg = f"{manifest.PACKAGE / name} is there already; only a fresh copy gets a manifest."
            raise ValueError(msg)
    operations.load_all()  # Before anything else imports a domain, for the order is kept.
    from chalicelib.engine.listing import registry  # noqa: PLC0415
    from chalicelib.transports import tools  # noqa: PLC0415
    from chalicelib.transports.api_docs import openapi  # noqa: PLC0415

    document = to_json(openapi.document())
    made = manifest.Manifest(
        digest=manifest.digest_of(manifest.sources()),
        operations=tuple(entry.packed() for entry in operations.REGISTRY.entries()),
        tools=tools.definitions(),
        jobs=jobs.JOB_HANDLERS.modules,
        nouns=registry.NOUNS.modules,
    )
    head = "What is where, as ``infra.deploy.package.manifest`` found it."
    digest, entries, *others = made
    values = (digest, tuple(map(tuple, entries)), *others)  # plain ones, which need no import
    text = f'"""{head}"""\n\nMANIFEST = {values!r}\n'
    (manifest.PACKAGE / manifest.MODULE).write_text(text)
    (manifest.PACKAGE / manifest.OPENAPI).write_bytes(document)


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve())
