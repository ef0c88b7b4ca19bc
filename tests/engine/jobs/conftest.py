"""Stored jobs, and a worker that runs them."""

from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Any

import pytest

from chalicelib.core.jobs import JobKind
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from chalicelib.engine.unit import UnitOfWork

WORKSPACE = "w1"


class Worker:
    """A job handler that records its calls."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.tried: list[str] = []
        self.fails: Callable[[str], bool] = lambda _: False
        self.lock = Lock()

    def __call__(self, job: jobs.JobRow) -> None:
        name = job.payload["name"]
        with self.lock:
            self.tried.append(name)
        if self.fails(name):
            raise OSError("no luck")
        with self.lock:
            self.done.append(name)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def stage(name: str, due_at: datetime | None = None, kind: str = "tidy") -> jobs.JobRow:
    unit = UnitOfWork(WORKSPACE, "test")
    job = jobs.row(JobKind(kind), WORKSPACE, {"name": name}, due_at, job_id=name)
    unit.create(job)
    unit.commit()
    return job


def cancel(job: jobs.JobRow) -> None:
    unit = UnitOfWork(WORKSPACE, "test")
    unit.delete(job)
    unit.commit()


def rows() -> int:
    return sum(jobs.JobRow.count(jobs._partition(shard)) for shard in range(jobs.SHARDS))


def spoil(job: jobs.JobRow, **attributes: dict[str, Any] | None) -> None:
    """Corrupt a stored job: set invalid attributes, or remove some."""
    client, table = connection().client, jobs.JobRow.Meta.table_name
    key = {"pk": {"S": job.pk}, "sk": {"S": job.sk}}
    item = client.get_item(TableName=table, Key=key)["Item"] | attributes
    item = {name: value for name, value in item.items() if value is not None}
    client.put_item(TableName=table, Item=item)
