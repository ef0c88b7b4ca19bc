"""Payments of bookings in an export, which an import has for reading only."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from chalicelib.core.operations import load_all
from chalicelib.domains.exports.flows import contents
from chalicelib.domains.exports.flows.contents import NOT_INCLUDED
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.store import merchants
from tests.domains.payments.checkout import FORM, PRICE, Checkout, visitor
from tests.domains.payments.conftest import checkout, inbox, shop
from tests.support.export_files import run, start_empty

__all__ = ["checkout", "inbox", "shop"]

pytestmark = pytest.mark.usefixtures("database", "connected")
load_all()


@pytest.fixture
def moved(
    checkout: Checkout,
    tmp_path: Path,
    empty_database: Callable[[], None],
) -> Checkout:
    """A workspace with a paid booking, moved to another stage."""
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    file = tmp_path / "salon.zip"
    run("export", "--workspace", checkout.workspace, "--out", str(file))
    start_empty(empty_database, "owner@example.com")
    printed = run("import", str(file), "--owner", "owner@example.com")
    assert printed["workspaceId"] == checkout.workspace
    assert printed["notIncluded"] == dict(NOT_INCLUDED)
    return checkout


def test_file_has_payments_for_reading_only_and_says_what_it_lacks(
    checkout: Checkout,
    tmp_path: Path,
) -> None:
    checkout.click(checkout.hold())
    file = tmp_path / "salon.zip"
    printed = run("export", "--workspace", checkout.workspace, "--out", str(file))
    with zipfile.ZipFile(file) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        (payment,) = map(json.loads, archive.read("rows/PAYMENT.jsonl").splitlines())
        (merchant,) = map(json.loads, archive.read("rows/MERCHANT.jsonl").splitlines())
    assert printed["notIncluded"] == manifest["notIncluded"] == dict(NOT_INCLUDED)
    assert payment["item"]["is_imported"] == {"BOOL": True}
    assert "url" not in payment["item"]
    assert merchant["item"]["sealed_secret"] == {"S": ""}


def test_imported_booking_has_its_payment_and_is_not_refunded_by_the_service(
    moved: Checkout,
) -> None:
    (payment,) = moved.console("list_payments")["payments"]
    assert (payment["status"], payment["amount"]) == ("succeeded", PRICE)
    assert (payment["isImported"], payment["refundable"]) == (True, 0)
    assert merchants.find_current(moved.workspace) is None
    question = moved.page_of_booking("?step=cancel")
    assert "Ask the business for the refund" in question
    assert "You get back" not in question
    moved.cancel_by_link()
    assert "Ask the business for the refund" in moved.page_of_booking()
    assert moved.booking.status == "cancelled"
    assert moved.refunds == []
    (payment,) = moved.console("list_payments")["payments"]
    assert payment["refundDue"]


def test_same_account_that_is_set_up_again_does_not_reach_imported_payments(
    moved: Checkout,
) -> None:
    moved.owner.workspace.owner_id = workspaces.get(moved.workspace).owner_id
    moved.set_merchant()
    moved.cancel_by_link()
    moved.run_after(minutes=1)
    assert moved.shop.refunded("pay-1") == 0
    assert visitor.call("POST", moved.hold("2027-01-18T12:00"), b"", FORM).status == 303


def test_booking_of_an_earlier_file_without_payments_does_not_look_paid(
    checkout: Checkout,
    tmp_path: Path,
    empty_database: Callable[[], None],
) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    file = tmp_path / "salon.zip"
    with pytest.MonkeyPatch.context() as patch:
        kinds = [kind for kind in contents.PLAIN if not kind.at.startswith(("PAYMENT", "MERCHANT"))]
        patch.setattr(contents, "PLAIN", tuple(kinds))
        run("export", "--workspace", checkout.workspace, "--out", str(file))
    start_empty(empty_database, "owner@example.com")
    run("import", str(file), "--owner", "owner@example.com")
    booking = checkout.booking
    assert (booking.paid_by, booking.paid, booking.payment_ids) == (None, None, None)
    assert "Paid in advance" not in checkout.page_of_booking()


def test_copy_names_the_copied_payments(
    checkout: Checkout,
    tmp_path: Path,
) -> None:
    checkout.click(checkout.hold())
    checkout.shop.pay()
    checkout.hook()
    original = checkout.payments[0].id
    file = tmp_path / "salon.zip"
    run("export", "--workspace", checkout.workspace, "--out", str(file))
    copy = run("import", str(file), "--ids", "new")["workspaceId"]
    checkout.owner.workspace.pk = checkout.owner.workspace.pk.replace(checkout.workspace, copy)
    assert checkout.workspace == copy
    booking = checkout.booking
    assert booking.paid_by == checkout.payments[0].id != original
