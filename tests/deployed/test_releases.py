"""A second deployment, a rollback, and what the operator's commands say of the stage."""

import re

from tests.deployed.conftest import API, STAGE, Owner, Stage
from tests.support.clone import commit


def version(stage: Stage) -> str:
    return str(stage.api(None).get("/api/health")["version"])


def test_an_update_changes_the_code_and_a_rollback_puts_it_back(stage: Stage, owner: Owner) -> None:
    site = owner.api.post("/api/projects/create", {"title": "Here before"})["project"]["id"]
    old_result, first = stage.result, version(stage)
    module = stage.clone / "chalicelib" / "__init__.py"
    newer = re.sub(r'VERSION = "[^"]+"', 'VERSION = "99.0.0"', module.read_text())
    module.write_text(newer)
    commit(stage.clone, "Call it another version")
    stage.deploy()
    assert version(stage) == "99.0.0"
    address_fields = ("apiId", "baseUrl", "chatUrl")
    assert [stage.result[name] for name in address_fields] == [
        old_result[name] for name in address_fields
    ]
    stage_releases = stage.infra("releases", "--stage", STAGE)
    assert stage_releases["current"] == stage.result["release"]
    assert old_result["release"] in [release["id"] for release in stage_releases["releases"]]
    back = stage.infra("rollback", "--stage", STAGE)
    assert (back["release"], back["smoke"]) == (old_result["release"], "ok")
    assert version(stage) == first
    assert site in [project["id"] for project in owner.api.get("/api/projects/list")["projects"]]


def test_a_destroyed_stage_comes_back_with_its_data(stage: Stage, owner: Owner) -> None:
    site = owner.api.post("/api/projects/create", {"title": "Kept"})["project"]["id"]
    stage.infra("destroy", "--stage", STAGE, "--yes")
    stage.deploy()
    assert site in [project["id"] for project in owner.api.get("/api/projects/list")["projects"]]


def test_doctor_finds_nothing_missing(stage: Stage) -> None:
    findings = stage.infra("doctor", "--stage", STAGE)["findings"]
    assert [finding["name"] for finding in findings if finding["ok"] is False] == []


def test_the_smoke_test_of_a_stage_lists_its_tools(stage: Stage, owner: Owner) -> None:
    checks_made = stage.infra("smoke", "--stage", STAGE, "--key", str(owner.api.token))["checks"]
    checks = {check["name"]: check["ok"] for check in checks_made}
    assert checks["tools/list"] is True
    assert False not in checks.values()


def test_the_log_of_a_function_is_in_its_group(stage: Stage) -> None:
    stage.api(None).get("/api/health")
    assert any(line.get("message") == "request" for line in stage.log_lines(API))
