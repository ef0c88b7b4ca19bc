"""Deploying a stage half-way, back and away: on moto, but for the edge."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from chalicelib.core import clock
from chalicelib.engine.tables import TABLES
from infra.deploy import published_settings, releases
from infra.deploy.aws import chalice_state
from infra.deploy.aws.store import Store
from infra.deploy.deployment import DeployOptions
from infra.deploy.destruction import destroy
from infra.deploy.lock import LockedError, locked
from infra.deploy.operator_choices import OperatorChoices
from tests.infra.conftest import REGION, Aws, Killed, QuickChalice, commit, new_checkout

pytestmark = pytest.mark.slow
BUCKET = "workspace-dev-123456789012-eu-central-1"
API, CHAT = "workspace-api-dev", "workspace-api-dev-chat-stream"
Deploy = Callable[..., dict[str, Any]]


@pytest.fixture
def deploy(aws: Aws, chalice: QuickChalice, checkout: Path) -> Deploy:
    def deploy(
        root: Path = checkout, *, allow_dirty: bool = False, **choices: str
    ) -> dict[str, Any]:
        aws.said.clear()
        return aws.deployment(root).deploy(DeployOptions("dev", choices, allow_dirty))

    return deploy


@pytest.fixture
def store(aws: Aws) -> Store:
    return Store(aws.account, BUCKET)


def code(aws: Aws) -> bytes:
    return aws.code_of(API)


def is_whole(aws: Aws, store: Store, result: dict[str, Any]) -> bool:
    """Whether one API, three functions and the release are there, and the lock is not."""
    functions = aws.client("lambda").list_functions()["Functions"]
    return (
        aws.apis() == [result["apiId"]]
        and len(functions) == 3
        and releases.current(store) == result["release"]
        and store.get("state/lock.json") is None
    )


STEPS = (
    "Stack workspace-api-dev-data", "Tables", "Zip", "Release", "Functions and API",
    "Answers and throttle", "Search texts", "Stack workspace-api-dev-edge-global",
    "Stack workspace-api-dev-edge", "Stack workspace-api-dev-alarms", "Base URL",
)  # fmt: skip


class TestKilled:
    @pytest.mark.parametrize("step", STEPS)
    def test_before_any_step_it_is_finished_by_running_it_again(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store, step: str
    ) -> None:
        stopped = aws.deployment(checkout)

        def say(line: str) -> None:
            if line.startswith(step) and line.endswith("…"):
                raise Killed

        stopped.progress.say = say
        with pytest.raises(Killed):
            stopped.deploy(DeployOptions("dev"))
        assert is_whole(aws, store, deploy())

    @pytest.mark.parametrize("after", ["iam_role", "lambda_function", "rest_api"])
    def test_in_the_midst_of_chalice_nothing_is_made_twice(
        self, aws: Aws, chalice: QuickChalice, deploy: Deploy, store: Store, after: str
    ) -> None:
        chalice.dies_after = after
        with pytest.raises(Killed):
            deploy()
        chalice.dies_after = None
        assert is_whole(aws, store, deploy())

    def test_by_a_signal_it_leaves_a_lock_that_this_machine_takes_over(
        self, aws: Aws, deploy: Deploy, store: Store
    ) -> None:
        result = deploy()
        with locked(store):
            held = store.get_json("state/lock.json")
        store.put_json("state/lock.json", held | {"pid": 2**22 + 1})
        assert deploy()["apiId"] == result["apiId"]

    @pytest.mark.parametrize("after", ["rest_api", "lambda_function", "iam_role"])
    def test_while_it_is_destroyed_the_rest_goes_next_time(
        self, aws: Aws, chalice: QuickChalice, deploy: Deploy, checkout: Path, after: str
    ) -> None:
        deploy()
        chalice.dies_after = f"deleted {after}"
        with pytest.raises(Killed):
            destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        chalice.dies_after = None
        destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert aws.apis() == []
        assert aws.client("lambda").list_functions()["Functions"] == []
        assert aws.client("iam").list_roles()["Roles"] == []


class TestRefusals:
    def test_nothing_is_deployed_that_is_in_no_commit(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        (checkout / "app.py").write_text("app = 3\n")
        with pytest.raises(click.ClickException, match=r"in no commit.*--allow-dirty"):
            deploy()
        assert aws.client("cloudformation").list_stacks()["StackSummaries"] == []
        assert deploy(allow_dirty=True)["release"].endswith("-dirty")

    def test_a_stage_stays_in_its_region(
        self, aws: Aws, deploy: Deploy, checkout: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deploy()
        elsewhere = aws.deployment(checkout)
        elsewhere.account = type(aws.account)(aws.account.id, "us-west-2", aws.account.user)
        for call in (
            lambda: elsewhere.deploy(DeployOptions("dev")),
            lambda: elsewhere.rollback(None, break_lock=False, python=None),
        ):
            with pytest.raises(click.ClickException, match=f"Give --region {REGION}"):
                call()

    def test_what_was_never_deployed_cannot_be_rolled_back_or_destroyed(
        self, aws: Aws, chalice: QuickChalice, checkout: Path
    ) -> None:
        with pytest.raises(click.ClickException, match="dev is not deployed in eu-central-1"):
            aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        with pytest.raises(click.ClickException, match="Run make deploy STAGE=dev"):
            destroy(aws.deployment(checkout), break_lock=False, with_data=False)

    def test_no_to_the_changes_leaves_nothing_behind(
        self, aws: Aws, chalice: QuickChalice, checkout: Path
    ) -> None:
        deployment = aws.deployment(checkout)

        def refuse(changes: list[Any]) -> None:
            assert {change.action for change in changes} == {"Add"}
            raise click.Abort

        deployment.confirm = refuse
        with pytest.raises(click.Abort):
            deployment.deploy(DeployOptions("dev"))
        stacks = aws.client("cloudformation").describe_stacks()["Stacks"]
        assert stacks == []

    def test_another_who_deploys_is_waited_for(
        self, aws: Aws, deploy: Deploy, store: Store
    ) -> None:
        deploy()
        with locked(store):
            for call in (
                deploy,
                lambda: aws.deployment().rollback(None, break_lock=False, python=None),
                lambda: destroy(aws.deployment(), break_lock=False, with_data=False),
            ):
                with pytest.raises(LockedError, match="has been deploying this stage since"):
                    call()

    def test_no_step_begins_once_the_lock_was_taken_over(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        deploy()
        deployment = aws.deployment(checkout)
        say = deployment.progress.say

        def break_it(line: str) -> None:
            say(line)
            if line == "Zip …":
                theirs = store.get_json("state/lock.json") | {"run": "another"}
                store.put_json("state/lock.json", theirs)
                deployment.progress.before_step.__self__.renew()  # type: ignore[attr-defined]

        aws.said.clear()
        deployment.progress.say = break_it
        with pytest.raises(LockedError, match="taken over"):
            deployment.deploy(DeployOptions("dev"))
        assert "Release …" not in aws.said


class TestRollback:
    def test_the_release_before_comes_back_with_what_is_known_now(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        first = deploy()
        before = code(aws)
        commit(checkout, "app = 2\n")
        second = deploy()
        assert code(aws) != before
        secrets = aws.client("secretsmanager")
        secrets.put_secret_value(SecretId="workspace-api/dev/llm-api-key", SecretString="sk-2")
        result = aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        assert code(aws) == before
        assert result == first
        assert is_whole(aws, store, first)
        about = aws.client("lambda").get_function_configuration(FunctionName=CHAT)
        assert about["Environment"]["Variables"]["LLM_API_KEY"] == "sk-2"
        assert about["Environment"]["Variables"]["PUBLIC_URL"] == "https://d1.cloudfront.example"
        # And forth again, from a machine that has neither.
        elsewhere = aws.deployment(new_checkout(checkout.parent / "other"))
        assert elsewhere.rollback(second["release"], break_lock=False, python=None) == second
        assert code(aws) != before

    def test_after_a_rollback_the_next_deployment_folds_search_texts_again(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        def jobs() -> int:
            items = aws.client("dynamodb").scan(TableName="workspace-dev-control")["Items"]
            return sum(item.get("kind") == {"S": "refold"} for item in items)

        def next_day() -> datetime:
            return datetime.now(UTC) + timedelta(days=1)

        deploy()
        assert jobs() == 1  # of the platform: there is no workspace yet
        deploy()
        assert jobs() == 1
        commit(checkout, "app = 2\n")
        deploy()
        aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        with clock.using(next_day):
            deploy()
        assert jobs() == 2

    def test_after_a_deployment_that_was_killed_it_is_the_one_that_ran(
        self, aws: Aws, chalice: QuickChalice, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        commit(checkout, "app = 2\n")
        second = deploy()["release"]
        before = code(aws)
        commit(checkout, "app = 3\n")
        chalice.dies_after = "lambda_function"
        with pytest.raises(Killed):
            deploy()
        assert code(aws) != before
        for _ in range(2):  # The first is killed, too.
            with suppress(Killed):
                back = aws.deployment(checkout).rollback(None, break_lock=False, python=None)
            chalice.dies_after = None
        assert back["release"] == second
        assert code(aws) == before

    def test_one_that_was_killed_is_finished_by_another(
        self, aws: Aws, chalice: QuickChalice, deploy: Deploy, checkout: Path
    ) -> None:
        releases = [deploy()["release"]]
        for number in (2, 3):
            commit(checkout, f"app = {number}\n")
            releases.append(deploy()["release"])
        chalice.dies_after = "lambda_function"
        with pytest.raises(Killed):
            aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        chalice.dies_after = None
        back = aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        assert back["release"] == releases[1]

    def test_a_release_is_found_by_its_commit(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        first = deploy()
        name = first["release"].rpartition("-")[2]
        assert releases.find(store, name[:8]).id == first["release"]
        deploy()
        with pytest.raises(click.ClickException, match="Several releases are"):
            releases.find(store, name)
        with pytest.raises(click.ClickException, match='No release is "cafe"'):
            releases.find(store, "cafe")

    def test_there_must_be_one_before(self, aws: Aws, deploy: Deploy, checkout: Path) -> None:
        deploy()
        with pytest.raises(click.ClickException, match="no release before the one that runs"):
            aws.deployment(checkout).rollback(None, break_lock=False, python=None)

    def test_old_releases_go_but_never_the_one_that_runs(
        self, deploy: Deploy, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old = deploy()["release"]
        monkeypatch.setattr(releases, "KEPT", 1)
        now = clock.now()
        with clock.using(lambda: now + timedelta(minutes=1)):
            new = deploy()["release"]
        assert [each.id for each in releases.listed(store)] == [new]
        assert store.get(f"releases/{old}/deployment.zip") is None


class TestDomains:
    def test_a_domain_is_the_base_url_from_the_start(self, aws: Aws, deploy: Deploy) -> None:
        result = deploy(domain="api.example.com", sites_domain="sites.example")
        assert result["baseUrl"] == "https://api.example.com"
        for function in (API, CHAT):
            about = aws.client("lambda").get_function_configuration(FunctionName=function)
            assert about["Environment"]["Variables"]["PUBLIC_URL"] == "https://api.example.com"
            assert about["Environment"]["Variables"]["SITES_DOMAIN"] == "sites.example"
        assert published_settings.published(aws.account, "dev")["SITES_DOMAIN"] == "sites.example"

    def test_records_are_named_that_no_zone_of_ours_gets(self, deploy: Deploy) -> None:
        result = deploy(
            domain="api.example.com", sites_domain="sites.example", sites_hosted_zone="Z1"
        )
        led = {"type": "CNAME", "value": "d1.cloudfront.example"}
        assert result["records"] == [{"name": "api.example.com", **led}]
        result = deploy(sites_hosted_zone="")
        assert [each["name"] for each in result["records"]] == [
            "api.example.com",
            "*.sites.example",
        ]

    def test_one_that_was_killed_between_its_stacks_is_finished_whole(
        self, aws: Aws, deploy: Deploy
    ) -> None:
        deploy()
        with killed_before(aws, "Stack workspace-api-dev-edge …"):
            deploy(domain="api.example.com", hosted_zone="Z1")
        assert deploy()["baseUrl"] == "https://api.example.com"
        for stack in ("edge-global", "edge"):
            given = aws.deployment().stack(stack).parameters()
            assert (given["Domain"], given["HostedZoneId"]) == ("api.example.com", "Z1")

    def test_an_empty_one_takes_it_away_again(self, aws: Aws, deploy: Deploy) -> None:
        deploy(domain="api.example.com", sites_domain="sites.example")
        assert deploy()["baseUrl"] == "https://api.example.com"
        assert deploy(domain="", sites_domain="")["baseUrl"] == "https://d1.cloudfront.example"
        about = aws.client("lambda").get_function_configuration(FunctionName=CHAT)
        assert about["Environment"]["Variables"]["PUBLIC_URL"] == "https://d1.cloudfront.example"
        assert "SITES_DOMAIN" not in about["Environment"]["Variables"]
        assert "SITES_DOMAIN" not in published_settings.published(aws.account, "dev")


class TestDestroy:
    def test_leaves_the_data_and_says_so(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        deploy()
        store.put_json("files/a", "of a visitor")
        left = destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert f"AWS::S3::Bucket {BUCKET}" in left["kept"]
        assert "AWS::DynamoDB::Table workspace-dev-content" in left["kept"]
        assert aws.apis() == []
        assert aws.client("lambda").list_functions()["Functions"] == []
        assert "workspace-dev-ledger" in aws.client("dynamodb").list_tables()["TableNames"]
        assert store.get_json("files/a") == "of a visitor"
        assert published_settings.published(aws.account, "dev") == {}

    def test_what_comes_next_finds_the_data(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        deploy()
        store.put_json("files/a", "of a visitor")
        destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert is_whole(aws, store, deploy())
        assert store.get_json("files/a") == "of a visitor"

    def test_with_the_data_nothing_is_left_but_backups(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        left = destroy(aws.deployment(checkout), break_lock=False, with_data=True)
        assert left["kept"] == []
        assert len(left["backups"]) == 6
        assert aws.client("dynamodb").list_tables()["TableNames"] == []
        assert aws.client("s3").list_buckets()["Buckets"] == []
        assert aws.client("secretsmanager").list_secrets()["SecretList"] == []
        told = [line for line in aws.said if "its deletion protection is off" in line]
        assert len(told) == 6
        backups = aws.client("dynamodb").list_backups()["BackupSummaries"]
        assert {each["BackupArn"] for each in backups} == set(left["backups"])

    def test_what_was_deployed_by_hand_beside_it_stays(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        other = aws.client("apigateway").create_rest_api(name="workspace-api")["id"]
        destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert aws.apis() == [other]


class TestRestoredTables:
    def test_have_the_functions_until_they_are_led_back(self, aws: Aws, deploy: Deploy) -> None:
        deploy()
        restore(aws)
        deploy(table_prefix="restored")
        deploy()
        assert (
            prefix(aws)
            == published_settings.published(aws.account, "dev")["TABLE_PREFIX"]
            == "restored"
        )
        assert allowed(aws) == {"restored"}
        assert "workspace-dev-ledger" in aws.client("dynamodb").list_tables()["TableNames"]
        deploy(table_prefix="workspace")
        assert (prefix(aws), allowed(aws)) == ("workspace", {"workspace"})

    def test_have_them_also_after_a_deployment_that_was_killed(
        self, aws: Aws, deploy: Deploy
    ) -> None:
        deploy()
        restore(aws)
        with killed_before(aws, "Stack workspace-api-dev-edge-global"):
            deploy(table_prefix="restored")
        assert published_settings.published(aws.account, "dev")["TABLE_PREFIX"] == "restored"
        deploy()
        assert (prefix(aws), allowed(aws)) == ("restored", {"restored"})

    def test_have_them_again_after_a_destruction_that_leaves_and_names_them(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        restore(aws)
        deploy(table_prefix="restored")
        left = destroy(aws.deployment(checkout), break_lock=False, with_data=False)
        assert "AWS::DynamoDB::Table restored-dev-ledger" in left["kept"]
        deploy()
        assert prefix(aws) == "restored"
        left = destroy(aws.deployment(checkout), break_lock=False, with_data=True)
        assert len(left["kept"]) == 6
        assert all(":Table restored-dev-" in each for each in left["kept"])

    def test_become_as_safe_as_those_of_the_stack(self, aws: Aws, deploy: Deploy) -> None:
        deploy()
        restore(aws)
        deploy(table_prefix="restored")
        dynamodb = aws.client("dynamodb")
        for name in ("restored-dev-control", "workspace-dev-control"):
            assert dynamodb.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]
            backups = dynamodb.describe_continuous_backups(TableName=name)
            recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
            assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
            ttl = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
            assert ttl == {"AttributeName": "expires", "TimeToLiveStatus": "ENABLED"}
        deploy()
        assert not [line for line in aws.said if line.startswith("  restored-dev-")]

    def test_must_all_be_there(self, aws: Aws, deploy: Deploy) -> None:
        deploy()
        restore(aws)
        aws.client("dynamodb").delete_table(TableName="restored-dev-audit")
        with pytest.raises(click.ClickException, match="There is no restored-dev-audit, or it is"):
            deploy(table_prefix="restored")
        assert prefix(aws) == "workspace"
        deploy()
        assert prefix(aws) == "workspace"

    def test_may_be_worked_with_by_releases_of_before_and_after(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        restore(aws)
        commit(checkout, "app = 2\n")
        later = deploy(table_prefix="restored")["release"]
        aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        assert (prefix(aws), allowed(aws)) == ("restored", {"restored"})
        deploy(table_prefix="workspace")
        aws.deployment(checkout).rollback(later, break_lock=False, python=None)
        assert (prefix(aws), allowed(aws)) == ("workspace", {"workspace"})


def prefix(aws: Aws) -> str:
    about = aws.client("lambda").get_function_configuration(FunctionName=API)
    return str(about["Environment"]["Variables"]["TABLE_PREFIX"])


def allowed(aws: Aws) -> set[str]:
    """Return the prefixes of the tables that a function may work with."""
    policy = aws.client("iam").get_role_policy(RoleName=CHAT, PolicyName=CHAT)["PolicyDocument"]
    return set(re.findall(r":table/(\w+)-dev-", json.dumps(policy)))


def restore(aws: Aws) -> None:
    """Make what a restoration makes of the stage's tables: the same keys, and no settings."""
    client = aws.client("dynamodb")
    for name in TABLES:
        about = client.describe_table(TableName=f"workspace-dev-{name}")["Table"]
        indexes = [
            {part: index[part] for part in ("IndexName", "KeySchema", "Projection")}
            for index in about.get("LocalSecondaryIndexes", ())
        ]
        client.create_table(
            TableName=f"restored-dev-{name}",
            KeySchema=about["KeySchema"],
            AttributeDefinitions=about["AttributeDefinitions"],
            BillingMode="PAY_PER_REQUEST",
            **({"LocalSecondaryIndexes": indexes} if indexes else {}),
        )


