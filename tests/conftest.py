"""Fixtures that every test may use, such as an empty database, a clock and clients of the API."""

import atexit
import gc
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from time import time as real_time
from typing import Any

_MEMORY = Path("/dev/shm")  # noqa: S108  mkdtemp creates a folder of our own there
"""A file system in memory, on Linux. On a disk, files and folders take half of a test's time."""


def _folder_of_objects() -> str:
    """Create a folder for the objects of this process, in memory if there is room."""
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2**29
    return tempfile.mkdtemp(prefix="objects-", dir=_MEMORY if roomy else None)


_OBJECTS = _folder_of_objects()
atexit.register(shutil.rmtree, _OBJECTS, ignore_errors=True)
os.environ.update(
    AWS_DEFAULT_REGION="eu-central-1",
    AWS_ACCESS_KEY_ID="test",
    AWS_SECRET_ACCESS_KEY="test",
    AWS_EC2_METADATA_DISABLED="true",
    STAGE="test",
    RATE_LIMIT_SCALE="1000",
    OBJECT_STORE=f"file://{_OBJECTS}",
    BARCODE_SOURCES="off",
    PHOTO_SOURCE="off",
)
for name in (
    "AWS_ENDPOINT_URL_DYNAMODB",
    "DYNAMODB_ENDPOINT",
    "AWS_CHALICE_CLI_MODE",
    "AWS_PROFILE",
    "AI_DRAFTS_PER_DAY",
    "ALLOWED_HOSTS",
    "ALLOWED_ORIGINS",
    "BEDROCK_PROFILE",
    "CHAT_URL",
    "DEMO_BALANCE",
    "DEMO_WORD_SECONDS",
    "DENY_OTHER_ORIGINS",
    "EDGE_SECRET",
    "EDGE_SECRET_PREVIOUS",
    "EVENTS_QUEUE_URL",
    "LLM_PROVIDER",
    "LLM_BASE_URL",
    "LLM_API_KEY",
    "LLM_API_KEY_SECRET",
    "LLM_MODEL",
    "LLM_UNKNOWN_CONTEXT",
    "LLM_UNKNOWN_OUTPUT",
    "LOG",
    "MASTER_KEY",
    "MASTER_KEY_SECRET",
    "MAIL",
    "MAIL_FOLDER",
    "MAIL_FROM",
    "MAIL_SES_CONFIGURATION_SET",
    "MAIL_SMTP",
    "PAYMENTS_LIVE",
    "PRODUCT_NAME",
    "PUBLIC_URL",
    "SITES_DOMAIN",
    "SITE_HOSTS",
    "SMS",
    "SMS_ACCOUNT",
    "SMS_FOLDER",
    "SMS_KEY",
    "SMS_KEY_SECRET",
    "SMS_SENDER",
    "SMS_TEST",
    "SMS_URL",
    "STREAM_HANDLER",
    "STRIPE_URL",
    "TABLE_PREFIX",
    "WEBHOOKS_TO_LOOPBACK",
    "YOOKASSA_URL",
    "SIGN_UP",
    "SIGN_UP_COUNTRIES",
    "SIGN_UP_PLAN",
    "SUPPORT_URL",
    "TELEGRAM_BOT_TOKEN",
    "TELEGRAM_BOT_TOKEN_SECRET",
    "TELEGRAM_LINKS",
    "TELEGRAM_URL",
):
    os.environ.pop(name, None)

import pytest
from chalice.config import Config
from chalice.test import TestHTTPClient
from moto import mock_aws

