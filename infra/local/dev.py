"""The local stack of ``make dev``, and the same database for a ``chalice local`` started by hand.

Every process ends with the process that started it (``infra.local.supervisor``,
``infra.local.database_keeper``), so killing the stack leaves no process behind. The process
``chalice local`` creates the tables and the demo in ``use_local_database``.
"""

import errno
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

import requests

from infra.local import supervisor
from infra.local.demo import bakery
from infra.local.dynamodb import SetupError
from infra.local.stack import (
    ENDPOINT,
    HOST,
    LOCAL_AWS,
    REAL_AWS,
    ROOT,
    LocalStack,
    OpenDatabase,
    database_by_hand,
    open_database,
    record,
    take_folder,
)

__all__ = ["LOCAL_AWS", "banner", "dev", "use_local_database"]

READY_SECONDS = 180
"""Time limit for the first response. Creating tables and demo takes minutes on a busy machine."""
LOOK_SECONDS = 0.5
"""Seconds between checks that the parts of the stack, and the parent ``make``, still run."""


def dev() -> None:
    """Run the stack until Ctrl-C, SIGTERM, the end of the terminal, or the end of ``make``.

    Raises:
        SetupError: a requirement is missing, a resource is in use, or a part ended by itself.
    """
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for name in stops:
        signal.signal(name, signal.default_int_handler)
    parent = os.getppid()
    with ExitStack() as started:
        try:
            stack = LocalStack.from_environment()
            take_folder(stack, started)
            _check_port(stack)
            print("Starting the database …", flush=True)
            database = open_database(stack, started)
            print("Starting the service; the first start makes a demo workspace …", flush=True)
            server = _start_server(stack, database, started)
            _wait_until_healthy(stack, server)
            key = stack.data.demo.get("key", "")
            valid = _status(stack, "/api/workspaces/list", key=key) == HTTPStatus.OK
            print(banner(stack, database, key if valid else None), flush=True)
            # A killed ``make`` sends no signal, but this process gets another parent.
            while "MAKELEVEL" not in os.environ or os.getppid() == parent:
                _check_running(server, database)
                time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            print("\nStopping.", flush=True)
        finally:
            for name in stops:
                signal.signal(name, signal.SIG_IGN)  # The clean-up takes seconds at most.


def use_local_database() -> int:
    """Set up the local database and the settings for ``chalice local``.

    Creates the tables and the demo. ``app.py`` calls it before the settings are read. Returns the
    port to serve on.
    """
    from infra.local.autoreload import command_pid  # noqa: PLC0415  make dev starts without Chalice

    endpoint = os.environ.get(ENDPOINT)
    try:
        stack = LocalStack.from_environment(_port_option(sys.argv[1:]))
        database = (
            OpenDatabase(endpoint, "") if endpoint else database_by_hand(stack, command_pid())
        )
    except SetupError as error:
        print(f"chalice local: {error}", file=sys.stderr, flush=True)
        os._exit(1)  # With autoreload this is not the main thread, which would wait forever.
    for name in REAL_AWS:
        os.environ.pop(name, None)
    for name in ("botocore", "pynamodb"):
        logging.getLogger(name).setLevel(logging.WARNING)  # Chalice shows all loggers' records.
    # Chalice has set the variables of its stage, which the deployed service uses.
    os.environ.update(stack.environment(database.endpoint))

    from chalicelib.engine import tables  # noqa: PLC0415
    from chalicelib.transports.api_docs import reference  # noqa: PLC0415
    from infra.local import logs as local_logs  # noqa: PLC0415
    from infra.local import workarounds  # noqa: PLC0415
    from infra.local.demo.caller import Caller  # noqa: PLC0415
    from infra.local.demo.examples import example_ids  # noqa: PLC0415
    from infra.local.demo.seed import seed  # noqa: PLC0415

    local_logs.configure(stack.data.log)
    if stack.is_patient:
        workarounds.be_patient()
    tables.ensure_tables()
    workarounds.apply(in_turn=stack.is_patient)
    key = seed(stack.data, language=stack.demo_language, records=stack.has_demo_records)
    if key:
        reference.EXAMPLE_IDS.update(example_ids(Caller(key)))
    if not endpoint:
        print(banner(stack, database, key), flush=True)
    return stack.port


