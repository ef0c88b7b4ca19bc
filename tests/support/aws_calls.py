"""Records the AWS calls of the service while the suite runs, and the function that makes each.

Each Lambda function is known by the entry point through which its code runs. Calls outside every
entry point belong to the operator or to the tests. In the suite, objects are kept in folders and
models are embedded. For these, two facts are recorded: that a function needs the gateway, and the
AWS calls that the gateway makes in its own tests with S3, Bedrock, CloudFront or SES.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from threading import Thread
from typing import Any, NamedTuple

from botocore import handlers

from chalicelib.core.jobs import Queue
from chalicelib.domains.mails.flows import mail_feedback
from chalicelib.engine import jobs
from chalicelib.engine.events import wake
from chalicelib.gateways import (
    master_key,
    object_store,
    site_hosts,
    sms,
    telegram,
)
from chalicelib.gateways.llm import api_key, demo
from chalicelib.gateways.mail import folder, ses
from chalicelib.transports import chalice_app
from chalicelib.transports.chat import chat_stream
from infra.deploy import policies
from infra.operator import admin

API, JOBS, EVENTS, CHAT = "api_handler", "run-jobs", "run-events", "chat-stream"
"""The functions, by their names in .chalice/config.json."""
PLACE = policies.Target("eu-central-1", "123456789012")
BUCKET = "objects"
MODELS = "models"
MODEL_KEY = f"arn:aws:secretsmanager:{PLACE.region}:{PLACE.account}:secret:llm-api-key-AbCdEf"
KEYS = "master-key"
MASTER_KEY = f"arn:aws:secretsmanager:{PLACE.region}:{PLACE.account}:secret:master-key-AbCdEf"
TELEGRAM_TOKEN = (
    f"arn:aws:secretsmanager:{PLACE.region}:{PLACE.account}:secret:telegram-bot-token-AbCdEf"
)
SMS_KEY = f"arn:aws:secretsmanager:{PLACE.region}:{PLACE.account}:secret:sms-key-AbCdEf"
HOSTS = "hosts"
RUNNERS = {Queue.MAIN: JOBS, Queue.EVENTS: EVENTS}
"""The functions that run the jobs of each queue."""
WAKES = "wakes"
"""Gateway name of the messages that wake the runner of events."""
TELEGRAM = "telegram"
SMS = "sms"
MAIL = "mail"
KIND = "jobs"
"""Gateway name of the job handlers. The rights are complete once every kind of job has run."""
OBJECT = "{object}"
"""Stands for an object's key until the function that requested the object is known."""
STORE_METHODS = (
    *("put", "get", "size", "delete", "delete_under", "upload_request", "download_url"),
    *("begin_parts", "put_part", "complete_parts", "abort_parts"),
)


class Right(NamedTuple):
    """An IAM action, and the ARN of its resource."""

    action: str
    resource: str


class Gateway(NamedTuple):
    """A gateway's name, and the requested key; for objects, the key without ids."""

    name: str
    key: str = ""


class Use(NamedTuple):
    """A right that a function or a gateway has used."""

    who: str
    need: Right | Gateway


USES: dict[Use, str] = {}
"""The rights used, and the test that used each first."""

_who: ContextVar[str | None] = ContextVar("who", default=None)


def install() -> None:
    """Record from now on in this process, before any AWS client is created."""
    handlers.BUILTIN_HANDLERS.append(("provide-client-params", _note))
    _enter(API, chalice_app.App, "__call__")
    _enter_runners()
    _enter(EVENTS, mail_feedback, "receive")
    _record_gateway_use(KIND, jobs, "attempt", lambda job, *_: job.kind)
    _enter(CHAT, chat_stream, "handle")
    _enter(CHAT, chat_stream.EventStream, "__next__")
    _enter(CHAT, chat_stream.EventStream, "close")
    _enter(None, admin, "call")
    for method in STORE_METHODS:
        _record_gateway_use(f"objects.{method}", object_store.FolderStore, method, _ignore_ids)
        _enter(f"objects.{method}", object_store.S3Store, method)
    _record_gateway_use(MODELS, demo.DemoModel, "stream")
    _enter(MODELS, api_key.SecretKey, "__call__")
    _record_gateway_use(KEYS, master_key.LocalKey, "__call__")
    _enter(KEYS, master_key.StoredKey, "__call__")
    for method in ("serve", "release"):
        _record_gateway_use(HOSTS, site_hosts.LocalHosts, method)
        _enter(HOSTS, site_hosts.CloudFrontHosts, method)
    _record_gateway_use(WAKES, wake, "wake")
    _enter(WAKES, wake.WakeQueue, "send_message")
    _record_gateway_use(TELEGRAM, telegram, "_token")
    _enter(TELEGRAM, telegram, "value_of")
    _record_gateway_use(SMS, sms, "_key")
    _enter(SMS, sms, "value_of")
    _record_gateway_use(MAIL, folder, "send")
    _enter(MAIL, ses, "send")
    _follow_threads()


