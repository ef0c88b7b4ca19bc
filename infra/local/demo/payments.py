"""The payments of the demo, whose first service, a master class, is paid in advance."""

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import PLATFORM, Role, SessionPrincipal
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.store import merchants
from infra.local.demo import school
from infra.local.demo.caller import Caller
from infra.local.demo.texts import Language
from infra.operator.operation_commands import call

ACCOUNT = {"provider": "test", "shopId": "demo", "secret": "test_demo", "vatCode": "1"}
"""An account at the test merchant, which accepts any."""


def take_payments(do: Caller, language: Language) -> None:
    """Set up the test merchant for the demo and for top-ups, as the owner and the operator do."""
    workspace = workspaces.get(do.workspace_id)
    owner = SessionPrincipal(
        account_id=workspace.owner_id,
        workspace_id=workspace.id,
        plan=workspace.plan,
        membership=Role.OWNER,
        password=do.password,
    )
    if merchants.find_current(workspace.id) is None:
        invoke(REGISTRY["set_merchant"], owner, lambda: ACCOUNT, request_id="seed-demo")
    if merchants.find_current(PLATFORM) is None:
        call("set_platform_merchant", dict(ACCOUNT))
    name = school.load(language).services[0].name
    for service in do("list_services", size=100)["services"]:
        if service["name"] == name:
            do("update_service", id=service["id"], requirePayment=True)