@contextmanager
def killed_before(aws: Aws, step: str) -> Iterator[None]:
    """Have a deployment killed before a step."""

    class Deadly(list[str]):
        def append(self, line: str) -> None:
            if line.startswith(step) and line.endswith("…"):
                raise Killed

    said, aws.said = aws.said, Deadly()
    try:
        with pytest.raises(Killed):
            yield
    finally:
        aws.said = said


def test_functions_that_are_kept_from_running_stay_so(
    aws: Aws, deploy: Deploy, checkout: Path
) -> None:
    assert deploy()["stopped"] == []
    functions = aws.client("lambda")
    every = (API, CHAT, "workspace-api-dev-run-jobs")

    def runs() -> list[int | None]:
        found = [functions.get_function_concurrency(FunctionName=name) for name in every]
        return [each.get("ReservedConcurrentExecutions") for each in found]

    assert runs() == [None, None, 1]
    for name in every:
        functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    assert deploy()["stopped"] == ["api_handler", "chat-stream", "run-jobs"]
    assert runs() == [0, 0, 0]
    assert any("Kept from running" in line for line in aws.said)
    aws.deployment(checkout).rollback(None, break_lock=False, python=None)
    assert runs() == [0, 0, 0]
    for name in every:
        functions.delete_function_concurrency(FunctionName=name)
    assert deploy()["stopped"] == []
    assert runs() == [None, None, 1]