import app as application
from chalicelib.application.invoke import invoke
from chalicelib.core import clock, deadline, retry
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Role, SessionPrincipal, VisitorPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.flows import visitor_shares
from chalicelib.domains.identity.rules import passwords
from chalicelib.domains.identity.store import accounts, key_errors, workspaces
from chalicelib.domains.identity.store.key_errors import KEY_ERRORS
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.sites.store import sites
from chalicelib.engine import metrics, tables, visitors, workspace_currency
from chalicelib.engine.connection import connection
from chalicelib.engine.events import subscriptions
from chalicelib.gateways import dns, llm, master_key
from chalicelib.gateways.llm import observed_limits
from chalicelib.gateways.object_store import object_store
from infra.local import quick_moto, receptionist
from infra.operator import admin
from tests.factories.examples import Things
from tests.fakes.internet import authority, net, trusting  # noqa: F401  fixtures
from tests.fakes.max_messenger import max_bot  # noqa: F401  a fixture
from tests.fakes.open_facts import open_facts  # noqa: F401  a fixture
from tests.fakes.openverse import openverse  # noqa: F401  a fixture
from tests.fakes.sms import smsru, twilio  # noqa: F401  fixtures
from tests.fakes.telegram import telegram  # noqa: F401  a fixture
from tests.support import (
    aws_calls,
    effort,  # noqa: F401  it loads the profile of Hypothesis
    memory,
    run_clock,
    selection,
    service_descriptions,
)
from tests.support.declared_errors import _declares_its_errors, _undeclared_errors  # noqa: F401  fixtures
from tests.support.loopback import _loopback_only  # noqa: F401  a fixture
from tests.support.patience import PATIENCE
from tests.support.policy_check import PolicyCheck
from tests.support.restoring import Snapshots, delete_all_rows, moto_tables

ALL_SCOPES = ["*:read", "*:write", *(scope for scope in Scope if scope.by_name)]
PASSWORD = "correct horse"
"""Password of every owner."""
SETTINGS = settings()
NEW_OBJECTS = 20_000
"""Number of new objects after which Python looks for cycles among them."""
OBJECTS = Path(SETTINGS.object_store.removeprefix("file://"))

FOR_GOOD = {"N": str(2**62)}
"""Expiry time of rows that never expire."""

E2E = Path(__file__).parent / "e2e"
collect_ignore = ["clients"]
"""These suites need an environment of their own; run ``make test-clients``."""

aws_calls.install()
receptionist.install()
service_descriptions.share()
memory.return_large_blocks()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(PolicyCheck())
    run_clock.start(config)
    if config.getoption("--update-snapshots") and config.getoption("numprocesses", 0):
        raise pytest.UsageError(
            "--update-snapshots writes files that other tests read: run it without -n."
        )
    if chosen := config.getoption("--operations"):
        selection.choose(chosen.split(","))


def pytest_report_header(config: pytest.Config) -> str:
    return run_clock.header(config)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--dynamodb-local", action="store_true", help="use DynamoDB Local instead of moto"
    )
    parser.addoption(
        "--update-snapshots",
        action="store_true",
        help="record the files that tests compare with, and run no other tests (make update)",
    )
    parser.addoption(
        "--operations",
        default="",
        help="leave out the tests of each other operation or scope: create_x,list_x (make quick)",
    )
    parser.addoption(
        "--clock",
        type=run_clock.clock_name,
        default="now",
        help="start the service's clock at an odd moment: weekend, night, …, or drawn by the seed",
    )


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Start one worker more than there are cores, unless the environment names the number.

    For a sixth of their time, tests wait for threads, servers and processes of their own.
    """
    count = yield
    return count if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else count + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import the browser tests if the run leaves them out."""
    left_out = "not e2e" in config.option.markexpr and collection_path == E2E
    return True if left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if left_out := set(selection.left_out(config, items)):
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def update_snapshots(request: pytest.FixtureRequest) -> bool:
    """Whether a test records what it otherwise compares with a committed file."""
    return bool(request.config.getoption("--update-snapshots"))


def pytest_sessionstart() -> None:
    """Disable garbage collection during test collection, which keeps all its objects."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Enable garbage collection again, and exclude everything that was collected so far.

    Almost all objects of a test end without a cycle. Looking for cycles as often as Python usually
    does took an eighth of the suite's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 10, 10)
    gc.enable()


@pytest.fixture(scope="session")
def is_dynamodb_local(request: pytest.FixtureRequest) -> bool:
    """True if this run uses DynamoDB Local, whose capacity units and conflicts are real."""
    return bool(request.config.getoption("--dynamodb-local"))


@pytest.fixture(scope="session", autouse=True)
def _quick_moto() -> None:
    quick_moto.make_quick()
    quick_moto.skip_http()
    quick_moto.skip_ec2()


@pytest.fixture(scope="session", autouse=True)
def _cheap_passwords() -> None:
    """Use the cheapest password hashing, since its strength is not tested here."""
    from argon2 import PasswordHasher

    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    passwords.hasher = lambda: cheap


@pytest.fixture
def reload_settings() -> Iterator[Callable[[], None]]:
    """Let a test change the environment. Yields a function that makes the process read it again."""
    environ_before = dict(os.environ)

    def forget() -> None:
        for read in (settings, object_store, llm._provider, master_key._source):
            read.cache_clear()

    yield forget
    os.environ.clear()
    os.environ.update(environ_before)
    forget()


@pytest.fixture(autouse=True)
def _settings_are_restored() -> Iterator[None]:
    """Fail the test that leaves changed settings behind, instead of a later test."""
    yield
    assert settings() == SETTINGS


@pytest.fixture
def large_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a visitor book without a proof more often than other limits allow."""
    for name in ("UNPROVED", "UNPROVED_OF_CONTACT"):
        limit = replace(getattr(visitor_shares, name), max_requests=100)
        monkeypatch.setattr(visitor_shares, name, limit)


