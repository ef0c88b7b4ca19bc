"""Idempotency keys.

A repeated call returns the stored response for 24 hours and creates nothing twice.
"""

import json
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import pytest

from chalicelib.application.context import Context
from chalicelib.application.invoke import invoke
from chalicelib.core import retry
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import (
    AlreadyCreatedError,
    ConcurrentUpdateError,
    ConflictError,
    InProgressError,
)
from chalicelib.core.idempotency_keys import fingerprint, split
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY, Registry, operation
from chalicelib.core.principals import ApiKeyPrincipal, Audience
from chalicelib.core.scopes import Scope
from chalicelib.core.unit import IdempotencyRecord
from chalicelib.core.wire.schema import Id, NoInput, Wire
from chalicelib.domains.identity.store import api_keys
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine import idempotency
from chalicelib.engine.unit import UnitOfWork
from chalicelib.transports import rest
from chalicelib.transports.http import HttpRequest, HttpResponse
from tests.conftest import OBJECTS, Api, Owner, Time, all_rows, call_console
from tests.fakes.dynamodb_faults import ALWAYS, failing, unreachable
from tests.support.patience import PATIENCE

CREATE = "/api/projects/create"


def test_the_same_key_and_arguments_replay_the_stored_answer(api: Api) -> None:
    first = api.call("POST", CREATE, {"title": "A", "slug": "a"}, {"Idempotency-Key": "k"})
    repeated = api.call("POST", CREATE, {"slug": "a", "title": "A"}, {"Idempotency-Key": "k"})
    assert repeated.body == first.body
    assert "Idempotency-Replayed" not in first.headers
    assert repeated.headers["Idempotency-Replayed"] == "true"
    assert api.get("/api/projects/list")["pagination"]["total"] == 1


def test_other_arguments_under_the_same_key_are_refused(api: Api) -> None:
    api.post(CREATE, {"title": "A"}, key="k")
    answer = api.call_refused("POST", CREATE, {"title": "B"}, **{"Idempotency-Key": "k"})
    assert (answer.status, answer.data["code"]) == (409, "idempotency_mismatch")


def test_a_key_belongs_to_one_operation(api: Api) -> None:
    site = api.post(CREATE, {"title": "A"}, key="k")["project"]["id"]
    body = {"projectId": site, "title": "A"}
    page = api.post("/api/pages/create", body, key="k")
    assert api.post("/api/pages/create", body, key="k") == page


def test_orders_of_the_same_name_from_two_integrators_are_separate_calls(owner: Owner) -> None:
    one, two = owner.api(), owner.api()
    first, second = (a.post(CREATE, {"title": "A"}, key="order-1")["project"] for a in (one, two))
    assert first["id"] != second["id"]


def test_the_same_key_of_two_people_is_two_calls(owner: Owner) -> None:
    first, second = (
        call_console(owner.workspace.id, "create_site", account_id=person, key="k", title="A")
        for person in ("ann", "bob")
    )
    assert first["project"]["id"] != second["project"]["id"]


def test_a_replay_works_after_the_created_record_was_deleted(api: Api) -> None:
    first = api.post(CREATE, {"title": "A", "slug": "a"}, key="k")
    api.post("/api/projects/delete", {"id": first["project"]["id"]})
    assert api.post(CREATE, {"title": "A", "slug": "a"}, key="k") == first
    assert api.get("/api/projects/list")["pagination"]["total"] == 0


def test_a_replay_works_even_if_the_call_itself_would_now_fail(api: Api, time: Time) -> None:
    site = api.post(CREATE, {"title": "A"})["project"]["id"]
    body = {"projectId": site, "title": "Home"}
    first = api.post("/api/pages/create", body, key="k")
    api.post("/api/projects/delete", {"id": site})
    assert api.post("/api/pages/create", body, key="k") == first
    assert api.call_refused("POST", "/api/pages/create", body).status == 404
    time.pass_by(hours=24.1)
    assert (
        api.call_refused("POST", "/api/pages/create", body, **{"Idempotency-Key": "k"}).status
        == 404
    )


def test_a_key_is_free_again_after_24_hours(api: Api, time: Time) -> None:
    api.post(CREATE, {"title": "A"}, key="k")
    time.pass_by(hours=23.9)
    api.post(CREATE, {"title": "A"}, key="k")
    assert api.get("/api/projects/list")["pagination"]["total"] == 1
    time.pass_by(hours=0.1)
    api.post(CREATE, {"title": "A"}, key="k")
    assert api.get("/api/projects/list")["pagination"]["total"] == 1
    time.pass_by(seconds=1)
    api.post(CREATE, {"title": "B"}, key="k")
    assert api.get("/api/projects/list")["pagination"]["total"] == 2


def test_the_same_key_in_two_workspaces_does_not_collide(new_owner: Any) -> None:
    one, two = new_owner().api(), new_owner().api()
    first, second = (a.post(CREATE, {"title": "A"}, key="k")["project"] for a in (one, two))
    assert first["id"] != second["id"]


