"""Comparison of the responses of two releases, and the upgrade part without the last release."""

import subprocess
from typing import Any

import pytest

from chalicelib.core.ids import new_id
from infra.proof import releases, upgrade
from infra.proof.releases import State
from infra.proof.upgrade import World


def world(**ids: str) -> World:
    return World({"held": {}, "things": ids}, State({}, {}))


def test_ids_and_secrets_do_not_differ_between_responses() -> None:
    one, other = world(site=new_id()), world(site=new_id())
    answers = [
        {"answer": {"id": answer.ids["things"]["site"], "page": new_id(), "key": f"svc_{new_id()}"}}
        for answer in (one, other)
    ]
    assert upgrade._difference(answers[0], one, answers[1], other) == ""


@pytest.mark.parametrize(
    "answer",
    [{"name": "B", "tags": []}, {"name": "A"}, {"name": "A", "tags": ["x"]}, {"name": None}],
)
def test_another_value_and_a_missing_field_are_differences(answer: Any) -> None:
    expected = {"answer": {"name": "A", "tags": ["x", "y"]}}
    assert upgrade._difference({"answer": answer}, world(), expected, world())


def figures(**changes: Any) -> dict[str, Any]:
    fine: dict[str, Any] = {"calls": 1, "lacking": [], "refused": [], "failed": {}, "otherwise": {}}
    keys = {"calls": 1, "recognized": 1, "repeated": []}
    return {
        "last_release": "v1",
        "database": "moto's server",
        "rows": [1, 1],
        "upgrade": fine,
        "rollback": fine,
        "keys_upgrade": keys,
        "keys_rollback": keys,
        "histories": {"seeds": [1], "calls": 1, "otherwise": {}},
    } | changes


def test_a_failed_operation_fails_the_part() -> None:
    broken = figures()["upgrade"] | {"failed": {"get_site": "500"}}
    with pytest.raises(AssertionError, match="upgrade: get_site"):
        upgrade._require_no_surprise(figures(upgrade=broken))


def test_known_difference_is_named_and_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "RECIPES", {"get_spending": "it is declared"})
    declared = figures()["upgrade"] | {"otherwise": {"get_spending": "-[] +[]"}}
    upgrade._require_no_surprise(figures(upgrade=declared))
    assert "get_spending" in upgrade.section(figures(upgrade=declared))


def test_a_key_that_is_not_recognized_fails_the_part() -> None:
    keys = {"calls": 1, "recognized": 0, "repeated": ["create_site"]}
    with pytest.raises(AssertionError, match="create_site"):
        upgrade._require_no_surprise(figures(keys_rollback=keys))


def test_clone_without_the_last_release_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def git(command: str, *_: str) -> str:
        if command == "tag":
            return ""
        raise subprocess.CalledProcessError(1, "git")

    monkeypatch.setattr(releases, "_git", git)
    outcome = upgrade.run(1)
    assert releases.FORMER_COMMIT in outcome["not_run"]
    assert upgrade.section(outcome).startswith("Not run: ")