@contextmanager
def entered(who: str | None) -> Iterator[None]:
    """Run a block as a function or a gateway, or as neither."""
    token = _who.set(who)
    try:
        yield
    finally:
        _who.reset(token)


def _enter(who: str | None, owner: Any, name: str) -> None:
    """Make a callable the entry point of a function or a gateway."""
    _wrap(owner, name, lambda _: entered(who))


def _enter_runners() -> None:
    """Make the runs of jobs the entry points of the functions that run each queue."""
    run = jobs.run

    @wraps(run)
    def entering(*args: Any, queue: Queue = Queue.MAIN, **options: Any) -> dict[str, int]:
        with entered(RUNNERS[queue]):
            return run(*args, queue=queue, **options)

    jobs.run = entering


def _record_gateway_use(
    gateway: str, owner: Any, name: str, key: Callable[..., str] = lambda *_: ""
) -> None:
    """Record that the running function needs the gateway.

    ``key`` receives the callable's arguments.
    """

    @contextmanager
    def asking(args: tuple[Any, ...]) -> Iterator[None]:
        if (who := _who.get()) is not None:
            _record(who, Gateway(gateway, key(*args)))
        yield

    _wrap(owner, name, asking)


def _wrap(
    owner: Any, name: str, wrapper: Callable[[tuple[Any, ...]], AbstractContextManager[None]]
) -> None:
    inner = getattr(owner, name)

    @wraps(inner)
    def wrapped(*args: Any, **options: Any) -> Any:
        with wrapper(args):
            return inner(*args, **options)

    setattr(owner, name, wrapped)


def _follow_threads() -> None:
    """Attribute what a function leaves to a thread to that function.

    Threads of a pool outlive the call that started them, so each task of a pool is attributed.
    """
    start, submit = Thread.start, ThreadPoolExecutor.submit

    def follow(thread: Thread) -> None:
        if (who := _who.get()) is not None:
            thread.run = partial(_run_as, who, thread.run)
        start(thread)

    def follow_task(pool: Any, task: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return submit(pool, _run_as, _who.get(), partial(task, *args, **options))

    Thread.start = follow
    ThreadPoolExecutor.submit = follow_task


def _run_as(who: str | None, run: Callable[[], Any]) -> Any:
    with entered(who):
        return run()


def _note(params: dict[str, Any], model: Any, **_: Any) -> None:
    """Record a request that botocore sends."""
    service = model.service_model.service_name
    who = MODELS if service == "bedrock-runtime" else _who.get()
    if who is not None:
        for right in rights(service, model.name, params):
            _record(who, right)


def _record(who: str, need: Right | Gateway) -> None:
    use = Use(who, need)
    if use not in USES:
        USES[use] = os.environ.get("PYTEST_CURRENT_TEST", "no test").partition(" ")[0]


def _ignore_ids(_: object, key: str, *__: object) -> str:
    """Return the key without the parts that differ between workspaces and files."""
    first, second, *_ = key.split("/")
    return "files/-" if first == "files" else f"-/{second}/-"


def rights(service: str, operation: str, params: dict[str, Any]) -> Iterator[Right]:
    """Yield the rights that an AWS request needs (Service Authorization Reference).

    Raises:
        KeyError: the operation is not supported here yet.
    """
    if service == "dynamodb":
        here = f"arn:aws:dynamodb:{PLACE.region}:{PLACE.account}:table/"
        for action, table in _dynamodb(operation, params):
            yield Right(f"dynamodb:{action}", here + table)
    elif service == "s3":
        for action, resource in _S3[operation]:
            yield Right(f"s3:{action}", f"arn:aws:s3:::{resource}")
    elif (service, operation) == ("secretsmanager", "GetSecretValue"):
        yield Right("secretsmanager:GetSecretValue", params["SecretId"])
    elif (service, operation) == ("sqs", "SendMessage"):
        name = params["QueueUrl"].rpartition("/")[2]
        yield Right("sqs:SendMessage", f"arn:aws:sqs:{PLACE.region}:{PLACE.account}:{name}")
    elif service == "cloudfront":
        yield from _CLOUDFRONT[operation]
    elif (service, operation) == ("sesv2", "SendEmail"):
        yield from _send_email(params)
    else:
        yield from _BEDROCK[service, operation](params["modelId"])


_WRITES = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}