def test_a_failed_call_leaves_its_key_unused(api: Api) -> None:
    api.post(CREATE, {"title": "A", "slug": "taken"})
    body = {"title": "B", "slug": "taken"}
    assert api.call_refused("POST", CREATE, body, **{"Idempotency-Key": "k"}).status == 409
    assert api.post(CREATE, {"title": "C"}, key="k")["project"]["title"] == "C"


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_must_have_1_to_255_characters(api: Api, key: str) -> None:
    answer = api.call_refused("POST", CREATE, {"title": "A"}, **{"Idempotency-Key": key})
    assert answer.status == 400
    assert answer.data["errors"][0]["field"] == "idempotencyKey"


def test_operations_that_are_idempotent_by_themselves_ignore_keys(api: Api) -> None:
    site = api.post(CREATE, {"title": "A"})["project"]["id"]
    for title in ("B", "C"):
        api.post("/api/projects/update", {"id": site, "title": title}, key="k")
    assert api.get("/api/projects/list")["projects"][0]["title"] == "C"


def test_the_field_of_a_key_is_no_key_for_an_operation_that_takes_none() -> None:
    arguments = {"idempotencyKey": "k", "id": "x"}
    assert split(REGISTRY["create_site"], arguments) == ({"id": "x"}, "k")
    assert split(REGISTRY["list_sites"], arguments) == (arguments, None)


