"""The set-up of ``chalice local``, which ``app.py`` runs before importing the service."""

from infra.local import autoreload


def start() -> None:
    """Watch the sources, provide the local database and its settings, and install the server.

    Call it before the service is imported. Imports write byte code, which the watcher must not
    count as a change, and the service reads its settings once.
    """
    autoreload.watch_sources()
    from infra.local import dev  # noqa: PLC0415  the watcher comes first

    port = dev.use_local_database()
    from infra.local import devserver  # noqa: PLC0415  it imports the service, which needs its settings

    devserver.install(port=port)