def _dynamodb(operation: str, params: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield actions, each with its table or index.

    A transaction needs the rights for all its actions, and none for itself (DynamoDB developer
    guide, Using IAM with DynamoDB transactions).
    """
    if operation == "TransactWriteItems":
        for item in params["TransactItems"]:
            for kind, write in item.items():
                yield _WRITES[kind], write["TableName"]
    elif operation == "TransactGetItems":
        for item in params["TransactItems"]:
            yield "GetItem", item["Get"]["TableName"]
    elif operation in {"BatchGetItem", "BatchWriteItem"}:
        for table in params["RequestItems"]:
            yield operation, table
    else:
        index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
        yield operation, params["TableName"] + index


_S3 = {
    "PutObject": [("PutObject", f"{BUCKET}/{OBJECT}")],
    # Without the right to list, an unknown object is answered with 403 instead of 404.
    "GetObject": [("GetObject", f"{BUCKET}/{OBJECT}"), ("ListBucket", BUCKET)],
    "HeadObject": [("GetObject", f"{BUCKET}/{OBJECT}"), ("ListBucket", BUCKET)],
    # Multipart upload and permissions (S3 user guide).
    "CreateMultipartUpload": [("PutObject", f"{BUCKET}/{OBJECT}")],
    "UploadPart": [("PutObject", f"{BUCKET}/{OBJECT}")],
    "CompleteMultipartUpload": [("PutObject", f"{BUCKET}/{OBJECT}")],
    "AbortMultipartUpload": [("AbortMultipartUpload", f"{BUCKET}/{OBJECT}")],
    "DeleteObject": [("DeleteObject", f"{BUCKET}/{OBJECT}")],
    "DeleteObjects": [("DeleteObject", f"{BUCKET}/{OBJECT}")],
    "ListObjectsV2": [("ListBucket", BUCKET)],
}


def _converse_stream(model: str) -> Iterator[Right]:
    """An inference profile leads to models (Bedrock user guide, Prerequisites for inference)."""
    stream = "bedrock:InvokeModelWithResponseStream"
    group, _, name = model.partition(".")
    if group in {"us", "eu", "apac"}:
        model = name
        profile = f"arn:aws:bedrock:{PLACE.region}:{PLACE.account}:inference-profile/{group}.{name}"
        yield Right(stream, profile)
        yield Right("bedrock:GetInferenceProfile", profile)
    yield Right(stream, f"arn:aws:bedrock:{PLACE.region}::foundation-model/{model}")


def _send_email(params: dict[str, Any]) -> Iterator[Right]:
    """An e-mail needs its sender's domain and its configuration set, if any."""
    here = f"arn:aws:ses:{PLACE.region}:{PLACE.account}"
    yield Right("ses:SendEmail", f"{here}:identity/{params['FromEmailAddress'].split('@')[1]}")
    if name := params.get("ConfigurationSetName"):
        yield Right("ses:SendEmail", f"{here}:configuration-set/{name}")


_TENANTS = f"arn:aws:cloudfront::{PLACE.account}:distribution-tenant/-"
_CLOUDFRONT = {
    "CreateDistributionTenant": [
        Right("cloudfront:CreateDistributionTenant", "*"),
        Right("cloudfront:TagResource", _TENANTS),
        # CloudFront requests the certificate in the caller's name.
        Right("acm:RequestCertificate", "*"),
        Right("acm:DescribeCertificate", "*"),
    ],
    **{
        operation: [Right(f"cloudfront:{operation}", _TENANTS)]
        for operation in (
            "DeleteDistributionTenant",
            "GetDistributionTenant",
            "GetManagedCertificateDetails",
            "UpdateDistributionTenant",
        )
    },
}
_BEDROCK = {("bedrock-runtime", "ConverseStream"): _converse_stream}