def test_a_lost_object_with_an_answer_is_a_failure_of_the_store(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MAX_INLINE_BYTES", 1)
    first = api.post(CREATE, {"title": "A"}, key="k")
    assert api.post(CREATE, {"title": "A"}, key="k") == first
    for answer_file in OBJECTS.glob("*/answers/*.json"):
        answer_file.unlink()
    answer = api.call_refused("POST", CREATE, {"title": "A"}, **{"Idempotency-Key": "k"})
    assert answer.status == 503
    assert api.get("/api/projects/list")["pagination"]["total"] == 1


class MadeResult(Wire):
    """Response of the operation that these tests register."""

    id: Id


class SlowOperation:
    """An operation with an external side effect that the test can block."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.started, self.go_on = Event(), Event()
        self.effects = 0
        self.fails = False

        @operation(
            tool="svc_fetch",
            rest="POST /api/fetch",
            scope=Scope.PROJECTS_WRITE,
            title="Fetch",
            open_world=True,
            registry=self.registry,
        )
        def fetch(ctx: Context, args: NoInput) -> MadeResult:
            """Fetch something."""
            ctx.unit.run_side_effect_once("fetch", self.effect)
            site = SITES.new(ctx.workspace_id, title="x", slug="x", status="active")
            ctx.unit.create(site)
            return MadeResult(id=site.id)

    def effect(self) -> None:
        self.effects += 1
        self.started.set()
        assert self.go_on.wait(PATIENCE)
        if self.fails:
            raise ConflictError("The other side says no.")

    def call(self, owner: Owner, request_id: str) -> Any:
        principal = ApiKeyPrincipal(
            workspace_id=owner.workspace.id,
            account_id=owner.workspace.owner_id,
            plan="business",
            scopes=frozenset(Scope),
            key_id="k",
        )
        return invoke(
            self.registry["fetch"], principal, dict, request_id=request_id, idempotency_key="key"
        )


class Waiting(Wire):
    """Response of a call that waits for something else."""

    mail_sent: bool = True


class Unlucky(Wire):
    """Response of a call that is done, and that looks like one that waits."""

    confirm_by_mail: bool = True


def ask(result: Wire) -> HttpResponse:
    """Invoke an operation that returns ``result`` for a visitor, under one key."""
    registry = Registry()

    @operation(
        rest="POST /api/ask",
        title="Ask",
        audience=(Audience.PUBLIC,),
        platform=True,
        registry=registry,
    )
    def ask(ctx: Context, args: NoInput) -> Unlucky | Waiting:
        """Ask for something."""
        return result  # type: ignore[return-value]

    body = b'{"idempotencyKey": "k"}'
    headers = {"content-type": "application/json"}
    return rest.serve(registry["ask"], HttpRequest("POST", "/api/ask", headers, body=body))


@pytest.mark.parametrize(("result", "status"), [(Waiting(), 202), (Unlucky(), 200)])
@pytest.mark.usefixtures("database")
def test_the_model_of_an_answer_decides_its_status_which_a_replay_repeats(
    result: Wire, status: int
) -> None:
    first, second = ask(result), ask(result)
    assert (first.status, second.status) == (status, status)
    assert second.body == first.body
    assert second.headers["Idempotency-Replayed"] == "true"


@pytest.mark.usefixtures("database")
def test_a_stored_answer_without_a_status_is_that_of_earlier_releases_and_means_200() -> None:
    ask(Unlucky())
    answers = [row for key, row in all_rows().items() if "IDEMPOTENCY" in key]
    assert answers
    assert not any("status" in row for row in answers)
    assert ask(Unlucky()).status == 200


def test_a_second_call_with_a_key_in_flight_is_refused(owner: Owner) -> None:
    fetching, answers = SlowOperation(), []
    first = Thread(target=lambda: answers.append(fetching.call(owner, "one")))
    first.start()
    assert fetching.started.wait(PATIENCE)
    with pytest.raises(InProgressError):
        fetching.call(owner, "two")
    fetching.go_on.set()
    first.join()
    assert fetching.call(owner, "three").body == answers[0].body
    assert fetching.effects == 1


def test_a_failed_external_effect_releases_its_key(owner: Owner) -> None:
    fetching = SlowOperation()
    fetching.go_on.set()
    fetching.fails = True
    with pytest.raises(ConflictError):
        fetching.call(owner, "one")
    fetching.fails = False
    assert fetching.call(owner, "two").replayed is False
    assert fetching.call(owner, "three").replayed is True


def test_a_crashed_call_blocks_its_key_for_two_minutes(owner: Owner, time: Time) -> None:
    fetching = SlowOperation()
    fetching.go_on.set()

    record = IdempotencyRecord("key:k#fetch", "key", fingerprint(NoInput()))
    assert idempotency.mark_in_progress(owner.workspace.id, record, owner="crashed")
    with pytest.raises(InProgressError):
        fetching.call(owner, "one")
    time.pass_by(minutes=2.1)
    assert fetching.call(owner, "two").replayed is False


def test_only_the_call_that_marked_a_key_removes_the_mark(
    owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    tenant, record = owner.workspace.id, IdempotencyRecord("key:k#fetch", "key", "")
    assert idempotency.mark_in_progress(tenant, record, owner="one")
    idempotency.clear_in_progress(tenant, record, owner="another")
    assert idempotency.find(tenant, record) is not None
    idempotency.clear_in_progress(tenant, record, owner="one")
    assert idempotency.find(tenant, record) is None
    assert "a mark stays" not in caplog.text


def test_a_mark_that_cannot_be_removed_is_logged(
    owner: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    tenant, record = owner.workspace.id, IdempotencyRecord("key:k#fetch", "key", "")
    assert idempotency.mark_in_progress(tenant, record, owner="one")
    with failing("DeleteItem", ALWAYS, unreachable):
        idempotency.clear_in_progress(tenant, record, owner="one")
    assert "a mark stays" in caplog.text


@pytest.mark.parametrize("answer", [{"body": b"{}"}, {"object_key": "w/answers/one.json"}])
def test_an_answer_is_no_mark_of_the_call_that_stored_it(
    owner: Owner, answer: dict[str, Any]
) -> None:
    tenant, record = owner.workspace.id, IdempotencyRecord("key:k#fetch", "key", "")
    unit = UnitOfWork(tenant, "one")
    unit.keep(replace(record, **answer))
    unit.commit()
    idempotency.clear_in_progress(tenant, record, owner="one")
    assert idempotency.find(tenant, record) is not None
    # The texts of an answer in an object are not looked through.
    assert len(idempotency.answers_naming(tenant, ["{}"])) == len(answer.keys() & {"body"})


def test_a_replay_does_not_repeat_the_secret_that_the_first_answer_showed(owner: Owner) -> None:
    from chalicelib.core.principals import OperatorPrincipal

    def create() -> dict[str, Any]:
        body = {"workspaceId": owner.workspace.id, "name": "CI", "scopes": ["*:read"]}
        reply = invoke(
            REGISTRY["create_key"],
            OperatorPrincipal(),
            lambda: body,
            request_id=new_id(),
            idempotency_key="once",
        )
        data: dict[str, Any] = json.loads(reply.body)["data"]
        return data

    created = create()
    with pytest.raises(AlreadyCreatedError) as caught:
        create()
    assert caught.value.details == {"keyId": created["keyId"], "scopes": ["*:read"]}
    assert [key.name for key in api_keys.live(owner.workspace.id)].count("CI") == 1
    assert created["token"] not in repr(all_rows())


def test_warnings_of_an_abandoned_attempt_are_dropped(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[None] = []
    registry = Registry()

    @operation(rest="POST /api/try", scope=Scope.PROJECTS_WRITE, title="Try", registry=registry)
    def try_twice(ctx: Context, args: NoInput) -> MadeResult:
        """Fail the first attempt with a conflict."""
        attempts.append(None)
        ctx.warn("Repeated", code=WarningCode.STOCK_CHANGED, id=str(len(attempts)))
        if len(attempts) == 1:
            raise ConcurrentUpdateError
        return MadeResult(id="x")

    monkeypatch.setattr(retry, "sleep", lambda _: None)
    principal = ApiKeyPrincipal(
        workspace_id=owner.workspace.id, plan="business", scopes=frozenset(Scope), key_id="k"
    )
    reply, replay = (
        invoke(registry["try_twice"], principal, dict, request_id="r", idempotency_key="k")
        for _ in range(2)
    )
    (detail,) = json.loads(reply.body)["data"]["warningDetails"]
    assert detail == {"code": "stock_changed", "message": "Repeated", "id": "2"}
    assert (replay.body, replay.replayed) == (reply.body, True)