def banner(stack: LocalStack, database: OpenDatabase, key: str | None) -> str:
    """Return the addresses and keys that a developer needs to start."""
    sent = "/dev/sms, /dev/telegram, /dev/max, /dev/webhooks and /dev/pay"
    lines = [
        "",
        f"  Base URL  {stack.url}",
        f"  Health    {stack.url}/api/health",
        f"  Data      {database.note}",
        f"  Sent      {stack.url}/dev/mail, {sent}",
        f"  Log       {stack.data.log} (LOG=json shows it here, too)",
    ]
    if key:
        header = f"-H 'Authorization: Bearer {key}'"
        lines += [
            f"  Console   {stack.url}/console",
            *_console_lines(stack),
            *_booking_lines(stack),
            f"  API key   {key}  (the demo workspace, every scope)",
            "",
            "  List the sites:",
            f"    curl {header} '{stack.url}/api/projects/list'",
            "  Create one:",
            f"    curl {header} -H 'Content-Type: application/json' \\",
            f"""      -d '{{"title": "My site"}}' {stack.url}/api/projects/create""",
            "",
            *_chat_lines(stack),
            f"  MCP client config ({stack.url}/api/docs/tool-server has each client's own form):",
            f"    {json.dumps(_mcp_config(stack, key))}",
        ]
    else:
        lines += [
            "  API key   none: the demo is made in an empty database only. Make a key with",
            "            .venv/bin/python -m infra admin create-key (--help says how)",
        ]
    return "\n".join([*lines, "", "  Ctrl-C stops everything.", ""])


def _console_lines(stack: LocalStack) -> list[str]:
    """Return how to sign in to the console, unless an old demo has no password."""
    demo = stack.data.demo
    can_sign_in = "email" in demo and "password" in demo
    if not can_sign_in:
        return []
    lines = [f"            {demo['email']}, password {demo['password']}"]
    if staff := demo.get("staffEmail"):
        lines.append(f"            {staff}, the same password: a member of the staff")
    return lines


def _booking_lines(stack: LocalStack) -> list[str]:
    """Return the address of the demo's booking page."""
    slug = stack.data.demo.get("workspaceSlug")
    return [f"  Booking   {stack.url}/book/{slug}"] if slug else []


def _chat_lines(stack: LocalStack) -> list[str]:
    """Return the address of the page with the demo's bot."""
    agent = stack.data.demo.get("agentId")
    if not agent:
        return []
    question = bakery.load(stack.data.demo["language"]).dialogs[0][0]
    body = json.dumps({"agentId": agent, "message": question}, ensure_ascii=False)
    return [
        "  Talk to the bot, which needs no key:",
        f"    curl -N -H 'Content-Type: application/json' -d '{body}' \\",
        f"      {stack.url}/api/agents/public/chat-stream",
        f"  or on a page: {stack.url}/playground?agent={agent}",
        "",
    ]


def _mcp_config(stack: LocalStack, key: str) -> dict[str, object]:
    server = {
        "type": "http",
        "url": f"{stack.url}/api/mcp",
        "headers": {"Authorization": f"Bearer {key}"},
    }
    return {"mcpServers": {"workspace": server}}


def _check_port(stack: LocalStack) -> None:
    with socket.socket() as probe:
        # Like the server, ignore lingering connections of a stopped one.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, stack.port))
        except OSError as error:
            is_in_use = error.errno == errno.EADDRINUSE
            reason = "another program is using it" if is_in_use else error.strerror
            msg = (
                f"Port {stack.port} cannot be used: {reason}. Stop what is there, or choose"
                " another port: PORT=8001 make dev"
            )
            raise SetupError(msg) from None


def _start_server(
    stack: LocalStack, database: OpenDatabase, started: ExitStack
) -> subprocess.Popen[bytes]:
    chalice = Path(sys.executable).with_name("chalice")
    if not chalice.exists():
        msg = f"{chalice} is missing. Install it: pip install -r requirements-dev.txt"
        raise SetupError(msg)
    options = ["--no-autoreload", "--host", HOST, "--port", str(stack.port), "--stage", "dev"]
    server = supervisor.spawn(
        str(stack.data.path),
        [sys.executable, str(chalice), "--project-dir", str(ROOT), "local", *options],
        env=stack.environment(database.endpoint),
    )
    started.callback(supervisor.stop, server)
    record(stack, database, server=server.pid)
    return server


def _wait_until_healthy(stack: LocalStack, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while _status(stack, "/api/health") != HTTPStatus.OK:
        _check_running(server)
        if time.monotonic() > deadline:
            msg = f"The service did not answer within {READY_SECONDS} seconds; its log is above."
            raise SetupError(msg)
        time.sleep(0.1)


def _status(stack: LocalStack, path: str, *, key: str = "") -> int:
    """Return the HTTP status of a GET request, or 0 without a response."""
    with requests.Session() as session:
        # A proxy of the environment cannot reach this machine's loopback.
        session.trust_env = False
        headers = {"Authorization": f"Bearer {key}"}
        try:
            return session.get(stack.url + path, headers=headers, timeout=10).status_code
        except requests.RequestException:
            return 0


def _check_running(server: subprocess.Popen[bytes], database: OpenDatabase | None = None) -> None:
    status = server.poll()
    if status is not None:
        msg = f"chalice local ended by itself (exit {status}); the reason is above."
        raise SetupError(msg)
    if database and database.server and not database.server.running:
        raise SetupError(
            "The database ended by itself. What was acknowledged is kept: start again."
        )


def _port_option(arguments: list[str]) -> str | None:
    """Return the port in the arguments of ``chalice local``, if any."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if word == "--port":
            return following
        if word.startswith("--port="):
            return word.partition("=")[2]
    return None
