"""No call acts twice if a response of DynamoDB is lost or late."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.application.context import Context
from chalicelib.application.invoke import invoke
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.operations import Registry, operation
from chalicelib.core.principals import ApiKeyPrincipal
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, NoInput, Wire
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine.connection import connection
from tests.conftest import Api, Owner, Time
from tests.engine.faults.conftest import (
    Change,
    create_product,
    create_site,
    import_page,
    loaf,
    raise_prices,
    upload_file,
)
from tests.fakes.dynamodb_faults import (
    ALWAYS,
    FAULTS,
    TIMES,
    TRANSACTION,
    Fault,
    closed,
    conflict,
    failing,
    faulty,
    refusal,
)
from tests.support.effort import matrix

pytestmark = pytest.mark.store
OFTEN = (1, 3, ALWAYS)


def add_stock(api: Api) -> Change:
    product, now = loaf(api)
    body = {"id": product, "stockDelta": 7}
    expected_added = {100: 0, 107: 1, 114: 2, 121: 3}
    return Change(api, "/api/products/update", body, lambda: expected_added[now()["stock"]])


CHANGES = [create_site, create_product, import_page, raise_prices, add_stock, upload_file]


@matrix("change, fault, when", CHANGES, FAULTS, TIMES)
class TestLostAnswers:
    """Responses that are lost once, three times, or until all retries are used up."""

    def test_lost_answers_of_a_call_with_a_key_are_one_effect_and_one_answer(
        self, change: Callable[[Api], Change], fault: Fault, when: str, api: Api
    ) -> None:
        call = change(api)
        for effect_count, times in enumerate(OFTEN, start=1):
            key = f"order-{times}"
            with faulty(TRANSACTION, fault, when, times):
                first = call.send(key)
            second = call.send(key)
            assert first.status == 200 or (first.status, times) == (503, ALWAYS)
            assert second.status == 200
            assert second.body == (first if first.status == 200 else call.send(key)).body
            assert call.count_effects() == effect_count

    def test_lost_answers_of_a_call_without_a_key_are_at_most_one_effect(
        self, change: Callable[[Api], Change], fault: Fault, when: str, api: Api
    ) -> None:
        call = change(api)
        for effect_count, times in enumerate(OFTEN, start=1):
            with faulty(TRANSACTION, fault, when, times):
                answer = call.send(key=None)
            assert answer.status == (503 if times == ALWAYS else 200)
            assert call.count_effects() == effect_count - ((times, when) == (ALWAYS, "before"))


@pytest.mark.parametrize("change", CHANGES)
def test_a_conflict_after_a_lost_answer_does_not_start_over(
    change: Callable[[Api], Change], api: Api
) -> None:
    call = change(api)
    with faulty(TRANSACTION, closed, "after", 1) as requests:

        def then_conflict(**_: Any) -> None:
            if len(requests) == 2:
                raise conflict()

        events = connection().client.meta.events
        events.register_last(f"before-call.dynamodb.{TRANSACTION}", then_conflict)
        try:
            assert call.send(key=None).status == 200
        finally:
            events.unregister(f"before-call.dynamodb.{TRANSACTION}", then_conflict)
    assert call.count_effects() == 1


def test_a_caller_without_an_answer_learns_that_the_outcome_is_unknown(api: Api) -> None:
    call = create_site(api)
    with faulty(TRANSACTION, closed, "after"):
        answer = call.send(key=None)
    assert (answer.status, answer.data["code"]) == (503, "unavailable")
    assert answer.data["key"] == "outcome_unknown"
    with faulty(TRANSACTION, refusal("ThrottlingException", 400), "before"):
        answer = call.send(key=None)
    assert (answer.status, answer.data["code"]) == (503, "unavailable")
    assert "key" not in answer.data


def test_a_bulk_change_cut_short_continues_under_its_key(api: Api) -> None:
    call = raise_prices(api)
    with faulty(TRANSACTION, refusal("ThrottlingException", 400), "before", 4):
        assert call.send().status == 503
    answer = call.send()
    assert answer.data["summary"] == {"ok": 1, "failed": 0}
    assert call.send().body == answer.body
    assert call.count_effects() == 1


class TestInProgressRecords:
    """Idempotency records of calls that are still running, in operations with external effects."""

    @matrix("fault, when, times", FAULTS, TIMES, [1, 2, ALWAYS])
    def test_a_lost_answer_to_creating_a_record_costs_at_most_one_retry(
        self, fault: Fault, when: str, times: int, api: Api
    ) -> None:
        call = import_page(api)
        with faulty("PutItem", fault, when, times):
            first = call.send()
        assert first.status == (503 if times == ALWAYS else 200)
        assert call.count_effects() == (0 if times == ALWAYS else 1)
        second = call.send()
        assert second.status == 200
        assert call.send().body == second.body
        assert call.count_effects() == 1

    @matrix("fault, when", FAULTS, TIMES)
    def test_a_record_that_cannot_be_removed_hides_no_failure_and_expires(
        self, fault: Fault, when: str, api: Api, time: Time
    ) -> None:
        call = import_page(api)
        site, call.body["projectId"] = call.body["projectId"], "nope"
        with faulty("DeleteItem", fault, when):
            assert call.send().status == 404
        call.body["projectId"] = site
        if when == "before":
            assert call.send().status == 409
            time.pass_by(minutes=2.1)
        assert call.send().status == 200
        assert call.count_effects() == 1


class MadeResult(Wire):
    """Response of the operation that these tests register."""

    id: Id


def test_warnings_of_an_attempt_that_conflicted_are_dropped(owner: Owner) -> None:
    registry, attempts = Registry(), iter(["first", "second", "third"])

    @operation(
        tool=True,
        rest="POST /api/warn",
        scope=Scope.PROJECTS_WRITE,
        title="Warn",
        registry=registry,
    )
    def warn(ctx: Context, args: NoInput) -> MadeResult:
        """Add a warning."""
        ctx.warn(next(attempts), code=WarningCode.STOCK_CHANGED, id="x")
        site = SITES.new(ctx.workspace_id, title="x", slug="x", status="active")
        ctx.unit.create(site)
        return MadeResult(id=site.id)

    principal = ApiKeyPrincipal(
        workspace_id=owner.workspace.id,
        account_id=owner.workspace.owner_id,
        plan="business",
        scopes=frozenset(Scope),
        key_id="k",
    )
    with failing(TRANSACTION, 1, conflict):
        reply = invoke(registry["warn"], principal, dict, request_id="r", idempotency_key="k")
    assert json.loads(reply.body)["data"]["warnings"] == ["second"]
