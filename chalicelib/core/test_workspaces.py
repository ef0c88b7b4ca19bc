"""Tell the id of a test workspace from others, without a read."""

from chalicelib.core import ids
from chalicelib.core.errors import InTestWorkspaceError

# The first character of the ids of test workspaces. Other ids, whose first 48 bits are the time,
# begin with 0 until the year 3084. Both are ULIDs of 128 bits.
MARK = "7"
MAX_RECORDS = 1_000  # of a noun


def new_id() -> str:
    """Return an id for a new test workspace, which is a test for good.

    >>> is_test(new_id()), is_test(ids.new_id())
    (True, False)
    """
    return MARK + ids.new_id()[len(MARK) :]


def is_test(workspace_id: str) -> bool:
    """Whether a workspace, or the platform, is a test workspace.

    Nothing leaves a test workspace, and nothing in it costs money.
    """
    return workspace_id.startswith(MARK)


def refuse_from_test(origin: str) -> None:
    """Raise InTestWorkspaceError if a test workspace is the origin of what would leave."""
    if is_test(origin):
        raise InTestWorkspaceError("Nothing is sent from a test workspace.", key="sending")
