"""Snapshots that other fixtures of a test may disturb."""

from tests.conftest import Api, Time
from tests.factories.pages import new_site
from tests.support.restoring import Snapshots


def test_a_snapshot_is_made_again_upon_changed_rows_or_at_another_time(
    api: Api, time: Time, snapshots: Snapshots
) -> None:
    made: list[str] = []

    def make() -> str:
        made.append(new_site(api, f"Site {len(made)}"))
        return made[-1]

    first = snapshots.once_upon_equal_rows("a site", make)
    again = snapshots.once_upon_equal_rows("a site", make)
    assert again == made[1] != first  # the workspace has a site, so its rows have changed
    time.pass_by(minutes=1)
    assert snapshots.once_upon_equal_rows("a site", make) == made[2]
