"""No operation that a key may call changes balances, payments, cards, plans, members or keys."""

from collections.abc import Callable

from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Audience
from tests.conftest import Owner, all_rows
from tests.contract.conftest import World
from tests.contract.test_access import send
from tests.factories.examples import example
from tests.factories.payments import take_payments
from tests.factories.session_examples import WorkspaceIds

WRITES = [operation for operation in REGISTRY.select(Audience.KEY) if not operation.read_only]


def guarded(workspace_id: str) -> dict[str, object]:
    """Return the rows of money and access, without the time at which a key was used last."""
    rows = {}
    for key, row in all_rows().items():
        table, _, name = key.partition("/")
        # A new bot has limits of its own.
        is_money = (table == "ledger" and "#BUDGET" not in name) or any(
            part in name for part in ("#MERCHANT", "#PAYMENT", "#REFUND")
        )
        is_access = table == "identity" and name.startswith(
            ("KEY#", "KEYID#", "ACCOUNT#", f"W#{workspace_id}#APIKEY", f"W#{workspace_id}#MEMBER")
        )
        if is_money or is_access:
            rows[key] = {**row, "last_used_at": None}
    return rows


def test_the_rows_of_money_and_access_are_found(world: World) -> None:
    take_payments(world.workspace_id)
    WorkspaceIds.collect(world.workspace_id, world.things)
    names = " ".join(guarded(world.workspace_id))
    for part in ("ledger/", "#MERCHANT", "#PAYMENT", "#REFUND", "/KEY#", "#APIKEY", "#MEMBER"):
        assert part in names, part


def test_writes_by_key_leave_money_and_access_as_they_are(
    restore: Callable[..., World], empty_database: Callable[[], None]
) -> None:
    def restored() -> World:
        empty_database()
        world = restore()
        take_payments(world.workspace_id)
        return world

    world = restored()
    for operation in WRITES:
        before = guarded(world.workspace_id)
        answer = send(world.api, operation, example(operation, world.things))
        assert answer.status == 200, (operation.name, answer.body)
        assert guarded(world.workspace_id) == before, operation.name
        if operation.destructive:
            world = restored()


def test_settings_by_key_have_no_field_of_money(owner: Owner) -> None:
    # A currency is none: it changes only while there is no price and no payment.
    names = set(REGISTRY["set_workspace"].input_schema["properties"]) - {"currency"}
    assert names == {
        *("accent", "address", "country", "logoUrl", "name", "phone", "privacyUrl", "timezone"),
    }
    terms = set(REGISTRY["set_payment_terms"].input_schema["properties"])
    assert terms == {"id", "depositPercent", "refundUntilMin"}
