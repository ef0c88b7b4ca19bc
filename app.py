"""The Chalice application with the routes of the registry, the scheduled functions and the chat."""

import gc
import os
from typing import Any

# Imported objects are kept, and searching these for garbage takes an eighth of a cold start.
gc.disable()

if os.environ.get("AWS_CHALICE_CLI_MODE") == "true" and os.path.isdir("infra"):  # noqa: PTH112  cheap
    from infra.deploy import chalice_commands

    chalice_commands.start()

from chalicelib.lib import precompiled

precompiled.use()

from chalice.app import Rate

from chalicelib.transports import routes

app = routes.create()


@app.schedule(Rate(1, unit=Rate.MINUTES), name="run-jobs")
def run_jobs(event: Any) -> dict[str, int]:  # noqa: ANN401, ARG001  Chalice's event
    """Finish cascades and purge what has expired."""
    from chalicelib.transports import scheduled_functions  # noqa: PLC0415  the other function has no use for it

    return scheduled_functions.run_jobs()


def run_events(event: Any, context: Any) -> dict[str, Any]:  # noqa: ANN401, ARG001  Lambda's
    """Send events.

    The schedule calls this each minute, and the queue as soon as it has messages. Reports on e-mail
    arrive here, too, from a queue of their own.
    """
    from chalicelib.transports import scheduled_functions  # noqa: PLC0415  as above

    return scheduled_functions.run_events(event)


# Lambda calls the function itself. Chalice's wrapper accepts only the events of a schedule.
app.schedule(Rate(1, unit=Rate.MINUTES), name="run-events")(run_events)


@app.lambda_function(name="chat-stream")
def chat_stream(event: Any, context: Any) -> dict[str, Any]:  # noqa: ANN401, ARG001  Lambda's
    """Respond to the bot chat with a whole body.

    Lambda calls this only without ``stream_bootstrap``.
    """
    from chalicelib.transports.chat import function_url, stream_runtime  # noqa: PLC0415  hardly ever

    return function_url.buffered(event, stream_runtime.handler())


# The collector skips frozen objects, so later collections do not visit the imported modules.
gc.freeze()
# The modules of the first request make as many objects. A search among them finds no garbage.
gc.set_threshold(50_000)
gc.enable()
