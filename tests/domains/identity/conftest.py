"""A workspace with an owner and a manager."""

import pytest

from chalicelib.domains.identity.store import accounts
from tests.conftest import Owner
from tests.factories.people import Account


@pytest.fixture
def workspace(owner: Owner) -> str:
    return owner.workspace.id


@pytest.fixture
def owner_account(owner: Owner) -> Account:
    account = accounts.get(owner.workspace.owner_id)
    return Account(account.id, account.email)


@pytest.fixture
def manager(workspace: str) -> Account:
    account = Account.create("manager")
    account.joins(workspace, "manager")
    return account
