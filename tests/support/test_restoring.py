"""Snapshots that other fixtures of a test may disturb."""

from tests.conftest import Api, Time
from tests.factories.pages import new_site
from tests.support.restoring import Snapshots


def test_a_snapshot_is_made_again_upon_changed_rows_or_at_another_time(
    api: Api, time: Time, snapshots: Snapshots
) -> None:
    created: list[str] = []

    def make() -> str:
        created.append(new_site(api, f"Site {len(created)}"))
        return created[-1]

    first = snapshots.once_upon_equal_rows("a site", make)
    second_site = snapshots.once_upon_equal_rows("a site", make)
    assert second_site == created[1] != first  # the workspace has a site, so its rows have changed
    time.pass_by(minutes=1)
    assert snapshots.once_upon_equal_rows("a site", make) == created[2]
