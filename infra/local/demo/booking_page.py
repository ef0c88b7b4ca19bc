"""The public booking page of the demo, which offers all of its services and is listed."""

from chalicelib.application.invoke import invoke
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.domains.identity.store import workspaces
from infra.local.demo import bakery
from infra.local.demo.caller import Caller
from infra.local.demo.texts import Language


def switch_on(do: Caller, language: Language) -> None:
    """Switch the page on, as the owner does in the console."""
    workspace = workspaces.get(do.workspace_id)
    owner = SessionPrincipal(
        account_id=workspace.owner_id,
        workspace_id=workspace.id,
        plan=workspace.plan,
        membership=Role.OWNER,
    )
    service_ids = [service["id"] for service in do("list_services", size=100)["services"]]
    settings = {"isOn": True, "phone": bakery.load(language).phone, "offer": service_ids}
    invoke(REGISTRY["set_booking_page"], owner, lambda: settings, request_id="seed-demo")
    admission = {"isOn": True, "isListed": True}
    invoke(REGISTRY["admit_assistants"], owner, lambda: admission, request_id="seed-demo")
