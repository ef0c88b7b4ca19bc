"""What a thief of a session would want asks for a code, or for the password without one."""

from typing import get_args

import pytest

from chalicelib.core.errors import ValidationError
from chalicelib.core.operations import REGISTRY, Operation, load_all
from chalicelib.core.principals import Audience
from chalicelib.domains.identity.flows import confirmation, second_factor
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.notifications.rules import messages
from chalicelib.lib.localized import Language
from tests.conftest import call_console
from tests.contract.conftest import World
from tests.factories.console_forms import read_rows
from tests.factories.session_examples import WorkspaceIds, caller_of, session_example
from tests.support.restoring import Snapshots

load_all()
pytestmark = pytest.mark.usefixtures("telegram")
CONFIRMED = [operation for operation in REGISTRY if operation.confirm is not None]
EXPECTED = {
    *("create_key", "grant_access", "invite_member", "set_member_role", "widen_connection"),
    *("refund_payment", "retry_refund", "set_merchant", "set_payment_terms"),
    *("export_workspace", "remove_merchant_secret"),
    *("close_workspace", "reopen_workspace"),
    *("end_second_factor", "set_second_factor", "set_sign_in_factor"),
}
"""What reaches money, gives access to others, or protects the account."""
NOT_MAILED = {"refund_payment", "retry_refund"}
every_confirmed = pytest.mark.parametrize(
    "operation", [pytest.param(operation, id=operation.name) for operation in CONFIRMED]
)


@pytest.fixture
def ids(world: World, snapshots: Snapshots) -> WorkspaceIds:
    """One record of every type in a workspace."""
    collected: WorkspaceIds = snapshots.once(
        f"ids {world.workspace_id}",
        lambda: WorkspaceIds.collect(world.workspace_id, world.things),
    )
    return collected


def refusal_of(operation: Operation, ids: WorkspaceIds, password: str) -> ValidationError:
    """Return the error of a valid call without a proof, which must change nothing."""
    rows_before = read_rows()
    with pytest.raises(ValidationError) as refused:
        call_console(
            ids.workspace_id,
            operation.name,
            account_id=caller_of(operation, ids),
            typed_password=password,
            **session_example(operation, ids),
        )
    assert read_rows() == rows_before
    return refused.value


def test_these_operations_ask_for_a_proof() -> None:
    assert {operation.name for operation in CONFIRMED} == EXPECTED
    assert all(Audience.SESSION in operation.audience for operation in CONFIRMED)


@every_confirmed
@pytest.mark.parametrize("password", ["", "a thief's guess"])
def test_without_a_factor_the_password_is_required(
    operation: Operation, password: str, ids: WorkspaceIds
) -> None:
    error = refusal_of(operation, ids, password)
    assert [wrong.field for wrong in error.errors] == [confirmation.PASSWORD_FIELD]


@every_confirmed
def test_with_a_factor_the_password_is_not_enough(operation: Operation, ids: WorkspaceIds) -> None:
    account = accounts.get(ids.account_id)
    account.update([AccountRow.factor_salt.set(22 * "b"), AccountRow.factor_step.set(0)])
    account.update([AccountRow.factor_used.set(0)])
    error = refusal_of(operation, ids, "correct horse")
    assert [wrong.field for wrong in error.errors] == [second_factor.FIELD]


@pytest.mark.parametrize("language", get_args(Language))
def test_every_confirmed_operation_has_a_title_for_its_mail(language: Language) -> None:
    names = EXPECTED - NOT_MAILED | {"remove_second_factor"}
    titles = {messages.confirmed_title(language, name) for name in names}
    assert len(titles) == len(names)
    assert not any(title.startswith("confirmed_") for title in titles)


def test_a_plain_member_is_invited_without_a_proof(ids: WorkspaceIds) -> None:
    arguments = {"email": "plain@example.com", "role": "member"}
    owner = {"account_id": ids.account_id, "typed_password": ""}
    assert call_console(ids.workspace_id, "invite_member", **owner, **arguments)["url"]
