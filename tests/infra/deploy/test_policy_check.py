"""The policy check compares recorded AWS calls with the functions' policies."""

from collections.abc import Callable
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from chalicelib.gateways.object_store import S3Store, object_store
from chalicelib.transports import schedules
from tests.conftest import Api, Owner, call_operator
from tests.factories.chat import ask, new_bot
from tests.support import aws_calls
from tests.support.aws_calls import API, CHAT, EVENTS, JOBS, Gateway, Right, Use, entered, rights
from tests.support.policy_check import PolicyCheck, faults, first_needs, generated, is_whole

TABLES = "arn:aws:dynamodb:eu-central-1:123456789012:table/"
READ = Right("dynamodb:GetItem", TABLES + "workspace-test-identity")
WRITE = Right("dynamodb:PutItem", TABLES + "workspace-test-identity")
TEST = "tests/test_bread.py::test_is_baked"


@pytest.fixture
def recorded_calls(monkeypatch: pytest.MonkeyPatch) -> dict[Use, str]:
    """The calls recorded during the test, separate from the suite's record."""
    uses: dict[Use, str] = {}
    monkeypatch.setattr(aws_calls, "USES", uses)
    return uses


def functions_in(uses: dict[Use, str]) -> set[str]:
    return {use.who for use in uses} - {aws_calls.MODELS}


class TestRecording:
    def test_requests_are_recorded_for_the_api(
        self, api: Api, recorded_calls: dict[Use, str]
    ) -> None:
        api.get("/api/workspaces/list")
        assert functions_in(recorded_calls) == {API}
        test = "TestRecording::test_requests_are_recorded_for_the_api"
        assert recorded_calls[Use(API, READ)] == f"tests/infra/deploy/test_policy_check.py::{test}"

    def test_operator_calls_are_recorded_for_no_function(
        self, owner: Owner, recorded_calls: dict[Use, str]
    ) -> None:
        with entered(API):
            call_operator("set_plan", workspaceId=owner.workspace.id, plan="free")
        assert not recorded_calls

    def test_scheduled_jobs_are_recorded_for_the_job_function(
        self, owner: Owner, recorded_calls: dict[Use, str]
    ) -> None:
        schedules.run_jobs()
        assert functions_in(recorded_calls) == {JOBS}

    def test_jobs_of_events_are_recorded_for_their_own_function(
        self, owner: Owner, recorded_calls: dict[Use, str]
    ) -> None:
        schedules.run_event_jobs()
        assert functions_in(recorded_calls) == {EVENTS}

    def test_chat_is_recorded_for_its_function_to_the_last_event(
        self, owner: Owner, recorded_calls: dict[Use, str]
    ) -> None:
        bot = new_bot(owner)
        recorded_calls.clear()
        ask(bot, "What do you bake?")
        assert functions_in(recorded_calls) == {CHAT}
        assert Use(CHAT, Gateway(aws_calls.MODELS)) in recorded_calls

    def test_threads_are_recorded_for_the_function_that_starts_them(
        self, recorded_calls: dict[Use, str]
    ) -> None:
        with entered(API):
            reader = Thread(target=lambda: object_store().get("files/1/a.png"))
            reader.start()
        reader.join()
        assert set(recorded_calls) == {Use(API, Gateway("objects.get", "files/-"))}

    def test_objects_are_recorded_by_the_common_part_of_their_keys(
        self, recorded_calls: dict[Use, str]
    ) -> None:
        with entered(JOBS):
            object_store().delete_under("01M8/sites/01M9/pages/")
        assert set(recorded_calls) == {Use(JOBS, Gateway("objects.delete_under", "-/sites/-"))}

    @pytest.mark.usefixtures("database")
    def test_presigned_upload_needs_the_right_to_put(self, recorded_calls: dict[Use, str]) -> None:
        with entered(API):
            S3Store("bucket").upload_request("01M8/uploads/01M9", 5, 60)
        put = Right("s3:PutObject", "arn:aws:s3:::objects/{object}")
        assert set(recorded_calls) == {Use("objects.upload_request", put)}


