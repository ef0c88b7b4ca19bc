"""A stage whose functions run from the unpacked zip, and its jobs."""

import email
import json
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import default
from itertools import product
from pathlib import Path
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.ses.models import ses_backends

from chalicelib.core.jobs import JOB_HANDLERS, Queue
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork
from tests.conftest import OBJECTS, Api, Owner, call_console, call_operator
from tests.domains.events.conftest import receiver, world  # noqa: F401  fixtures
from tests.domains.notifications.clients import book
from tests.domains.notifications.inbox import Inbox
from tests.domains.sites.test_site_domains import Records
from tests.factories.event_triggers import World
from tests.factories.examples import Things
from tests.factories.payments import MERCHANT
from tests.factories.salon import Salon
from tests.fakes import JsonServer, ReceivedRequest
from tests.fakes.lambda_process import Lambda
from tests.infra.deploy.conftest import FUNCTION
from tests.support import aws_calls
from tests.support.database_over_http import endpoint  # noqa: F401  a fixture

BUCKET = aws_calls.BUCKET
AS_ON_AWS = {
    "OBJECT_STORE": f"s3://{BUCKET}",
    "MAIL": "ses",
    "SIGN_UP": "open",
    "SIGN_UP_COUNTRIES": "GB RU",
    "SUPPORT_URL": "mailto:help@example.com",
    "MAIL_FROM": "mail@notify.example.com",
    "MASTER_KEY": "0123456789abcdef0123456789abcdef",
    "SITE_HOSTS": "cloudfront:E1/cg_1/d1.cloudfront.net",
}
SCHEDULE = {
    "version": "0",
    "id": "1",
    "account": "1",
    "region": "eu-central-1",
    "resources": [],
    "source": "aws.events",
    "detail-type": "Scheduled Event",
    "detail": {},
    "time": "2027-01-15T12:00:00Z",
}
NOON = "2027-03-03T12:00:00Z"


class KilledError(BaseException):
    """The end of a process. No handler of the service catches it."""


class SesInbox(Inbox):
    """The messages that moto's SES has accepted."""

    @property
    def mails(self) -> list[EmailMessage]:
        messages = ses_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].sent_messages
        return [email.message_from_string(message.raw_data, policy=default) for message in messages]


class WebhookReceiver(JsonServer):
    """A receiver of webhooks on loopback, which accepts all."""

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:
        return 200, {}

    @property
    def events(self) -> list[Any]:
        return [json.loads(request.body) for request in self.requests]


@dataclass
class Stage:
    """A workspace with one record of every type, on a stage that runs the zip."""

    world: World
    inbox: SesInbox
    txt_records: Records
    endpoint: str
    task: Path
    python: str
    variables: dict[str, str]
    reload_settings: Callable[[], None]

    @property
    def api(self) -> Api:
        return self.world.api

    @property
    def owner(self) -> Owner:
        return self.world.owner

    @property
    def things(self) -> Things:
        return self.world.things

    @property
    def workspace_id(self) -> str:
        return self.world.workspace_id

    def patch(self, owner: object, name: str, value: object) -> None:
        """Change the process that creates a row, for the length of the test."""
        self.world.monkeypatch.setattr(owner, name, value)

    def run(self, handler: str, event: dict[str, Any] = SCHEDULE) -> dict[str, Any]:
        """Run a handler in a fresh process. Returns the jobs done, by kind."""
        with Lambda(self.task, self.python, self.variables) as process:
            outcome = process.run(handler, event, self.world.time.now)
        return {kind: count for kind, count in outcome.items() if count}

    def use_local_stack(self, **variables: str) -> None:
        """Give this process and the zip's the variables of a developer's machine."""
        variables |= {
            "OBJECT_STORE": f"file://{OBJECTS}",
            "AWS_ENDPOINT_URL_DYNAMODB": self.endpoint,
        }
        for name in FUNCTION:
            del self.variables[name]
        self.variables |= variables
        os.environ |= variables
        self.reload_settings()

    def use_test_merchant(self) -> None:
        """Let the workspace take payments at the test merchant, whose payments are local files."""
        self.use_local_stack()
        call_operator("set_platform_merchant", **MERCHANT)
        call_console(self.workspace_id, "set_merchant", **MERCHANT, vatCode="1")

    def webhook(self, server: WebhookReceiver, *types: str) -> str:
        """Create a webhook on loopback, and return its id.

        The service sends there only on a developer's machine, so the process gets the variables of
        one. Its modules still come from the zip.
        """
        self.use_local_stack(WEBHOOKS_TO_LOOPBACK="1")
        url = f"{server.url}/events"
        webhook = call_operator(
            "create_webhook", workspaceId=self.workspace_id, url=url, events=[*types]
        )
        return str(webhook["webhook"]["id"])


def object_keys() -> set[str]:
    """Return the keys of all objects."""
    return set(s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET].keys)


def waiting_jobs(*kinds: str) -> list[JobRow]:
    """Return the waiting jobs of some kinds, or of all."""
    places = [jobs._partition(shard, queue) for queue, shard in product(Queue, range(jobs.SHARDS))]
    jobs_found = [job for place in places for job in JobRow.query(place)]
    return [job for job in jobs_found if job.kind in kinds or not kinds]


def delete_all_jobs_except(kept_jobs: Collection[JobRow]) -> None:
    """Delete all jobs but some, so that no other kind imports a module that these need."""
    for job in waiting_jobs():
        if job.sk not in {job.sk for job in kept_jobs}:
            job.delete()


def run_jobs_here(*kinds: str) -> None:
    """Run the jobs of some kinds in this process, to get the jobs that follow."""
    for kind in kinds:
        for job in waiting_jobs(kind):
            JOB_HANDLERS[kind](job)
            jobs.remove_finished(job)


def killed_before_commit(stage: Stage, call: Callable[[], object]) -> None:
    """Run a call in a process that is killed before its commit."""

    def die(*_: object) -> None:
        raise KilledError

    with stage.world.monkeypatch.context() as killed, suppress(KilledError):
        killed.setattr(UnitOfWork, "commit", die)
        call()


def book_noon(stage: Stage) -> str:
    booking_id: str = book(Salon.opened(stage.api), NOON)["booking"]["id"]
    return booking_id
