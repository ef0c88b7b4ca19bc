"""The page of a workspace's settings."""

from dataclasses import dataclass
from typing import Any

from chalicelib.core import plans
from chalicelib.core.errors import AppError, ValidationError
from chalicelib.core.test_workspaces import is_test
from chalicelib.lib import currencies, phones, zoned_times
from chalicelib.lib.accents import ACCENTS, DEFAULT
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State, problem_at_fields
from chalicelib.transports.console.form_controls import KEPT, Field, Photo, Record, Typed
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts


def _countries(request: ConsoleRequest) -> dict[str, str]:
    return dict(texts.countries(request.language, phones.countries()))


def _accents(request: ConsoleRequest) -> dict[str, str]:
    # The default is stored as null.
    values = {name: "" if name == DEFAULT else name for name in ACCENTS}
    return {choice: request.translate(f"accent_{name}") for name, choice in values.items()}


def _use_uploaded_logo(request: ConsoleRequest, arguments: dict[str, Any]) -> dict[str, Any]:
    if "logoUrl" not in arguments:
        return arguments
    logo = arguments["logoUrl"] or {}
    if "fileId" in logo:
        logo = request.call("get_file", id=logo["fileId"])["file"]
        if not logo["width"]:
            raise ValidationError.of(LOGO.control, message="expected an image")
    return {**arguments, "logoUrl": logo.get("url")}


@dataclass(frozen=True)
class CurrencyField(Field):
    """The currency. The form lacks it once the workspace has a price."""

    def value(self, form_values: Typed) -> Any:  # noqa: ANN401  as Field
        return form_values[self.name] or KEPT


LOGO = Photo("logoUrl", "workspace_logo")
FORM = Form(
    Field("name", "workspace_name", empty=""),
    Field("timezone", "workspace_zone", empty=""),
    Field("country", "workspace_country", empty="", names=_countries),
    CurrencyField("currency", "workspace_currency"),
    Field("address", "workspace_address"),
    Field("phone", "workspace_phone", wrong="wrong_booking_phone"),
    LOGO,
    Field("accent", "workspace_accent", names=_accents),
    Field("privacyUrl", "privacy_url"),
    changes="set_workspace",
    prepare=_use_uploaded_logo,
)


def _find(request: ConsoleRequest) -> Record:
    workspace = request.call("get_workspace")["workspace"]
    url = workspace["logoUrl"]
    return {**workspace, "logoUrl": {"fileId": url, "url": url} if url else None}


def _page(request: ConsoleRequest, workspace: Record, state: State = STORED) -> HttpResponse:
    form = FORM.page_values(request, workspace, state)
    form["typed"] = {
        name: control.strip() if isinstance(control, str) else control
        for name, control in form["typed"].items()
    }
    offer = _offer(request, workspace)
    if offer and request.query_value("fill"):
        form["typed"] |= offer
    return request.page(
        "settings",
        stored=workspace,
        offer=offer,
        currencies=_currencies(request),
        zones=zoned_times.zones_of_countries(workspace["country"]),
        countries=_countries(request).items(),
        accents=_accents(request).items(),
        **form,
    )


def _offer(request: ConsoleRequest, workspace: Record) -> dict[str, str]:
    """Return the zone and the currency of the country, where the workspace has others."""
    country = workspace["country"]
    offer: dict[str, str] = {}
    zones = zoned_times.zones_of_country(country)
    own = zoned_times.zones_of_countries(country)
    if len(zones) == 1 and workspace["timezone"] not in own:
        offer["timezone"] = zones[0]
    usual = currencies.of_country(country)
    if _may_change_currency(request) and workspace["currency"] != usual:
        offer["currency"] = usual
    return offer


def _currencies(request: ConsoleRequest) -> list[tuple[str, str]]:
    """Return the codes with their signs, or nothing if the currency stays."""
    if not _may_change_currency(request):
        return []
    signs = ((code, texts.sign(request.language, code)) for code in currencies.DIGITS)
    # Names would take the page beyond its size.
    return [(code, code if sign == code else f"{code} {sign}") for code, sign in signs]


def _may_change_currency(request: ConsoleRequest) -> bool:
    return not request.current_membership.workspace.has_prices


show, save = FORM.editing(_find, _page, "settings_saved", key="")


def confirm_wipe(request: ConsoleRequest) -> HttpResponse:
    """Ask whether to empty the test workspace. Another workspace leads to its settings."""
    workspace = request.current_membership.workspace
    if not is_test(workspace.id):
        return redirect(f"{request.current_membership.path}/settings")
    return request.page("workspace_wipe")


def wipe(request: ConsoleRequest) -> HttpResponse:
    """Empty the test workspace."""
    request.call("wipe_test_workspace")
    return redirect(f"{request.current_membership.path}?done=workspace_wiped")


def confirm_close(request: ConsoleRequest) -> HttpResponse:
    """Ask whether to close the workspace. One that is closed leads to the page that reopens it."""
    membership = request.current_membership
    if is_test(membership.workspace.id):
        return redirect(f"{membership.path}/wipe")
    if membership.workspace.closed_at is not None:
        return redirect(f"{membership.path}/reopen")
    return request.page("workspace_close")


def close(request: ConsoleRequest) -> HttpResponse:
    """Close the workspace."""
    try:
        request.call("close_workspace")
    except AppError as error:
        return request.page(
            "workspace_close", error.status, problem=problem_at_fields(request, error)
        )
    return redirect(f"{request.current_membership.path}/reopen?done=workspace_closed")


def confirm_reopen(request: ConsoleRequest) -> HttpResponse:
    """Ask whether to reopen the workspace. One that is open leads to its settings."""
    workspace = request.current_membership.workspace
    if workspace.closed_at is None:
        return redirect(f"{request.current_membership.path}/settings")
    return request.page("workspace_reopen")


def reopen(request: ConsoleRequest) -> HttpResponse:
    """Reopen the workspace."""
    try:
        request.call("reopen_workspace")
    except AppError as error:
        problem = problem_at_fields(request, error)
        return request.page("workspace_reopen", error.status, problem=problem)
    return redirect(f"{request.current_membership.path}?done=workspace_reopened")


def show_plan(request: ConsoleRequest) -> HttpResponse:
    """Show what each plan contains, and how to get another one."""
    workspace = request.call("get_workspace")["workspace"]
    offered = [
        {
            "plan": plan,
            "storageBytes": plans.STORAGE_BYTES[plan],
            "leadsAMonth": plans.LEADS_A_MONTH[plan],
            "clientMailsADay": plans.CLIENT_MAILS_A_DAY[plan],
            "hasApi": plan in plans.PLANS_WITH_API,
        }
        for plan in plans.PLANS
    ]
    return request.page("plan", plan=workspace["plan"], offered=offered)
