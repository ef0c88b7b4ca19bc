"""Whom an invitation has led into a workspace, and whether its link is unknown."""

import pytest

from chalicelib.core.errors import NotFoundError
from chalicelib.domains.identity.store import workspaces
from tests.conftest import all_rows
from tests.factories.people import Account, accept_as_new, look_at


def is_unknown_link(token: str) -> bool:
    """Whether a link fails like an unknown one, for reading and for both ways of accepting."""
    failures = set()
    reader = Account.create(f"reader{len(all_rows())}")
    for use in (look_at, accept_as_new, reader.accept):
        for candidate in (token, "A" * 43):
            with pytest.raises(NotFoundError) as caught:
                use(candidate)
            failures.add((caught.value.code, caught.value.message))
    return len(failures) == 1


def joined(workspace: str) -> list[str]:
    return [member.account.email for member in workspaces.members(workspace)]
