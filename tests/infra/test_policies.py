"""What the functions' IAM policies allow: what they need, and nothing of another stage."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from moto.core import DEFAULT_ACCOUNT_ID

import app as application
from chalicelib.flows import charging
from chalicelib.flows.charging import Recovered, Terms, reserve
from chalicelib.rules.pricing import Prices, Usage
from chalicelib.store import accounts, jobs, ledger, tables
from chalicelib.store.connection import connection
from chalicelib.store.products import PRODUCTS
from chalicelib.store.unit import LATE_ENTRIES
from chalicelib.transports import schedules
from infra import policies, stage_config
from tests.conftest import Api, Owner, Time, as_operator

CONFIG = stage_config.load()
PLACE = policies.Place("eu-central-1", "123456789012")
FUNCTIONS = list(policies.FUNCTIONS)

MODELS = {
    "arn:aws:bedrock:*::foundation-model/*",
    "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/*",
}
"""AWS's own, and the profiles of the account that lead to them."""

Allowed = set[tuple[str, str]]
"""Actions with a resource each."""


@pytest.fixture(params=CONFIG["stages"])
def stage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def policy(stage: str, function: str) -> dict[str, Any]:
    facts = stage_config.Facts(bucket=f"workspace-{stage}-objects")
    return policies.policy(stage_config.generate(CONFIG, stage, facts), stage, function, PLACE)


def statements(stage: str, function: str) -> list[dict[str, Any]]:
    return policy(stage, function)["Statement"]


def allowed(stage: str, function: str) -> Allowed:
    return {
        (action, resource)
        for statement in statements(stage, function)
        for action in statement["Action"]
        for resource in statement["Resource"]
    }


def arn(stage: str, table: str) -> str:
    return f"arn:aws:dynamodb:eu-central-1:123456789012:table/workspace-{stage}-{table}"


def actions_on(stage: str, function: str, table: str) -> set[str]:
    return {a for a, resource in allowed(stage, function) if resource == arn(stage, table)}


def test_every_function_of_the_app_has_a_policy_that_chalice_finds() -> None:
    functions = {policies.API, *(each.name for each in application.app.pure_lambda_functions)}
    functions |= {each.name for each in application.app.event_sources}
    assert functions == set(FUNCTIONS)
    assert functions == set(CONFIG["lambda_functions"])
    assert CONFIG["autogen_policy"] is False


@pytest.mark.parametrize("function", FUNCTIONS)
class TestPolicy:
    def test_names_every_table_and_nothing_of_another_stage(
        self, stage: str, function: str
    ) -> None:
        assert all(actions_on(stage, function, table) for table in tables.TABLES)
        names = {r.rpartition(":")[2].partition("/")[2] for _, r in allowed(stage, function)}
        others = set(CONFIG["stages"]) - {stage}
        assert not [name for name in names if any(f"-{other}" in name for other in others)]

    def test_lets_no_audit_record_be_changed_or_deleted(self, stage: str, function: str) -> None:
        audit = actions_on(stage, function, "audit")
        assert "dynamodb:PutItem" in audit
        assert audit <= {"dynamodb:PutItem", "dynamodb:Query"}

    def test_lets_nothing_of_the_ledger_be_deleted(self, stage: str, function: str) -> None:
        assert "dynamodb:DeleteItem" in actions_on(stage, function, "control")
        assert "dynamodb:DeleteItem" not in actions_on(stage, function, "ledger")

    def test_names_every_action_and_what_it_works_on(self, stage: str, function: str) -> None:
        for action, resource in allowed(stage, function):
            assert "*" not in action
            objects, streams = f"arn:aws:s3:::workspace-{stage}-objects/*", ":log-group:/aws/lambda"
            wild = resource == objects or (streams in resource and resource.endswith(":*"))
            wild = wild or resource in MODELS
            assert wild or "*" not in resource

    def test_pins_region_and_account(self, stage: str, function: str) -> None:
        for statement in statements(stage, function):
            if "s3" in statement["Action"][0]:
                condition = {"StringEquals": {"aws:ResourceAccount": "123456789012"}}
                assert statement["Condition"] == condition
            elif statement["Sid"] == "Models":
                assert set(statement["Resource"]) == MODELS
            else:
                assert all(":eu-central-1:123456789012:" in r for r in statement["Resource"])

    def test_writes_only_the_functions_own_log(self, stage: str, function: str) -> None:
        name = f"workspace-api-{stage}" + ("" if function == policies.API else f"-{function}")
        groups = {r.split(":")[6] for a, r in allowed(stage, function) if a.startswith("logs:")}
        assert groups == {f"/aws/lambda/{name}"}

    def test_fits_into_a_role(self, stage: str, function: str) -> None:
        """10,240 characters for all inline policies of a role (IAM quotas)."""
        assert len(json.dumps(policy(stage, function))) < 10_240