def test_what_a_newer_checkout_has_kept_stops_no_older_one(
    aws: Aws, deploy: Deploy, checkout: Path, store: Store
) -> None:
    first = deploy(domain="api.example.com")
    for key in ("state/choices.json", f"releases/{first['release']}/release.json"):
        store.put_json(key, store.get_json(key) | {"something": "new"})
    commit(checkout, "app = 2\n")
    assert deploy()["baseUrl"] == "https://api.example.com"
    assert (
        aws.deployment(checkout).rollback(None, break_lock=False, python=None)["release"]
        == (first["release"])
    )


def test_choices_that_an_earlier_version_kept_are_read(deploy: Deploy, store: Store) -> None:
    deploy()
    kept = {"domain": "api.example.com", "alarm_email": "a@example.com"}
    store.put_json("state/choices.json", kept)
    choices = OperatorChoices.of(store)
    assert (choices.domain, choices.alarm_email) == ("api.example.com", "a@example.com")
    assert (choices.sites_domain, choices.table_prefix) == ("", "workspace")


def test_a_state_that_was_lost_is_found_again(aws: Aws, deploy: Deploy, store: Store) -> None:
    result = deploy()
    store.delete(chalice_state.KEY)
    assert deploy()["apiId"] == result["apiId"]
    assert aws.apis() == [result["apiId"]]


def test_several_apis_of_one_function_are_for_people_to_sort_out(
    aws: Aws, chalice: QuickChalice, deploy: Deploy, store: Store
) -> None:
    deploy()
    chalice._api("dev", None)
    store.delete(chalice_state.KEY)
    with pytest.raises(click.ClickException, match="Several REST APIs lead to workspace-api-dev"):
        deploy()
