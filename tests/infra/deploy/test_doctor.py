"""Findings and advice of the doctor's checks."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from botocore.exceptions import ClientError

from infra.deploy import deployer, doctor, stage_facts
from infra.deploy.aws.account import Account
from infra.deploy.doctor import Finding
from infra.deploy.names import function_name
from infra.deploy.package import build as package
from infra.deploy.smoke import Check
from tests.infra.conftest import REGION, new_checkout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout that passes all checks."""
    root = new_checkout(tmp_path / "checkout")
    (root / "vendor").mkdir()
    shutil.copy(package.ROOT / doctor.BOOTSTRAP, root / "vendor")
    (root / "constraints.txt").write_text("")
    return root


class TestMachine:
    def test_clean_checkout_passes(self, root: Path) -> None:
        subprocess.run(["git", "-C", str(root), "add", "--all"], check=True)
        who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
        commit = ["git", "-C", str(root), *who, "commit", "-q", "-m", "More"]
        subprocess.run(commit, check=True)
        assert [finding.ok for finding in doctor.examine_machine("dev", root)] == [True] * 3

    def test_uncommitted_changes_are_noted(self, root: Path) -> None:
        finding = doctor.git(root)
        assert (finding.ok, "--allow-dirty" in finding.text) == (None, True)

    def test_folder_without_git_fails(self, tmp_path: Path) -> None:
        finding = doctor.git(tmp_path)
        assert finding.ok is False
        assert "Install git and clone the project" in finding.text

    def test_bootstrap_that_is_not_executable_fails(self, root: Path) -> None:
        (root / doctor.BOOTSTRAP).chmod(0o644)
        finding = doctor.bootstrap(root)
        assert finding.ok is False
        assert "chmod +x it" in finding.text
        with pytest.raises(click.ClickException, match="stream_bootstrap may not be run"):
            doctor.require(doctor.examine_machine("dev", root))

    def test_unknown_stage_fails(self, root: Path) -> None:
        finding = doctor.known_stage("prd", root)
        assert finding.ok is False
        assert 'No stage "prd"' in finding.text

    @pytest.mark.parametrize(
        ("variables", "advice"),
        [
            ({"WEBHOOKS_TO_LOOPBACK": "1"}, "WEBHOOKS_TO_LOOPBACK: expected no value"),
            (
                {"WEBHOOKS_TO_LOOPBACK": "1", "AWS_ENDPOINT_URL": "http://127.0.0.1:4566"},
                "another AWS than this deployment, by AWS_ENDPOINT_URL",
            ),
            ({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}, "by AWS_ENDPOINT_URL_S3"),
            ({"MAIL": "pigeon"}, "MAIL"),
        ],
    )
    def test_settings_of_an_emulator_or_invalid_ones_fail(
        self, root: Path, variables: dict[str, str], advice: str
    ) -> None:
        file = root / ".chalice" / "config.json"
        config = json.loads(file.read_text())
        config["stages"]["dev"] = {"environment_variables": variables}
        file.write_text(json.dumps(config))
        finding = doctor.known_stage("dev", root)
        assert finding.ok is False
        assert advice in finding.text

    def test_missing_python_for_packaging_fails(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(package, "_candidates", lambda _: iter(["/none"]))
        for finding in (doctor.python(root), doctor.wheels("dev", root)):
            assert finding.ok is False
            assert "Packaging needs a Python from 3.12" in finding.text

    @pytest.mark.parametrize(("pip", "ok"), [("26.2", True), ("26.3", False), ("", False)])
    def test_unsupported_version_of_pip_fails(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, pip: str, ok: bool
    ) -> None:
        here = package.Python(sys.executable, (3, 13))
        monkeypatch.setattr(package, "find_python", lambda: here)
        program = package.environment_of(here, root / "build") / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho '{pip}'\n")
        program.chmod(0o755)
        finding = doctor.python(root)
        assert finding.ok is ok
        assert ("Delete it." in finding.text) is not ok

    @pytest.mark.parametrize(("architecture", "machine"), package.MACHINES.items())
    @pytest.mark.parametrize(
        ("printed", "says"),
        [
            (
                "ERROR: No matching distribution found for spam==1.0",
                "No wheel that runs on Lambda for spam==1.0. Pin a version that has one.",
            ),
            ("NewConnectionError: no route", "The package index does not answer."),
        ],
    )
    def test_requirement_without_a_wheel_fails(
        self,
        root: Path,
        monkeypatch: pytest.MonkeyPatch,
        printed: str,
        says: str,
        architecture: str,
        machine: str,
    ) -> None:
        here = package.Python(sys.executable, (3, 13))
        monkeypatch.setattr(package, "find_python", lambda: here)
        commands: list[Any] = []

        def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            commands.append(command)
            return subprocess.CompletedProcess(command, 1, "", printed)

        monkeypatch.setattr(doctor.subprocess, "run", run)
        config = json.loads((root / ".chalice" / "config.json").read_text())
        config["stages"]["dev"]["lambda_architecture"] = architecture
        (root / ".chalice" / "config.json").write_text(json.dumps(config))
        finding = doctor.wheels("dev", root)
        assert finding.ok is False
        assert says in finding.text
        assert f"manylinux2014_{machine}" in commands[0]
        assert f"manylinux_2_34_{machine}" in commands[0]


class Client:
    """A boto3 client that returns responses or errors, as the test defines."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            raise AttributeError(name)

        def call(*_: Any, **__: Any) -> Any:
            answer = self.answers[name]
            if isinstance(answer, str):
                raise ClientError({"Error": {"Code": answer, "Message": "No."}}, name)
            return answer

        return call


RUNNERS = {"run-jobs": 4, "run-events": 8}
"""Reservations of the functions that run jobs."""


def concurrency(free: int, reserved: Mapping[str, int] | None = None) -> Client:
    """Lambda with unreserved executions, and functions that hold reservations by their names."""
    runs = {function_name("dev", function=name): count for name, count in (reserved or {}).items()}

    def get_function_concurrency(**request: str) -> dict[str, int]:
        if request["FunctionName"] not in runs:
            error = {"Error": {"Code": "ResourceNotFoundException", "Message": "No."}}
            raise ClientError(error, "GetFunctionConcurrency")  # type: ignore[arg-type]
        return {"ReservedConcurrentExecutions": runs[request["FunctionName"]]}

    limits = {"AccountLimit": {"UnreservedConcurrentExecutions": free}}
    client = Client(get_account_settings=limits)
    client.get_function_concurrency = get_function_concurrency
    return client


def availability(region: str = "AVAILABLE", status: str = "AUTHORIZED") -> Client:
    details = {"regionAvailability": region, "authorizationStatus": status}
    return Client(get_foundation_model_availability=details)


def simulation(*denied: str, unknown: tuple[str, ...] = ()) -> Any:
    """IAM, which simulates policies that deny some actions, and depend on MFA for others."""
    client = Client(get_role={"Role": {"Arn": "arn:aws:iam::123456789012:role/ci/deployer"}})
    client.simulated = []

    def paginate(ActionNames: list[str], **request: Any) -> Iterator[dict[str, Any]]:  # noqa: N803
        client.simulated.append({"ActionNames": ActionNames, **request})
        results = []
        for action in ActionNames:
            allowed = action not in {right.rstrip("*") for right in (*denied, *unknown)}
            result: dict[str, Any] = {
                "EvalActionName": action,
                "EvalDecision": "allowed" if allowed else "implicitDeny",
            }
            if action in unknown:
                result["MissingContextValues"] = ["aws:MultiFactorAuthPresent"]
            results.append(result)
        half = len(results) // 2
        yield {"EvaluationResults": results[:half]}
        yield {"EvaluationResults": results[half:]}

    client.get_paginator = lambda _: SimpleNamespace(paginate=paginate)
    return client


def examined(**clients: Client) -> dict[str, Finding]:
    account = Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")
    ready = {
        "s3": Client(head_bucket="404"),
        "lambda": concurrency(1000),
        "bedrock": availability(),
        "cloudfront": Client(list_distributions={"DistributionList": {"Quantity": 1}}),
        "iam": simulation(),
    }
    account._clients.update({(name, REGION): client for name, client in (ready | clients).items()})
    findings = doctor.examine_account(account, "dev", package.ROOT)
    return {finding.name: finding for finding in findings}


class TestCloudFront:
    def test_account_without_distributions_gets_advice(self) -> None:
        empty = Client(list_distributions={"DistributionList": {"Quantity": 0}})
        finding = examined(cloudfront=empty)["cloudfront"]
        assert finding.ok is None
        assert "until AWS Support has verified them" in finding.text
        assert "--no-edge" in finding.text


class TestRights:
    def examined_as(self, user: str, iam: Any) -> Finding:
        account = Account("123456789012", REGION, user)
        account._clients["iam", REGION] = iam
        return Finding("rights", *doctor._rights(account, "dev"))

    def test_denied_rights_are_named_with_advice(self) -> None:
        finding = examined(iam=simulation("s3:PutObject", "lambda:CreateFunction"))["rights"]
        assert finding.ok is False
        assert "lambda:CreateFunction, s3:PutObject." in finding.text
        assert "python -m infra deployer-policy --stage dev" in finding.text

    def test_of_many_denied_rights_a_few_are_named(self) -> None:
        finding = examined(iam=simulation(*deployer.actions()))["rights"]
        assert f"and {len(deployer.actions()) - 8} more." in finding.text

    def test_right_that_depends_on_the_request_is_not_denied(self) -> None:
        finding = examined(iam=simulation(unknown=("s3:PutObject",)))["rights"]
        assert finding.ok is True

    def test_a_session_is_simulated_as_its_role(self) -> None:
        iam = simulation()
        session = "arn:aws:sts::123456789012:assumed-role/deployer/github"
        assert self.examined_as(session, iam).ok is True
        sources = {request["PolicySourceArn"] for request in iam.simulated}
        assert sources == {"arn:aws:iam::123456789012:role/ci/deployer"}
        contexts = [request["ContextEntries"] for request in iam.simulated]
        names = {entry["ContextKeyName"] for entries in contexts for entry in entries}
        assert {"iam:PassedToService", "kms:ViaService"} <= names
        assert not [request for request in iam.simulated if "*" in request["ResourceArns"][0][1:]]
        actions = [action for request in iam.simulated for action in request["ActionNames"]]
        assert "lambda:EnableReplication" in actions
        assert not [action for action in actions if "*" in action], "IAM refuses wildcards here"

    @pytest.mark.parametrize(
        "user",
        ["arn:aws:iam::123456789012:root", "arn:aws:sts::123456789012:federated-user/ann"],
    )
    def test_a_principal_that_iam_cannot_simulate_is_a_note(self, user: str) -> None:
        finding = self.examined_as(user, simulation())
        assert finding.ok is None
        assert f"IAM does not simulate {user}" in finding.text

    def test_a_principal_that_may_not_simulate_is_a_note(self) -> None:
        finding = examined(iam=Client(get_paginator="AccessDenied"))["rights"]
        assert finding.ok is None
        assert "Could not be found out" in finding.text


class TestAccount:
    def test_complete_account_passes(self) -> None:
        assert {finding.ok for finding in examined().values()} == {True}

    def test_bucket_of_another_account_fails(self) -> None:
        finding = examined(s3=Client(head_bucket="403"))["bucket"]
        assert finding.ok is False
        assert "workspace-dev-123456789012-eu-central-1 is another account's" in finding.text

    def test_own_existing_bucket_passes(self) -> None:
        assert examined(s3=Client(head_bucket={}))["bucket"].ok is True

    @pytest.mark.parametrize(
        ("free", "reserved", "expected"),
        [
            (10, {}, {}),
            (100, {}, {}),
            (103, {}, {}),
            (100, {"run-jobs": 1}, {}),
            (103, {"run-jobs": 1}, {"run-jobs": 4}),
            (100, {"run-jobs": 4}, {"run-jobs": 4}),
            (104, {}, {"run-jobs": 4}),
            (111, {}, {"run-jobs": 4}),
            (112, {}, RUNNERS),
            (211, {}, RUNNERS),
            (212, {}, {**RUNNERS, "chat-stream": 50}),
            (1000, {}, {**RUNNERS, "chat-stream": 444}),
            (544, {**RUNNERS, "chat-stream": 444}, {**RUNNERS, "chat-stream": 444}),
            # A stage that an earlier version has deployed.
            (548, {"run-jobs": 4, "chat-stream": 448}, {**RUNNERS, "chat-stream": 444}),
            (1000, {"api_handler": 0}, {**RUNNERS, "chat-stream": 444, "api_handler": 0}),
        ],
    )
    def test_reservations_leave_enough_executions_to_the_api(
        self, free: int, reserved: dict[str, int], expected: dict[str, int]
    ) -> None:
        account = Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")
        account._clients["lambda", REGION] = concurrency(free, reserved)
        assert stage_facts.reservations(account, "dev") == expected

    @pytest.mark.parametrize(
        ("free", "says"),
        [
            (
                10,
                "needs; runs of jobs and events may overlap, which does no harm. Request",
            ),
            (150, "slow chats can take the executions that the API needs. Request"),
        ],
    )
    def test_a_quota_that_is_too_small_is_noted_with_the_way_to_raise_it(
        self, free: int, says: str
    ) -> None:
        finding = examined(**{"lambda": concurrency(free)})["concurrency"]
        assert finding.ok is None
        assert f"Only {free} executions are unreserved" in finding.text
        assert says in finding.text
        assert "Request more in Service Quotas" in finding.text

    @pytest.mark.parametrize(
        "bedrock", [availability(region="NOT_AVAILABLE"), availability(status="NOT_AUTHORIZED")]
    )
    def test_missing_access_to_the_model_is_noted(self, bedrock: Client) -> None:
        finding = examined(bedrock=bedrock)["models"]
        assert finding.ok is None
        assert "Bedrock does not serve amazon.nova-lite-v1:0" in finding.text
        assert "playground" in finding.text

    def test_missing_permission_for_a_check_is_noted(self) -> None:
        denied = Client(get_foundation_model_availability="AccessDeniedException")
        finding = examined(bedrock=denied)["models"]
        assert finding.ok is None
        assert "Could not be found out: These credentials may not call" in finding.text


def test_deployment_continues_with_notes_and_stops_with_faults() -> None:
    notes = [Finding("a", ok=True, text="A."), Finding("b", ok=None, text="B.")]
    doctor.require(iter(notes))
    faults = [Finding(name.lower(), ok=False, text=f"{name}.") for name in "CD"]
    with pytest.raises(click.ClickException, match=r"^C\. D\.$"):
        doctor.require(iter([*notes, *faults]))


@pytest.fixture
def hidden_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.usefixtures("hidden_aws")
def test_machine_is_examined_without_credentials(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "wheels", lambda *_: Finding("wheels", ok=True, text=""))
    monkeypatch.setattr(doctor, "python", lambda _: Finding("python", ok=True, text=""))
    *machine, last = doctor.examine("dev", REGION, root)
    assert len(machine) == 5
    assert (last.name, last.ok) == ("credentials", False)
    assert "There are no AWS credentials" in last.text
    assert "MISSING  credentials" in doctor.table([*machine, last])


class TestSignInOfClients:
    @pytest.fixture
    def sign_in_finding(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Return a function that returns the finding for a stage with a base URL."""

        def finding(url: str, why: str = "", *, ok: bool = True) -> doctor.Finding:
            variables = {"PUBLIC_URL": url} if url else {}
            monkeypatch.setattr(doctor.published_settings, "published", lambda *_: variables)
            monkeypatch.setattr(doctor.smoke, "sign_in", lambda _: Check("sign-in", ok, why))
            account = Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")
            return doctor._finding("sign-in", lambda: doctor._sign_in_of_clients(account, "prod"))

        return finding

    def test_a_stage_that_is_not_deployed_or_has_no_edge_is_not_asked(
        self, sign_in_finding: Any
    ) -> None:
        assert sign_in_finding("").ok is None
        no_edge = sign_in_finding("https://x.execute-api.eu-central-1.amazonaws.com/prod", ok=False)
        assert no_edge.ok is None
        assert "Without an edge" in no_edge.text

    def test_a_stage_whose_documents_lead_to_it_passes(self, sign_in_finding: Any) -> None:
        assert sign_in_finding("https://api.example.com", "https://api.example.com").ok

    def test_a_stage_without_its_challenge_fails_with_advice(self, sign_in_finding: Any) -> None:
        sign_in = sign_in_finding("https://api.example.com", "expected resource_metadata", ok=False)
        assert sign_in.ok is False
        assert "expected resource_metadata. Deploy again" in sign_in.text