def test_scheduled_jobs_neither_write_nor_read_objects(stage: str) -> None:
    objects = {a for a, _ in allowed(stage, "run-jobs") if a.startswith("s3:")}
    assert objects == {"s3:DeleteObject", "s3:ListBucket"}


def test_only_what_asks_models_may(stage: str) -> None:
    asking = {f for f in FUNCTIONS if any(a.startswith("bedrock:") for a, _ in allowed(stage, f))}
    assert asking == {policies.API, "chat-stream"}


def test_the_chat_has_no_objects(stage: str) -> None:
    assert not [a for a, _ in allowed(stage, "chat-stream") if a.startswith("s3:")]


WRITES = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}


def rights(operation: str, request: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the IAM actions that a request to DynamoDB needs, each with the table or index."""
    if operation == "TransactWriteItems":
        for item in request["TransactItems"]:
            ((kind, write),) = item.items()
            yield WRITES.get(kind, "ConditionCheckItem"), write["TableName"]
    elif operation == "BatchGetItem":
        for table in request["RequestItems"]:
            yield operation, table
    else:
        index = f"/index/{request['IndexName']}" if "IndexName" in request else ""
        yield operation, request["TableName"] + index


@contextmanager
def used() -> Iterator[Allowed]:
    """Record the actions that the store's requests need, in the stage dev."""
    seen: Allowed = set()

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        for action, name in rights(model.name, params):
            seen.add((f"dynamodb:{action}", arn("dev", name.removeprefix("workspace-test-"))))

    events = connection().client.meta.events
    events.register("provide-client-params.dynamodb", note)
    try:
        yield seen
    finally:
        events.unregister("provide-client-params.dynamodb", note)


def test_the_policies_suffice(
    owner: Owner, api: Api, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    with used() as by_api:
        site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
        page = api.post("/api/pages/create", {"projectId": site, "title": "Home"})["page"]["id"]
        api.post("/api/pages/save-html", {"id": page, "html": "<h1>Bread</h1>"})
        api.get(f"/api/pages/list?projectId={site}&search=home")
        api.post("/api/projects/delete", {"id": site})
        product = api.post("/api/products/create", {"name": "Bread", "price": 250})["product"]["id"]
    jobs.schedule(
        jobs.row(LATE_ENTRIES, owner.workspace.id, {"records": [f"{PRODUCTS.noun}#{product}"]})
    )
    account = owner.workspace.owner_id
    terms = Terms(account, owner.workspace.id, "bot", "UTC", Prices(10**6, 10**6), "model")
    email = accounts.get(account).email
    paid = {"account": email, "kopecks": 1000, "reason": "x", "idempotencyKey": "k"}
    as_operator("credit", **paid)
    for request_id in ("settled", "released"):
        reserve(terms, request_id, 10, 100)
    usages = {"settled": Usage(10, 5), "released": None}
    monkeypatch.setattr(charging, "_recoveries", [])
    charging.recovers_holds(lambda hold: Recovered(usages[hold.request_id], charging.nothing))
    time.pass_by(days=40)
    with used() as by_jobs:
        schedules.run_jobs()
    assert ledger.wallet(account).available == 1000 - 15
    assert ("dynamodb:Query", arn("dev", "content/index/by_row")) in by_api
    assert by_api <= allowed("dev", policies.API)
    assert ("dynamodb:PutItem", arn("dev", "audit")) in by_jobs
    assert ("dynamodb:UpdateItem", arn("dev", "ledger")) in by_jobs
    assert by_jobs <= allowed("dev", "run-jobs")


class TestWrite:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        (tmp_path / ".chalice").mkdir()
        stage_config.write(tmp_path, "prod", stage_config.Facts(), policies.Place())
        return tmp_path

    def test_leaves_placeholders_until_the_place_is_known(self, project: Path) -> None:
        for function in FUNCTIONS:
            text = (project / ".chalice" / policies.file_name(function)).read_text()
            assert "arn:aws:dynamodb:${AWS::Region}:${AWS::AccountId}:table/workspace-prod-" in text
            assert json.loads(text)["Version"] == "2012-10-17"

    @pytest.mark.usefixtures("database")
    def test_takes_region_and_account_of_whoever_is_signed_in(self, project: Path) -> None:
        for file in policies.write(project, "prod", policies.Place.signed_in()):
            text = file.read_text()
            assert f"arn:aws:dynamodb:eu-central-1:{DEFAULT_ACCOUNT_ID}:table/" in text
            assert "${AWS::" not in text

    def test_says_what_is_missing_without_credentials(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
        with pytest.raises(click.ClickException, match="Sign in to AWS"):
            policies.Place.signed_in()
