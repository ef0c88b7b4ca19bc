"""A rollback to an earlier release."""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import click
import pytest

from chalicelib import STORED_FORMAT
from infra.deploy import deployment, published_settings, releases
from infra.deploy.aws.store import Store
from tests.infra.conftest import Aws, Killed, QuickChalice, commit, new_checkout
from tests.infra.deploy.deployment.helpers import API, CHAT, Deploy, is_whole

pytestmark = pytest.mark.slow


def code(aws: Aws) -> bytes:
    return aws.code_of(API)


class TestRollback:
    def test_rollback_deploys_the_previous_release_with_current_settings(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        first = deploy()
        old_code = code(aws)
        commit(checkout, "app = 2\n")
        second = deploy()
        assert code(aws) != old_code
        result = aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        assert code(aws) == old_code
        assert result == first
        assert is_whole(aws, store, first)
        about = aws.client("lambda").get_function_configuration(FunctionName=CHAT)
        assert about["Environment"]["Variables"]["PUBLIC_URL"] == "https://d1.cloudfront.example"
        # And forth again, from a machine that has neither.
        elsewhere = aws.deployment(new_checkout(checkout.parent / "other"))
        assert elsewhere.rollback(second["release"], break_lock=False, python=None) == second
        assert code(aws) != old_code

    def test_a_stage_whose_rows_have_another_format_is_left_as_it_is(
        self, aws: Aws, deploy: Deploy, checkout: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deploy()
        old_code = code(aws)
        commit(checkout, "app = 2\n")
        monkeypatch.setattr(deployment, "STORED_FORMAT", STORED_FORMAT + 1)
        others = f"format {STORED_FORMAT}.*reads format {STORED_FORMAT + 1}"
        with pytest.raises(click.ClickException, match=others):
            deploy()
        with pytest.raises(click.ClickException, match=others):
            aws.deployment(checkout).update_code(None)
        assert code(aws) == old_code

    def test_the_format_of_the_rows_outlives_the_functions(self, aws: Aws, deploy: Deploy) -> None:
        deploy()
        published_settings.unpublish(aws.account, "dev")
        assert published_settings.published(aws.account, "dev") == {}
        assert published_settings.stored_format(aws.account, "dev") == STORED_FORMAT

    def test_rollback_after_a_killed_deployment(
        self, aws: Aws, chalice: QuickChalice, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        commit(checkout, "app = 2\n")
        second = deploy()["release"]
        old_code = code(aws)
        commit(checkout, "app = 3\n")
        chalice.dies_after = "lambda_function"
        with pytest.raises(Killed):
            deploy()
        assert code(aws) != old_code
        for _ in range(2):  # The first is killed, too.
            with suppress(Killed):
                back = aws.deployment(checkout).rollback(None, break_lock=False, python=None)
            chalice.dies_after = None
        assert back["release"] == second
        assert code(aws) == old_code

    def test_killed_rollback_is_completed_by_a_second_run(
        self, aws: Aws, chalice: QuickChalice, deploy: Deploy, checkout: Path
    ) -> None:
        deployed_releases = [deploy()["release"]]
        for number in (2, 3):
            commit(checkout, f"app = {number}\n")
            deployed_releases.append(deploy()["release"])
        chalice.dies_after = "lambda_function"
        with pytest.raises(Killed):
            aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        chalice.dies_after = None
        back = aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        assert back["release"] == deployed_releases[1]

    def test_rollback_finds_a_release_by_its_commit(
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

    def test_rollback_requires_a_previous_release(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        deploy()
        with pytest.raises(click.ClickException, match="no release before the one that runs"):
            aws.deployment(checkout).rollback(None, break_lock=False, python=None)

    def test_rollback_ignores_unknown_metadata_of_a_release(
        self, aws: Aws, deploy: Deploy, checkout: Path, store: Store
    ) -> None:
        first = deploy()["release"]
        (release,) = releases.list_releases(store)
        archive = checkout / "build" / "kept.tar.gz"
        store.download(releases.KEY, version=release.version, path=archive)
        store.upload(releases.KEY, archive, asdict(release) | {"something": "new"})
        commit(checkout, "app = 2\n")
        deploy()
        back = aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        assert back["release"] == first

    def test_rolling_back_twice_goes_back_by_two(
        self, aws: Aws, deploy: Deploy, checkout: Path
    ) -> None:
        first = deploy()["release"]
        for number in (2, 3):
            commit(checkout, f"app = {number}\n")
            deploy()
        for _ in range(2):
            back = aws.deployment(checkout).rollback(None, break_lock=False, python=None)
        assert back["release"] == first