class TestRights:
    def test_rights_of_a_transaction_are_those_of_its_actions(self) -> None:
        parts = ("Put", "Update", "Delete", "ConditionCheck")
        items = [{part: {"TableName": f"t-{part}"}} for part in parts]
        required = rights("dynamodb", "TransactWriteItems", {"TransactItems": items})
        assert set(required) == {
            ("dynamodb:PutItem", TABLES + "t-Put"),
            ("dynamodb:UpdateItem", TABLES + "t-Update"),
            ("dynamodb:DeleteItem", TABLES + "t-Delete"),
            ("dynamodb:ConditionCheckItem", TABLES + "t-ConditionCheck"),
        }
        reads = {"TransactItems": [{"Get": {"TableName": "t"}}]}
        assert set(rights("dynamodb", "TransactGetItems", reads)) == {
            ("dynamodb:GetItem", TABLES + "t")
        }

    def test_rights_of_a_query_are_on_its_index(self) -> None:
        query = {"TableName": "t", "IndexName": "by_row"}
        assert [*rights("dynamodb", "Query", query)] == [
            ("dynamodb:Query", TABLES + "t/index/by_row")
        ]

    def test_rights_of_a_batch_are_on_every_table(self) -> None:
        batch = {"RequestItems": {"a": {}, "b": {}}}
        assert [*rights("dynamodb", "BatchGetItem", batch)] == [
            ("dynamodb:BatchGetItem", TABLES + "a"),
            ("dynamodb:BatchGetItem", TABLES + "b"),
        ]

    def test_rights_of_a_message_are_on_its_queue(self) -> None:
        url = "https://sqs.eu-central-1.amazonaws.com/123456789012/workspace-api-test-events"
        queue = "arn:aws:sqs:eu-central-1:123456789012:workspace-api-test-events"
        assert [*rights("sqs", "SendMessage", {"QueueUrl": url})] == [("sqs:SendMessage", queue)]

    def test_rights_of_an_inference_profile_include_its_model(self) -> None:
        required = rights("bedrock-runtime", "ConverseStream", {"modelId": "eu.amazon.nova"})
        assert {right.resource.rpartition(":")[2] for right in required} == {
            "inference-profile/eu.amazon.nova",
            "foundation-model/amazon.nova",
        }

    @pytest.mark.parametrize("service", ["s3", "bedrock-runtime", "secretsmanager", "sqs"])
    def test_unsupported_operation_is_an_error(self, service: str) -> None:
        with pytest.raises(KeyError):
            list(rights(service, "SendMessage", {}))


def allowing(*grants: Right) -> list[dict[str, Any]]:
    return [
        {"Sid": str(number), "Effect": "Allow", "Action": [action], "Resource": [resource]}
        for number, (action, resource) in enumerate(grants)
    ]


class TestFaults:
    def test_no_fault_if_all_needed_rights_are_allowed(self) -> None:
        functions = {API: allowing(READ, WRITE)}
        uses = {Use(API, READ): TEST, Use(API, WRITE): TEST}
        assert [*faults(functions, uses, is_complete=True)] == []

    @pytest.mark.parametrize("is_whole_run", [True, False])
    def test_missing_right_is_a_fault(self, is_whole_run: bool) -> None:
        uses = {Use(API, READ): TEST, Use(API, WRITE): TEST}
        (fault,) = faults({API: allowing(READ)}, uses, is_complete=is_whole_run)
        assert f"{API} needs {WRITE.action} on {WRITE.resource}" in fault
        assert TEST in fault

    def test_unused_right_is_a_fault_of_a_whole_run(self) -> None:
        functions, uses = {API: allowing(READ, WRITE)}, {Use(API, READ): TEST}
        (fault,) = faults(functions, uses, is_complete=True)
        assert f"{API} may {WRITE.action} on {WRITE.resource}" in fault
        assert [*faults(functions, uses, is_complete=False)] == []

    def test_faults_are_found_per_function(self) -> None:
        functions = {API: allowing(READ), JOBS: allowing(WRITE)}
        missing = [*faults(functions, {Use(API, WRITE): TEST}, is_complete=False)]
        assert [fault.split()[0] for fault in missing] == [API]

    def test_faults_include_rights_of_used_gateways(self) -> None:
        store = Right("s3:GetObject", "arn:aws:s3:::objects/{object}")
        uses = {
            Use(API, Gateway("objects.get", "files/-")): TEST,
            Use("objects.get", store): "tests/gateways/test_object_store.py",
        }
        files = store._replace(resource="arn:aws:s3:::objects/files/*")
        pages = store._replace(resource="arn:aws:s3:::objects/*/sites/*")
        assert [*faults({API: allowing(files)}, uses, is_complete=True)] == []
        needs, may = faults({API: allowing(pages)}, uses, is_complete=True)
        assert "needs s3:GetObject on arn:aws:s3:::objects/files/-" in needs
        assert "may s3:GetObject on arn:aws:s3:::objects/*/sites/*" in may

    def test_rights_that_lambda_itself_uses_are_no_faults(self) -> None:
        logs = allowing(Right("logs:PutLogEvents", "*"))[0] | {"Sid": "Logs"}
        assert [*faults({API: [logs]}, {}, is_complete=True)] == []

    def test_policies_of_all_functions_are_checked(self) -> None:
        needless = {fault.split()[0] for fault in faults(generated(), {}, is_complete=True)}
        assert needless == {API, JOBS, EVENTS, CHAT}