@pytest.fixture(autouse=True)
def _no_observed_limits() -> Iterator[None]:
    """Forget what servers of models have refused."""
    yield
    observed_limits.forget()


@pytest.fixture(scope="session")
def _server(is_dynamodb_local: bool) -> Iterator[Callable[[], None]]:
    """The database of the session. Yields a function that empties it."""
    if is_dynamodb_local:
        from infra.local import dynamodb

        server = dynamodb.start(None, in_memory=True)
        os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = server.endpoint
        tables.ensure_tables()

        yield delete_all_rows
        server.stop()
        return
    with mock_aws():
        tables.ensure_tables()

        def clear() -> None:
            for table in moto_tables().values():
                table.items.clear()

        yield clear


@pytest.fixture
def database(_server: Callable[[], None]) -> Iterator[None]:
    """An empty database and an empty object store."""
    yield
    _server()
    metrics.clear_value_cache()
    subscriptions.forget()
    workspace_currency.forget()
    sites.forget_products_urls()
    visitors.forget()
    key_errors.forget()
    for entry in OBJECTS.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)


@pytest.fixture
def empty_database(_server: Callable[[], None]) -> Callable[[], None]:
    """A function that empties the database in the middle of a test."""
    return _server


def all_rows() -> dict[str, Any]:
    """Return all rows of all tables by key, except expired ones on DynamoDB Local.

    Failed calls of keys are left out: a refused call changes nothing, but is listed.
    """
    return drop_expired(
        {
            f"{table}/{item['pk']['S']}/{item['sk']['S']}": item
            for table, row in tables.TABLES.items()
            for item in _rows_of(row.Meta.table_name)
            if KEY_ERRORS not in item["pk"]["S"]
        }
    )


