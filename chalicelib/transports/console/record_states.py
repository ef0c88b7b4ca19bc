"""The one state of a record that every page shows, with its reason and the next step.

A record that is switched on may still not work, such as a service without staff. Pages do not show
the switch next to such a state, because the two would contradict each other.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Record = Mapping[str, Any]


class Step(NamedTuple):
    """A link to the page that changes a state."""

    path: str  # relative to the workspace
    operation: str
    text: str  # catalogue key


class RecordState(NamedTuple):
    text: str  # catalogue key of the tag
    tone: str  # ``good``, ``warn`` or ""
    about: str = ""  # catalogue key of the reason
    step: Step | None = None


def compute_service_state(service: Record) -> RecordState:
    """Return whether visitors can book a service, with its ``lack``."""
    lack, page = service["lack"], f"services/{service['id']}"
    if lack is not None and lack["reason"] == "by_phone":
        step = Step(f"{page}#requirePayment", "update_service", "fix_by_phone")
        return RecordState("service_by_phone", "warn", "service_by_phone_about", step)
    if lack is not None:
        reason, staff = lack["reason"], f"staff/{lack['resourceId'] or ''}"
        path, operation = {
            "inactive": (f"{page}#active", "update_service"),
            "no_resource": (f"staff/new?service={service['id']}", "create_resource"),
            "inactive_resource": (f"{staff}#active", "update_resource"),
        }.get(reason, (f"{staff}/hours", "set_availability"))
        tone = "" if reason == "inactive" else "warn"
        text = "booking_inactive" if reason == "inactive" else f"lack_{reason}"
        return RecordState(text, tone, f"lack_{reason}", Step(path, operation, f"fix_{reason}"))
    return RecordState("booking_active", "good")


def compute_staff_state(resource: Record, without_hours: Sequence[str]) -> RecordState:
    """Return whether staff can be booked. ``without_hours`` are ids of resources without hours."""
    page = f"staff/{resource['id']}"
    if resource["status"] != "active":
        step = Step(f"{page}#active", "update_resource", "fix_inactive_resource")
        return RecordState("booking_inactive", "", "staff_off_about", step)
    if not resource["serviceIds"]:
        step = Step(f"{page}#serviceIds", "update_resource", "fix_no_service")
        return RecordState("lack_no_service", "warn", "lack_no_service", step)
    if resource["id"] in without_hours:
        step = Step(f"{page}/hours", "set_availability", "fix_no_hours")
        return RecordState("lack_no_hours", "warn", "lack_no_hours", step)
    return RecordState("booking_active", "good")


def compute_bot_state(bot: Record, *, is_held: str | None, has_money: bool) -> RecordState:
    """Return whether a bot responds to visitors. ``is_held`` is the reason why it does not."""
    page = f"bots/{bot['id']}"
    if not bot["isActive"]:
        step = Step(f"{page}/settings#isActive", "update_agent", "bot_settings")
        return RecordState("inactive", "", "bot_is_inactive", step)
    if is_held:
        step = Step(f"{page}/limits", "set_bot_limits", "limits")
        about = {"stopped": "bot_is_stopped", "limit_reached": "bot_is_limit_reached"}[is_held]
        return RecordState(is_held, "warn", about, step)
    if not has_money:
        step = Step("balance", "get_balance", "balance")
        return RecordState("bot_no_money", "warn", "balance_is_empty", step)
    return RecordState("active", "good")


def compute_booking_page_state(page: Record, services: Sequence[Record]) -> RecordState:
    """Return whether visitors can book on the booking page. ``services`` have their ``lack``."""
    if not page["isOn"]:
        return RecordState("booking_page_off", "")
    if not page["offered"]:
        step = Step("booking-page#offered", "set_booking_page", "fix_no_offer")
        if not services:
            step = Step("services/new", "create_service", "add_service")
        return RecordState("booking_page_empty", "warn", "booking_page_offers_nothing", step)
    offered_services = [service for service in services if service["isOffered"]]
    if len(offered_services) == page["offered"] and all(
        service["lack"] for service in offered_services
    ):
        return compute_service_state(offered_services[0])._replace(
            text="booking_page_empty", about="booking_page_none_bookable"
        )
    return RecordState("booking_page_on", "good")


def compute_payment_state(payment: Record) -> RecordState:
    """Return what a member wants to know of a payment."""
    status, refunded = payment["status"], payment["refunded"]
    is_whole = refunded >= payment["amount"]
    unfinished = {refund["status"] for refund in payment["refunds"]} - {"done"}
    states = (
        (payment["problem"] and status != "succeeded", "payment_check_state", "warn"),
        (payment["disputed"], "payment_disputed", "warn"),
        (payment["refundDue"], "payment_refund_due", "warn"),
        ("failed" in unfinished, "payment_refund_failed", "warn"),
        (unfinished, "payment_returning", "warn"),
        (refunded and is_whole, "payment_refunded", ""),
        (refunded, "payment_refunded_partly", ""),
        (status == "succeeded" and payment["isDeposit"], "payment_deposit", "good"),
        (status == "succeeded", "payment_paid", "good"),
        (status == "refused", "payment_refused", "warn"),
        (status in {"created", "pending"}, "payment_open", "warn"),
    )
    found = (RecordState(text, tone) for is_so, text, tone in states if is_so)
    return next(found, RecordState("payment_failed", ""))


def add_states(
    records: Sequence[Record], state_of: Callable[[Record], RecordState]
) -> list[dict[str, Any]]:
    """Return records with their ``shownState``."""
    return [{**record, "shownState": state_of(record)} for record in records]