def config(**options: Any) -> Any:
    """The part of pytest's config that the check reads: ``make test`` with these options."""
    usual = {"markexpr": "not slow", "keyword": "", "deselect": None}
    option = SimpleNamespace(**usual, ignore=None, ignore_glob=None)
    vars(option).update(options)
    return SimpleNamespace(
        option=option,
        args_source=options.get("args_source", pytest.Config.ArgsSource.TESTPATHS),
        ArgsSource=pytest.Config.ArgsSource,
        getini=lambda _: ["-ra", "-m", "not slow"],
    )


def test_each_right_has_the_test_that_first_needed_it() -> None:
    model = Use(aws_calls.MODELS, Right("secretsmanager:GetSecretValue", aws_calls.MODEL_KEY))
    uses = {Use(API, READ): TEST, Use(CHAT, Gateway(aws_calls.MODELS)): "chat", model: TEST}
    assert first_needs(generated(), uses) == {
        "api_handler Identity dynamodb:GetItem": TEST,
        "chat-stream ModelKey secretsmanager:GetSecretValue": "chat",
    }


class TestWholeRun:
    def test_make_test_is_a_whole_run(self) -> None:
        assert is_whole(config())

    @pytest.mark.parametrize(
        "options",
        [
            {"args_source": pytest.Config.ArgsSource.ARGS},
            {"markexpr": "slow"},
            {"keyword": "bread"},
            {"deselect": ["tests/rules"]},
            {"ignore": ["tests/e2e"]},
            {"ignore_glob": ["tests/e2e*"]},
        ],
        ids=str,
    )
    def test_fewer_tests_are_no_whole_run(self, options: dict[str, Any]) -> None:
        assert not is_whole(config(**options))


class TestPolicyCheck:
    @pytest.fixture
    def finish_run(self, recorded_calls: dict[Use, str]) -> Callable[..., tuple[int, list[str]]]:
        """End a run in which a worker recorded calls, and return its status and its report."""

        def end(uses: dict[Use, str], status: int = 0, run: Any = None) -> tuple[int, list[str]]:
            recorded_calls.update(uses)
            worker = config()
            worker.workeroutput = {}
            PolicyCheck().pytest_sessionfinish(SimpleNamespace(config=worker), 0)  # type: ignore[arg-type]
            recorded_calls.clear()
            check, lines = PolicyCheck(), list[str]()
            check.pytest_testnodedown(worker)
            session: Any = SimpleNamespace(config=run or config(), exitstatus=status)
            check.pytest_sessionfinish(session, status)
            reporter: Any = SimpleNamespace(section=lambda *_, **__: None, line=lines.append)
            check.pytest_terminal_summary(reporter)
            return int(session.exitstatus), lines

        return end

    def test_missing_right_fails_the_run(
        self, finish_run: Callable[..., tuple[int, list[str]]]
    ) -> None:
        audit = Right("dynamodb:DeleteItem", TABLES + "workspace-test-audit")
        status, (lines,) = finish_run({Use(JOBS, audit): TEST}, run=config(keyword="bread"))
        assert status == pytest.ExitCode.TESTS_FAILED
        assert audit.resource in lines

    def test_unused_right_fails_a_whole_run(
        self, finish_run: Callable[..., tuple[int, list[str]]]
    ) -> None:
        status, lines = finish_run(
            {Use(API, READ): TEST, Use(API, Gateway("objects.get", "x")): TEST}
        )
        assert status == pytest.ExitCode.TESTS_FAILED
        assert not any(
            READ.action in line and READ.resource in line for line in lines if API in line
        )
        assert any(line.startswith(CHAT) for line in lines)

    def test_unused_right_is_not_reported_for_a_part_of_the_suite(
        self, finish_run: Callable[..., tuple[int, list[str]]]
    ) -> None:
        assert finish_run({Use(API, READ): TEST}, run=config(keyword="bread")) == (0, [])

    def test_unused_right_is_not_reported_after_a_failure(
        self, finish_run: Callable[..., tuple[int, list[str]]]
    ) -> None:
        failed = int(pytest.ExitCode.TESTS_FAILED)
        assert finish_run({Use(API, READ): TEST}, failed) == (failed, [])
