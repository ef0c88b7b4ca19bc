"""The page of the account at a payment provider that takes a workspace's payments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chalicelib.core.errors import RateLimitedError, ValidationError
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.payments.rules import receipt_codes
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, State, problem_at_fields
from chalicelib.transports.console.form_controls import Field, Record, Typed
from chalicelib.transports.http import HttpResponse, redirect

# Fields that are sent with each change, because the operation replaces the account.
KEPT_FIELDS = ("provider", "shopId", "vatCode", "closingVatCode", "taxSystemCode")


@dataclass(frozen=True)
class HiddenField(Field):
    """A field whose stored value is not shown, such as a secret."""

    def fill_controls(self, _request: ConsoleRequest, _record: Record, /) -> Typed:
        return {self.name: ""}

    def stored_value(self, _record: Record, /) -> str:
        return ""

    def words(self, _request: ConsoleRequest, _form_values: Typed, /) -> str:
        # A conflict shows no secret.
        return ""


def _providers(request: ConsoleRequest) -> dict[str, str]:
    if is_test(request.current_membership.workspace.id):
        return {"test": request.translate("provider_test")}
    names = [
        "yookassa",
        "stripe",
        *(["test"] if settings().object_store.startswith("file:") else []),
    ]
    return {name: request.translate(f"provider_{name}") for name in names}


def _vat_codes(request: ConsoleRequest) -> dict[str, str]:
    codes = receipt_codes.VAT_RATES
    return {code: ". ".join((code, request.translate(f"vat_{code}"))) for code in codes}


def _tax_systems(request: ConsoleRequest) -> dict[str, str]:
    codes = receipt_codes.TAX_SYSTEMS
    return {code: ". ".join((code, request.translate(f"tax_{code}"))) for code in codes}


def _choices(
    request: ConsoleRequest, names: Mapping[str, str], offered: Iterable[str], *, stored: str
) -> list[tuple[str, str]]:
    # A stored code is offered, also if it does not exist.
    codes = list(dict.fromkeys([*offered, *filter(None, [stored])]))
    unknown = request.translate("code_unknown", code=stored)
    none = ("", request.translate("code_none"))
    return [none, *((code, names.get(code, unknown)) for code in codes)]


FORM = Form(
    Field("provider", "payment_provider", new="yookassa", names=_providers),
    Field("shopId", "payment_shop", empty=""),
    HiddenField("secret", "payment_secret", empty=""),
    Field("vatCode", "payment_vat", names=_vat_codes),
    Field("closingVatCode", "payment_closing_vat", names=_vat_codes),
    Field("taxSystemCode", "payment_tax_system", names=_tax_systems),
    changes="set_merchant",
)


def _find(request: ConsoleRequest) -> Record:
    return request.call("get_merchant")["merchant"] or {}


def _arguments(merchant: Record, changes: dict[str, Any]) -> dict[str, Any]:
    account = {name: merchant[name] for name in KEPT_FIELDS if merchant.get(name)}
    return {"provider": "yookassa", "shopId": "", **account, **changes}


def _page(request: ConsoleRequest, merchant: Record, state: State = STORED) -> HttpResponse:
    is_checked = bool(merchant and request.query_value("check"))
    values, vat_codes = FORM.page_values(request, merchant, state), _vat_codes(request)
    typed = values["typed"]
    return request.page(
        "payment_settings",
        merchant=merchant,
        providers=_providers(request).items(),
        former=request.call("list_former_merchants")["merchants"],
        check=request.call("check_merchant") if is_checked else None,
        prepayment_codes=_choices(
            request, vat_codes, receipt_codes.prepayment_codes(), stored=typed["vatCode"]
        ),
        closing_codes=_choices(
            request, vat_codes, receipt_codes.closing_codes(), stored=typed["closingVatCode"]
        ),
        tax_systems=_choices(
            request, _tax_systems(request), receipt_codes.TAX_SYSTEMS, stored=typed["taxSystemCode"]
        ),
        **values,
    )


def confirm_removal(request: ConsoleRequest) -> HttpResponse:
    """Show what the key of a former account is still needed for, and ask to remove it."""
    return _former_page(request)


def _former_page(
    request: ConsoleRequest, status: int = 200, problem: Problem | None = None
) -> HttpResponse:
    use = request.call("get_former_merchant", id=request.http.path["merchant"])
    return request.page(
        "payment_former", status, problem=problem, merchant=use["merchant"], use=use
    )


def remove_secret(request: ConsoleRequest) -> HttpResponse:
    """Remove the key of a former account."""
    try:
        request.call("remove_merchant_secret", id=request.http.path["merchant"])
    except (ValidationError, RateLimitedError) as error:
        return _former_page(request, error.status, problem_at_fields(request, error))
    path = f"{request.current_membership.path}/payment-settings"
    return redirect(f"{path}?done=merchant_secret_removed")


show, save = FORM.editing(
    _find, _page, "payments_saved", key="", arguments=_arguments, replaces=True
)


def choose_receipts(request: ConsoleRequest) -> HttpResponse:
    """Choose who sends the closing receipts of payments in advance."""
    request.call("set_closing_receipts", closedBy=request.form_value("closedBy"))
    return redirect(f"{request.current_membership.path}/payment-settings?done=payments_saved")
