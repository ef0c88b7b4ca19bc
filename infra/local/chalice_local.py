"""``chalice local``: what ``app.py`` sets up before it imports the service."""

from infra.local import autoreload


def start() -> None:
    """Watch the sources, provide the local database and its settings, and install our server.

    Called before the service is imported: imports write byte code, which the watcher must not take
    for a change, and the service reads its settings once.
    """
    autoreload.watch_sources()
    from infra.local import dev  # noqa: PLC0415  the watcher comes first

    port = dev.use_local_database()
    from infra.local import devserver  # noqa: PLC0415  the service's modules, after its settings

    devserver.install(port=port)