def _rows_of(table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table in DynamoDB's JSON. Rows of moto need no request."""
    if "AWS_ENDPOINT_URL_DYNAMODB" in os.environ:
        yield from connection().client.scan(TableName=table)["Items"]
        return
    for partition in moto_tables()[table].items.values():
        for row in partition.values():
            yield quick_moto.attributes_of(row)


def drop_expired(rows: dict[str, Any]) -> dict[str, Any]:
    """Drop the rows that DynamoDB Local has removed by now, or is about to remove."""
    removed_before = real_time() if "AWS_ENDPOINT_URL_DYNAMODB" in os.environ else 0
    return {
        key: item
        for key, item in rows.items()
        if int(item.get("expires", FOR_GOOD)["N"]) > removed_before
    }


@dataclass
class Answer:
    """A response of the API."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The data inside the envelope."""
        return json.loads(self.body)["data"]


class _Client(TestHTTPClient):
    """Chalice's test client without its changes to the environment.

    The base class swaps in the stage's variables during each request. Concurrent requests would
    leave them swapped.
    """

    __test__ = False

    @contextmanager
    def _patched_env_vars(self, environment_variables: object) -> Iterator[None]:
        yield


_client = _Client(application.app, Config.create())


class Api:
    """The API as a caller with one key uses it, through Chalice's test client."""

    def __init__(self, token: str | None) -> None:
        self.token = token

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send a request. ``bytes`` are sent unchanged; anything else is sent as JSON."""
        sent_headers = dict(headers or {})
        if self.token is not None:
            sent_headers.setdefault("Authorization", f"Bearer {self.token}")
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        if raw:
            sent_headers.setdefault("Content-Type", "application/json")
        response = _client.request(method, path, headers=sent_headers, body=raw)
        return Answer(response.status_code, dict(response.headers), response.body)

    def get(self, path: str, **headers: str) -> Any:
        """Send a GET request that must succeed, and return the data inside the envelope."""
        return self._ok(self.call("GET", path, headers=headers))

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """Send a POST request that must succeed, with an idempotency key if one is given."""
        headers = {"Idempotency-Key": key} if key else {}
        return self._ok(self.call("POST", path, {} if body is None else body, headers))

    def call_refused(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request that must fail, and return its failure envelope."""
        answer = self.call(method, path, body, headers)
        assert answer.status >= 400, answer.body
        assert answer.data["status"] is False
        return answer

    def tool(self, tool: str, /, **arguments: Any) -> tuple[bool, Any]:
        """Call a tool. Return whether it failed, and its text."""
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result = json.loads(self.call("POST", "/api/mcp", message).body)["result"]
        return result["isError"], json.loads(result["content"][0]["text"])

    @staticmethod
    def _ok(answer: Answer) -> Any:
        assert answer.status == 200, answer.body
        assert answer.data["status"] is True
        return answer.data


_numbers = itertools.count()


def call_operator(operation: str, /, **arguments: Any) -> Any:
    """Run an operation as the platform's operator, and return the data inside the envelope."""
    return admin.call(operation, arguments)


@dataclass
class Owner:
    """A workspace with its owner, who can create keys and sign in."""

    workspace: WorkspaceRow

    def token(self, scopes: list[str] | None = None, expires_at: datetime | None = None) -> str:
        """Create a key, and return its token."""
        return call_operator(
            "create_key",
            workspaceId=self.workspace.id,
            name="test",
            scopes=scopes or ALL_SCOPES,
            **({"expires": expires_at.isoformat()} if expires_at else {}),
        )["token"]

    def api(self, *scopes: str) -> Api:
        """Return the API through a new key with these scopes; with all scopes by default."""
        return Api(self.token(list(scopes)))

    def start_session(self) -> str:
        """Start a console session of the owner, and return its token."""
        email = accounts.get(self.workspace.owner_id).email
        reply = invoke(
            REGISTRY["sign_in"],
            VisitorPrincipal(visitor="owner"),
            lambda: {"email": email, "password": PASSWORD},
            request_id="test",
        )
        return str(json.loads(reply.body)["data"]["token"])


def call_console(
    workspace_id: str,
    operation: str,
    /,
    *,
    account_id: str = "somebody",
    membership: str = "owner",
    own_resource: str = "",
    key: str | None = None,
    typed_password: str = PASSWORD,
    **arguments: Any,
) -> Any:
    """Run an operation as a user of the console, and return the data inside the envelope.

    ``typed_password`` confirms what a thief of the session would want.

    ``own_resource`` is the member of the staff that the account is. Operations for ADMIN accounts
    are run as such an account.
    """
    scope = REGISTRY[operation].scope
    if account_id == "somebody" and REGISTRY[operation].confirm is not None:
        account_id = workspaces.get(workspace_id).owner_id
    person = SessionPrincipal(
        role="admin" if scope and scope.admin_only else "user",
        account_id=account_id,
        workspace_id=workspace_id,
        plan="business",
        membership=Role(membership),
        resource_id=own_resource,
        password=typed_password,
    )
    with aws_calls.entered(aws_calls.API):
        reply = invoke(
            REGISTRY[operation], person, lambda: arguments, request_id="r", idempotency_key=key
        )
    data = json.loads(reply.body)["data"]
    assert data.pop("status") is True
    return data


@pytest.fixture
def new_owner(database: None) -> Callable[..., Owner]:
    """Return a function that creates a new workspace with its own owner."""

    def make(
        plan: str = "business",
        role: str = "user",
        timezone: str = "Europe/Moscow",
        name: str = "Other workspace",
    ) -> Owner:
        email = f"owner{next(_numbers)}@example.com"
        call_operator("create_account", email=email, password=PASSWORD, role=role)
        workspace = call_operator(
            "create_workspace", owner=email, name=name, plan=plan, timezone=timezone
        )
        return Owner(workspaces.get(workspace["workspaceId"]))

    return make


@pytest.fixture
def tester(owner: Owner) -> Owner:
    """A test workspace of the owner."""
    email = accounts.get(owner.workspace.owner_id).email
    made = call_operator("create_workspace", owner=email, name="Tests", isTest=True)
    return Owner(workspaces.get(made["workspaceId"]))


@pytest.fixture(scope="session")
def snapshots(is_dynamodb_local: bool) -> Snapshots:
    """Snapshots of data that is created once and restored for each test that requests it."""
    return Snapshots(OBJECTS, is_local=is_dynamodb_local)


@pytest.fixture
def _owner_with_a_key(new_owner: Callable[..., Owner], snapshots: Snapshots) -> tuple[str, str]:
    """Return ids and a token with every scope of a Business workspace, the same in each test."""

    def make() -> tuple[str, str]:
        # The data is dated long before any test's own time, whichever test runs first.
        with clock.using(lambda: datetime(2026, 1, 1, tzinfo=UTC)):
            # Its slug is the same even if a test has made another workspace before.
            owner = new_owner(role="admin", name="Workspace")
            return owner.workspace.id, owner.token()

    token_and_id: tuple[str, str] = snapshots.once("owner", make)
    return token_and_id


@pytest.fixture
def owner(_owner_with_a_key: tuple[str, str]) -> Owner:
    """A workspace on the Business plan."""
    return Owner(workspaces.get(_owner_with_a_key[0]))


@pytest.fixture
def api(_owner_with_a_key: tuple[str, str]) -> Api:
    """The API through a key with every scope."""
    return Api(_owner_with_a_key[1])


@pytest.fixture
def things(api: Api, _owner_with_a_key: tuple[str, str], snapshots: Snapshots) -> Things:
    """One record of every type in the workspace of ``api``. The key has been used before."""

    def make() -> Things:
        # The records are as old as the run, whatever clock the test that comes first has set.
        with clock.using(run_clock.now):
            return Things.made_with(api)

    things: Things = snapshots.once(f"things of {_owner_with_a_key[0]}", make)
    return things


@pytest.fixture
def make_key(new_owner: Callable[..., Owner]) -> Callable[..., str]:
    """Return a function that creates a key of a new workspace."""

    def make(scopes: list[str] | None = None, plan: str = "business", role: str = "user") -> str:
        return new_owner(plan, role).token(scopes)

    return make


def run_concurrently(count: int, call: Callable[[int], Any]) -> list[Any]:
    """Call a function from many threads that start together. Return their results, in order.

    The threads share one interpreter and a busy machine. On AWS each request has its own process,
    to which the service's time limits apply. Here these limits would make the result depend on the
    machine's load, so they are raised.
    """
    barrier = Barrier(count)

    def wait_and_call(number: int) -> Any:
        barrier.wait()
        return call(number)

    with pytest.MonkeyPatch.context() as limits, ThreadPoolExecutor(count) as pool:
        limits.setattr(retry, "HIGH_CONTENTION_SECONDS", PATIENCE)
        limits.setattr(deadline, "REQUEST_SECONDS", PATIENCE)
        return list(pool.map(wait_and_call, range(count)))


@pytest.fixture(autouse=True)
def _calendar_of_examples_is_unreachable() -> Iterator[None]:
    """Find no address of the own calendar that the example of ``create_busy_calendar`` names."""
    real = dns.lookup_addresses

    def lookup(host: str, *rest: Any, **options: Any) -> Any:
        return [] if host == "calendar.google.com" else real(host, *rest, **options)

    # A test's own ``monkeypatch`` has to end before ``_settings_are_restored`` looks.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dns, "lookup_addresses", lookup)
        yield


@pytest.fixture(autouse=True)
def txt_records(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str] | None]:
    """TXT records of a fake DNS, by host. None stands for a host whose lookup fails."""
    records: dict[str, set[str] | None] = {}

    def lookup(host: str) -> frozenset[str]:
        host_records = records.get(host, set())
        if host_records is None:
            raise dns.DnsUnavailableError
        return frozenset(host_records)

    monkeypatch.setattr(dns, "lookup_txt", lookup)
    return records


class Time:
    """A stopped clock that tests can move."""

    def __init__(self) -> None:
        self.now = datetime(2027, 1, 15, 12, 0, tzinfo=UTC)

    def pass_by(self, **length: float) -> None:
        """Move the clock: ``pass_by(hours=25)``."""
        self.now += timedelta(**length)


@pytest.fixture
def real_clock() -> Iterator[None]:
    """The real time, with which a library of others compares."""
    with clock.using(lambda: datetime.now(UTC)):
        yield


@pytest.fixture
def time() -> Iterator[Time]:
    """A stopped clock. The time of the run may have been later before."""
    stopped = Time()
    subscriptions.forget()
    workspace_currency.forget()
    sites.forget_products_urls()
    with clock.using(lambda: stopped.now):
        yield stopped
