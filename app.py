"""The Chalice application: the registry's routes and the scheduled functions."""

import gc
import os
import sys
from typing import Any

gc.disable()  # What is imported stays: looking for garbage among it is an eighth of a cold start.

SERVING_LOCALLY = os.environ.get("AWS_CHALICE_CLI_MODE") == "true" and "local" in sys.argv
if SERVING_LOCALLY:
    from infra.local import autoreload

    autoreload.watch_sources()  # First of all, because imports write byte code.

from chalice.app import Rate

from chalicelib.core import logs
from chalicelib.core.manifest import manifest
from chalicelib.core.operations import load_all
from chalicelib.core.settings import settings
from chalicelib.transports import chalice_app

logs.configure()
if SERVING_LOCALLY:
    from infra.local.dev import use_local_database

    port = use_local_database()

settings()  # A function without its settings ends here, not at its first request.
if not manifest().digest:
    load_all()
app = chalice_app.App(app_name="workspace-api", configure_logs=False)
chalice_app.mount(app)


@app.schedule(Rate(1, unit=Rate.MINUTES), name="run-jobs")
def run_jobs(event: Any) -> dict[str, int]:  # noqa: ANN401, ARG001  Chalice's event
    """Finish cascades and purge what has expired."""
    from chalicelib.transports import schedules  # noqa: PLC0415  the other function has no use for it

    return schedules.run_jobs()


@app.lambda_function(name="chat-stream")
def chat_stream(event: Any, context: Any) -> dict[str, Any]:  # noqa: ANN401, ARG001  Lambda's
    """Answer the bot chat, whole: only without ``stream_bootstrap`` does Lambda call this."""
    from chalicelib.transports.chat import function_url, stream_runtime  # noqa: PLC0415  hardly ever

    return function_url.buffered(event, stream_runtime.handler())


if SERVING_LOCALLY:
    from infra.local import devserver

    devserver.install(port=port)

gc.freeze()
gc.enable()
