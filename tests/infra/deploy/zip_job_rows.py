"""Create a row of each kind of job as the product does, and check what the job did.

Each function creates the row of a kind, pauses while a process runs it, and checks what it did.
"""

import json
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.booking_page.rules import advertising_texts
from chalicelib.domains.bookings.rules.job_kinds import DAYS_CHANGED
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.catalog.operations import categories
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.files.operations import folder_deletion
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FILES
from chalicelib.domains.identity.rules.job_kinds import (
    END_CALENDAR_LINK,
    MAIL_TEST_IDLE,
    PAUSE_WEBHOOKS,
    TEST_IDLE,
)
from chalicelib.domains.identity.store import accounts, directory, workspaces
from chalicelib.domains.identity.store.directory import Words
from chalicelib.domains.knowledge.flows import search
from chalicelib.domains.knowledge.store import indexes
from chalicelib.domains.knowledge.store.sources import SOURCES
from chalicelib.domains.notifications.store import choices, windows
from chalicelib.domains.reports.rules.job_kinds import COUNT_REPORTS
from chalicelib.domains.reports.store import sums
from chalicelib.domains.schedule.flows import busy_links, busy_readings
from chalicelib.domains.schedule.rules.job_kinds import CLEAR_BUSY_TIMES
from chalicelib.domains.schedule.store.busy_calendars import BusyCalendarRow
from chalicelib.domains.services.store import dated_starts, time_off
from chalicelib.domains.sites.operations import deletion as site_deletion
from chalicelib.domains.sites.store.pages import PAGES
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.domains.webhooks.store import deliveries as stored_deliveries
from chalicelib.engine import file_uses, idempotency, indexing, jobs
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import sms
from chalicelib.gateways.object_store import object_store
from chalicelib.gateways.payments import local_merchant
from tests.conftest import call_console, call_operator
from tests.domains.events.conftest import receiver, world  # noqa: F401  fixtures
from tests.domains.notifications.clients import ADA, book
from tests.domains.notifications.inbox import choose
from tests.domains.sites.test_site_domains import bind
from tests.factories import files as uploads
from tests.factories import products
from tests.factories.booking_links import requested
from tests.factories.chat import ask, new_bot, transcript
from tests.factories.event_triggers import MEMBER
from tests.factories.examples import submit
from tests.factories.payments import MERCHANT, open_payment
from tests.factories.people import accept_as_new, ask_to_sign_up, request_reset
from tests.factories.salon import Salon
from tests.fakes import lambda_runtime_api, openai_api
from tests.fakes.internet import Answer, Server, http_response
from tests.fakes.receiver import status
from tests.infra.deploy.zip_stage import (
    NOON,
    Stage,
    WebhookReceiver,
    delete_all_jobs_except,
    killed_before_commit,
    object_keys,
    run_jobs_here,
    waiting_jobs,
)
from tests.support.database_over_http import endpoint  # noqa: F401  a fixture
from tests.support.patience import wait_for

CLOUDFRONT = 'xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/"'
TENANT = f"<DistributionTenant {CLOUDFRONT}><Id>dt_1</Id></DistributionTenant>"
NO_TENANT = (
    f"<ErrorResponse {CLOUDFRONT}><Error><Code>EntityNotFound</Code></Error></ErrorResponse>"
)

Steps = Iterator[None]


def late_entries(stage: Stage) -> Steps:
    stage.patch(indexing, "MAX_ITEMS", 0)  # as if the transaction were full
    category = stage.things.category
    products.create(stage.api, "Rye", categoryId=category)
    assert "Rye" not in products.names(stage.api, categoryId=category)
    yield
    assert "Rye" in products.names(stage.api, categoryId=category)


def late_file_uses(stage: Stage) -> Steps:
    stage.patch(indexing, "MAX_ITEMS", 0)  # as if the transaction were full
    file = uploads.upload(stage.api, "menu.txt")
    html = f"<a href='{file['url']}'>Menu</a>"
    stage.api.post("/api/pages/save-html", {"id": stage.things.page, "html": html})
    assert file_uses.records_showing(stage.workspace_id, file_id=file["id"]) == []
    yield
    shown_by = file_uses.records_showing(stage.workspace_id, file_id=file["id"])
    assert shown_by == [f"PAGE#{stage.things.page}"]


def answer_expired(stage: Stage) -> Steps:
    stage.patch(idempotency, "MAX_INLINE_BYTES", 1)  # so that any answer is a large one
    stage.api.post("/api/products/create", {"name": "Rye", "price": 1}, key="once")
    key = waiting_jobs("answer-expired")[0].payload["key"]
    assert key in object_keys()
    yield
    assert key not in object_keys()


def settle_hold(stage: Stage) -> Steps:
    """The chat's process is killed while the model is silent, after the money was reserved."""
    bot = new_bot(stage.owner, model="our-own-model")
    money = bot.money
    bootstrap = stage.task / "stream_bootstrap"
    with openai_api.serving() as provider:
        provider.answers = [openai_api.silent]
        own_variables = {
            "LLM_PROVIDER": "openai",
            "LLM_BASE_URL": provider.url,
            "no_proxy": "127.0.0.1",
        }
        variables = {**stage.variables, **own_variables}
        with lambda_runtime_api.function(bootstrap, variables, python=stage.python) as chat:
            chat.invoke(lambda_runtime_api.event(json.dumps({"agentId": bot.id, "message": "Hi"})))
            wait_for(lambda: bool(provider.asked))
            chat.process.kill()
            chat.process.wait()
    assert bot.money[1] > 0
    assert bot.kinds[-1] == "reserve"
    yield
    assert bot.money == money
    assert bot.kinds[-2:] == ["reserve", "release"]
    assert transcript(stage.api, bot)[-1]["status"] == "error"


def file_orphan(stage: Stage) -> Steps:
    old_keys = object_keys()
    killed_before_commit(stage, lambda: uploads.upload(stage.api, "menu.txt"))
    (orphan,) = object_keys() - old_keys
    yield
    assert orphan not in object_keys()


def blog_cover_unused(stage: Stage) -> Steps:
    photo = uploads.upload(stage.api, "cover.png", products.png())
    body = {"title": "Rye", "coverImage": photo["url"]}
    post = stage.api.post("/api/admin/blog/create", body)["post"]
    file_id = FILES.entries(PLATFORM)[0].id
    answer = stage.api.call("PUT", f"/api/admin/blog/{post['id']}", {"coverImage": None})
    assert answer.status == 200, answer.body
    file = FILES.require(PLATFORM, record_id=file_id)
    assert file.key in object_keys()
    yield
    assert FILES.find(PLATFORM, record_id=file_id) is None
    assert file.key not in object_keys()


def lapse_of_hold(stage: Stage) -> Steps:
    booking = Salon.opened(stage.api, requirePayment=True).book("2027-01-18T10:00")
    assert booking["status"] == "pending_payment"
    yield
    booking_read = stage.api.get(f"/api/bookings/{booking['id']}")["booking"]
    assert booking_read["status"] == "cancelled"


def held_and_paid(stage: Stage) -> tuple[str, str]:
    """Book what is paid in advance, and pay it. Return the booking and the id at the provider."""
    stage.use_test_merchant()
    booking = Salon.opened(stage.api, requirePayment=True).book("2027-01-18T10:00")["id"]
    provider_id = open_payment(stage.workspace_id, booking)
    local_merchant.settle_payment(provider_id, "succeeded")
    return booking, provider_id


def booking_status(stage: Stage, booking: str) -> str:
    return str(stage.api.get(f"/api/bookings/{booking}")["booking"]["status"])


def booking_payment(stage: Stage) -> Steps:
    booking, _ = held_and_paid(stage)
    assert booking_status(stage, booking) == "pending_payment"
    yield
    assert booking_status(stage, booking) == "confirmed"


def booking_refund(stage: Stage) -> Steps:
    _, provider_id = held_and_paid(stage)
    run_jobs_here("booking-payment")
    (payment,) = call_console(stage.workspace_id, "list_payments")["payments"]
    call_console(stage.workspace_id, "refund_payment", id=payment["id"])
    yield
    paid = local_merchant.read_payment(provider_id)
    assert paid
    assert sum(paid["refunds"].values()) == payment["amount"]


def close_receipt(stage: Stage) -> Steps:
    booking, provider_id = held_and_paid(stage)
    run_jobs_here("booking-payment")
    stage.api.post("/api/bookings/set-status", {"id": booking, "status": "completed"})
    yield
    paid = local_merchant.read_payment(provider_id)
    assert paid
    assert paid["receipts"][-1] == "full_payment"


def end_merchant_secret(stage: Stage) -> Steps:
    stage.use_test_merchant()
    call_console(stage.workspace_id, "set_merchant", **MERCHANT | {"shopId": "another"})
    yield
    (former,) = call_console(stage.workspace_id, "list_former_merchants")["merchants"]
    assert former["secretRemovedAt"]


def read_returned_payments(stage: Stage) -> Steps:
    stage.use_test_merchant()
    before = waiting_jobs("read-returned-payments")
    yield
    assert len(waiting_jobs("read-returned-payments")) == len(before)


def top_up_payment(stage: Stage) -> Steps:
    stage.use_test_merchant()
    account = stage.owner.workspace.owner_id
    url = call_console(stage.workspace_id, "start_top_up", account_id=account, amount=10_000)["url"]
    former = call_operator("get_balance", account=accounts.get(account).email)["available"]
    local_merchant.settle_payment(url.rpartition("/")[2], "succeeded")
    yield
    balance = call_operator("get_balance", account=accounts.get(account).email)["available"]
    assert balance == former + 10_000


def resource_cascade(stage: Stage) -> Steps:
    def service() -> Any:
        return stage.api.get(f"/api/services/{stage.things.service}")["service"]

    resource = stage.things.resource
    stage.api.post("/api/resources/delete", {"id": resource, "force": True})
    assert time_off.find(stage.workspace_id, time_off_id=stage.things.time_off)
    yield
    assert service()["resourceIds"] == []
    assert time_off.find(stage.workspace_id, time_off_id=stage.things.time_off) is None


def starts_clear(stage: Stage) -> Steps:
    service = getattr(stage.things, "class")
    assert dated_starts.between(stage.workspace_id, service_id=service, first_ms=0)
    stage.api.post("/api/services/delete", {"id": service})
    yield
    assert dated_starts.between(stage.workspace_id, service_id=service, first_ms=0) == []


def category_cascade(stage: Stage) -> Steps:
    stage.patch(categories, "MOVES_PER_TRANSACTION", 0)  # as if there were more products than fit
    stage.api.post("/api/categories/delete", {"id": stage.things.category, "moveTo": None})
    stage.patch(categories, "MOVES_PER_TRANSACTION", 20)
    loaf = {"id": stage.things.product}
    assert products.read(stage.api, loaf)["categoryId"] == stage.things.category
    yield
    assert products.read(stage.api, loaf)["categoryId"] is None


def dialog_expired(stage: Stage) -> Steps:
    assert stage.api.get(f"/api/agents/dialog?id={stage.things.dialog}")["messages"]
    yield
    assert DIALOGS.find(stage.workspace_id, record_id=stage.things.dialog) is None
    stage.api.call_refused("GET", f"/api/agents/dialog?id={stage.things.dialog}")


def file_purge(stage: Stage) -> Steps:
    key = FILES.require(stage.workspace_id, record_id=stage.things.file).key
    stage.api.post("/api/files/delete", {"id": stage.things.file})
    assert key in object_keys()
    yield
    assert key not in object_keys()


def file_replaced(stage: Stage) -> Steps:
    file = uploads.upload(stage.api, "menu.txt", b"soup")
    stage.api.post("/api/files/replace", {"id": file["id"], "content": "cGll"})
    assert object_store().get(uploads.key(file["url"])) == b"soup"
    yield
    assert object_store().get(uploads.key(file["url"])) == b"pie"


def folder_cascade(stage: Stage) -> Steps:
    stage.patch(folder_deletion, "MOVES_IN_DELETION", 1)  # as if there were more files than fit
    uploads.upload(stage.api, "prices.txt", folderId=stage.things.folder)
    file = uploads.upload(stage.api, "menu.txt", folderId=stage.things.folder)
    stage.api.post("/api/file-folders/delete", {"id": stage.things.folder, "moveTo": None})
    assert FILES.require(stage.workspace_id, record_id=file["id"]).folder_id == stage.things.folder
    yield
    assert FILES.require(stage.workspace_id, record_id=file["id"]).folder_id is None


def upload_lapsed(stage: Stage) -> Steps:
    upload = files.find_upload(stage.workspace_id, upload_id=stage.things.upload)
    assert upload
    assert upload.key in object_keys()
    used = files.used_bytes(stage.workspace_id)
    yield
    assert files.find_upload(stage.workspace_id, upload_id=stage.things.upload) is None
    assert upload.key not in object_keys()
    assert files.used_bytes(stage.workspace_id) == used - upload.size


def knowledge_path(stage: Stage) -> str:
    """Return the path of the bot's knowledge."""
    return f"/api/agents/{stage.things.agent}/knowledge"


def knowledge_text_unused(stage: Stage) -> Steps:
    source = SOURCES.require(stage.workspace_id, record_id=stage.things.source)
    stage.api.call("DELETE", f"{knowledge_path(stage)}/{source.id}")
    assert source.text_key in object_keys()
    yield
    assert source.text_key not in object_keys()


def knowledge_stale(stage: Stage) -> Steps:
    def found_titles() -> list[str]:
        passages = search.find(
            stage.workspace_id, bot_id=stage.things.agent, question="delivery of bread", limit=5
        )
        return [passage.title for passage in passages]

    assert "Delivery" not in found_titles()
    yield
    assert "Delivery" in found_titles()


def knowledge_index_unused(stage: Stage) -> Steps:
    run_jobs_here("knowledge-stale")
    former = indexes.find(stage.workspace_id, agent_id=stage.things.agent)
    stage.api.post(knowledge_path(stage), {"title": "Hours", "text": "We open at eight."})
    run_jobs_here("knowledge-stale")
    current = indexes.find(stage.workspace_id, agent_id=stage.things.agent)
    assert former
    assert current
    assert {former.key, current.key} <= object_keys()
    yield
    assert former.key not in object_keys()
    assert current.key in object_keys()


def knowledge_fetch(stage: Stage) -> Steps:
    file = uploads.upload(stage.api, "note.txt", b"We deliver on Saturdays.")
    body = {"title": "Note", "fileId": file["id"]}
    source = stage.api.post(knowledge_path(stage), body)["source"]
    body = {"title": "Page", "url": "https://bakery.example/"}
    page = SOURCES.require(
        stage.workspace_id, record_id=stage.api.post(knowledge_path(stage), body)["source"]["id"]
    )
    # The service refuses this machine's address without a request, so no test leaves the machine.
    page.url = "http://127.0.0.1/"
    run_unit(stage.workspace_id, None, lambda unit: unit.save(page))
    assert (source["status"], page.status) == ("pending", "pending")
    yield
    note = SOURCES.require(stage.workspace_id, record_id=source["id"])
    assert (note.status, note.error, note.chars) == ("ready", None, 24)
    assert note.text_key in object_keys()
    page = SOURCES.require(stage.workspace_id, record_id=page.id)
    assert (page.status, page.failures) == ("failed", 1)
    assert page.error.startswith("The page was not read: expected ")


def _one_who_waits(stage: Stage, name: str) -> Any:
    body = {
        "serviceId": stage.things.service,
        "day": "2030-03-09",
        "client": {"name": name, "email": f"{name.lower()}@example.com"},
    }
    return stage.api.post("/api/bookings/waiting", body)["waitingEntry"]


def waiting_line(stage: Stage) -> Steps:
    _one_who_waits(stage, "Line")
    yield
    pk = f"W#{stage.workspace_id}#CALENDAR#{stage.things.resource}"
    day = calendar_days.CalendarDayRow.find(pk, "2030-03-09")
    assert day is not None
    assert day.is_awaited


def waiting_days(stage: Stage) -> Steps:
    entry = _one_who_waits(stage, "Days")
    payload = {"days": ["2030-03-09"], "resourceIds": [stage.things.resource]}
    run_unit(
        stage.workspace_id,
        None,
        lambda unit: unit.create(jobs.row(DAYS_CHANGED, stage.workspace_id, payload)),
    )
    yield
    waiting = stage.api.get("/api/bookings/waiting?day=2030-03-09")["waiting"]
    assert entry["id"] in {each["id"] for each in waiting}


def tell_waiting(stage: Stage) -> Steps:
    _one_who_waits(stage, "Told")
    yield
    waiting = stage.api.get("/api/bookings/waiting?day=2030-03-09")["waiting"]
    assert next(each["told"] for each in waiting if each["name"] == "Told") is not None


def reports_count(stage: Stage) -> Steps:
    stage.api.get("/api/reports")
    state = sums.find_state(stage.workspace_id)
    assert state is not None
    # Nobody has asked for a month, so the job ends.
    state.read_at -= timedelta(days=31)
    run_unit(stage.workspace_id, None, lambda unit: unit.save(state))
    run_unit(
        stage.workspace_id,
        None,
        lambda unit: unit.create_job(
            jobs.row(COUNT_REPORTS, stage.workspace_id, {}), at_once=False
        ),
    )
    yield
    ended = sums.find_state(stage.workspace_id)
    assert ended is not None
    assert not ended.has_job


def directory_follows(stage: Stage) -> Steps:
    call_console(stage.workspace_id, "set_booking_page", isOn=True)
    call_console(stage.workspace_id, "admit_assistants", isOn=True, isListed=True)
    call_console(stage.workspace_id, "set_workspace", name="Zanzibar Salon")
    renamed = Words.of_search(name="zanzibar", town="", trade="")
    assert directory.find(renamed) == ([], False)
    yield
    (found,), _ = directory.find(renamed)
    assert found.workspace.id == stage.workspace_id


def busy_times_read(stage: Stage) -> Steps:
    resource = stage.things.resource
    url = "https://calendar.example/anna.ics"
    stage.api.post("/api/busy-calendars/create", {"resourceId": resource, "url": url})
    calendar = BusyCalendarRow.of(stage.workspace_id, resource)
    assert calendar is not None
    # The service refuses this machine's address without a request, so no test leaves the machine.
    busy_links.set_link(calendar, "https://127.0.0.1/", "127.0.0.1")
    run_unit(stage.workspace_id, None, lambda unit: unit.save(calendar))
    yield
    read = BusyCalendarRow.of(stage.workspace_id, resource)
    assert read is not None
    assert (read.status, read.problem) == ("failing", "not_fetched")


def busy_times_clear(stage: Stage) -> Steps:
    resource, noon = stage.things.resource, "2027-03-03"
    url = "https://calendar.example/anna.ics"
    stage.api.post("/api/busy-calendars/create", {"resourceId": resource, "url": url})

    def stage_busy(unit: UnitOfWork) -> None:
        calendar_days.stage_elsewhere(unit, resource, {noon: "0-1440"})

    stage.patch(busy_readings, "clear_days", lambda *_: None)
    stage.api.post("/api/busy-calendars/delete", {"id": resource})
    run_unit(stage.workspace_id, None, stage_busy)
    run_unit(
        stage.workspace_id,
        None,
        lambda unit: unit.create_job(
            jobs.row(CLEAR_BUSY_TIMES, stage.workspace_id, {"resourceId": resource}), at_once=False
        ),
    )
    yield
    left = calendar_days.read_elsewhere(
        stage.workspace_id, resource_id=resource, first_day="0", last_day="9"
    )
    assert left == {}


def visitor_events(stage: Stage) -> Steps:
    book(Salon.opened(stage.api), NOON)
    yield
    assert [mail["To"] for mail in stage.inbox.mails] == [ADA]


def mail_client(stage: Stage) -> Steps:
    book(Salon.opened(stage.api), NOON)
    run_jobs_here("visitor-events")
    yield
    assert [mail["To"] for mail in stage.inbox.mails] == [ADA]
    assert waiting_jobs("remind-client")


def remind_client(stage: Stage) -> Steps:
    book(Salon.opened(stage.api), NOON)
    run_jobs_here("visitor-events", "mail-client")
    mail_count = len(stage.inbox.mails)
    yield
    assert [mail["To"] for mail in stage.inbox.mails[mail_count:]] == [ADA]
    assert waiting_jobs("remind-client"), "the job of the next reminder"


def book_again(stage: Stage) -> Steps:
    salon = Salon.opened(stage.api, bookAgainDays=7)
    call_console(stage.owner.workspace.id, "set_booking_page", isOn=True, offer=[salon.service])
    version = advertising_texts.text("en", stage.owner.workspace.name).version
    booking = book(salon, NOON, advertisingVersion=version)["booking"]["id"]
    salon.set_status(booking, "completed")
    run_jobs_here("visitor-events", "mail-client")
    mail_count = len(stage.inbox.mails)
    yield
    (message,) = stage.inbox.mails[mail_count:]
    assert message["List-Unsubscribe"]


def book_with_sms(stage: Stage) -> None:
    """Book with a phone in a workspace that sends SMS, which go to a folder."""
    variables = {"SMS": "file", "SMS_FOLDER": tempfile.mkdtemp()}
    stage.variables |= variables
    for name, value in variables.items():
        stage.world.monkeypatch.setenv(name, value)
    stage.reload_settings()
    call_operator("set_sms_price", country="RU", kopecks=100)
    account_id = stage.owner.workspace.owner_id
    call_console(
        stage.workspace_id, "set_client_channels", account_id=account_id, channels=["sms", "mail"]
    )
    who = {"name": "Ada", "email": ADA, "phone": "+79147001234"}
    book(Salon.opened(stage.api), NOON, client=who)
    run_jobs_here("visitor-events")


def settle_sms(stage: Stage) -> Steps:
    """The response of the provider is lost."""

    def lose(*_: object, **__: object) -> None:
        raise sms.SmsUnknownError("lost")

    book_with_sms(stage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sms, "send", lose)
        run_jobs_here("mail-client")
    account_id = stage.owner.workspace.owner_id
    assert ledger.wallet(account_id).reserved == 200
    yield
    assert ledger.wallet(account_id).reserved == 0


def check_sms(stage: Stage) -> Steps:
    book_with_sms(stage)
    run_jobs_here("mail-client")
    (job,) = waiting_jobs("check-sms")
    yield
    assert not waiting_jobs("check-sms")
    assert stage.inbox.mails == []
    assert job.payload["kind"] == "confirmed"


def people_events(stage: Stage) -> Steps:
    submit(stage.things.form, name="Ada", email=ADA)
    yield
    assert stage.inbox.kinds == ["lead"]


def notify_member(stage: Stage) -> Steps:
    submit(stage.things.form, name="Ada", email=ADA)
    run_jobs_here("people-events")
    yield
    assert stage.inbox.kinds == ["lead"]


def notify_digest(stage: Stage) -> Steps:
    stage.patch(windows, "MOST", 1)  # so that two messages are too many for one window
    for _ in range(2):
        submit(stage.things.form, name="Ada", email=ADA)
    run_jobs_here("people-events", "notify-member")
    assert stage.inbox.kinds == ["lead"]
    yield
    assert stage.inbox.kinds == ["lead", "lead"]


def mail_invitation(stage: Stage) -> Steps:
    call_operator("invite_member", workspaceId=stage.workspace_id, email=ADA)
    yield
    assert [mail["To"] for mail in stage.inbox.mails] == [ADA]


def mail_proof(stage: Stage) -> Steps:
    invitation = call_operator("invite_member", workspaceId=stage.workspace_id, email=ADA)
    delete_all_jobs_except([])
    accept_as_new(invitation["url"].rpartition("/")[2])
    delete_all_jobs_except(waiting_jobs("mail-proof"))
    yield
    assert [mail["To"] for mail in stage.inbox.mails] == [ADA]


def mail_password_reset(stage: Stage) -> Steps:
    owner = accounts.get(stage.owner.workspace.owner_id).email
    request_reset(owner)
    yield
    assert [mail["To"] for mail in stage.inbox.mails] == [owner]


def mail_sign_up(stage: Stage) -> Steps:
    ask_to_sign_up("newcomer@example.com")
    yield
    assert [mail["To"] for mail in stage.inbox.mails] == ["newcomer@example.com"]


def mail_standing(stage: Stage) -> Steps:
    call_operator("suspend_workspace", workspaceId=stage.workspace_id)
    yield
    owner = accounts.get(stage.owner.workspace.owner_id).email
    assert [mail["To"] for mail in stage.inbox.mails] == [owner]


def close(stage: Stage) -> None:
    who = {"account_id": stage.owner.workspace.owner_id, "membership": "owner"}
    call_console(stage.workspace_id, "close_workspace", **who)


def cancel_bookings(stage: Stage) -> Steps:
    close(stage)
    delete_all_jobs_except(waiting_jobs("cancel-bookings-of-closed"))
    yield
    assert waiting_jobs("cancel-bookings-of-closed") == []


def delete_workspace(stage: Stage) -> Steps:
    close(stage)
    delete_all_jobs_except(waiting_jobs("delete-workspace"))
    stage.world.time.pass_by(days=30)
    yield
    assert workspaces.members(stage.workspace_id) == []


def mail_password_set(stage: Stage) -> Steps:
    owner = accounts.get(stage.owner.workspace.owner_id).email
    call_operator("set_password", email=owner, password="battery staple")
    yield
    assert [mail["To"] for mail in stage.inbox.mails] == [owner]


def mail_confirmed(stage: Stage) -> Steps:
    who = {"account_id": stage.owner.workspace.owner_id}
    call_console(stage.workspace_id, "create_key", **who, name="Till", scopes=["crm:read"])
    yield
    owner = accounts.get(stage.owner.workspace.owner_id).email
    assert owner in [mail["To"] for mail in stage.inbox.mails]


def mail_booking_link(stage: Stage) -> Steps:
    salon, page = Salon.opened(stage.api), {"workspace": stage.owner.workspace.slug}
    call_console(stage.workspace_id, "set_booking_page", isOn=True, offer=[salon.service])
    requested(stage.workspace_id, page | salon.order(NOON))
    yield
    assert [mail["To"] for mail in stage.inbox.mails] == [ADA]


def mail_reply(stage: Stage) -> Steps:
    ask(stage.things.agent, f"I am Ada, {ADA}")
    dialog = stage.api.get(f"/api/agents/dialogs?agentId={stage.things.agent}")["dialogs"][0]["id"]
    call_console(stage.workspace_id, "reply_to_visitor", id=dialog, text="Hello")
    yield
    assert [mail["To"] for mail in stage.inbox.mails] == [ADA]


def new_test_workspace(stage: Stage) -> str:
    """Return the id of a new test workspace of the owner. No job waits for it."""
    email = accounts.get(stage.owner.workspace.owner_id).email
    made = call_operator("create_workspace", owner=email, name="Tests", isTest=True)
    delete_all_jobs_except([])
    return str(made["workspaceId"])


def wipe_test_workspace(stage: Stage) -> Steps:
    workspace_id = new_test_workspace(stage)
    product = {"name": "Rye", "price": 1}
    call_console(workspace_id, "create_product", **product)
    call_operator("wipe_test_workspace", workspaceId=workspace_id)
    yield
    assert call_console(workspace_id, "list_products")["total"] == 0


def test_workspace_idle(stage: Stage) -> Steps:
    workspace_id = new_test_workspace(stage)
    jobs.schedule(jobs.row(TEST_IDLE, workspace_id, {}, job_id=workspace_id))
    yield
    (job,) = jobs.read_workspace_jobs(workspace_id)
    assert job.kind == TEST_IDLE  # It looks again in three weeks.


def mail_test_idle(stage: Stage) -> Steps:
    payload = {"at": clock.iso(clock.now())}
    jobs.schedule(jobs.row(MAIL_TEST_IDLE, new_test_workspace(stage), payload))
    yield
    owner = accounts.get(stage.owner.workspace.owner_id).email
    assert [mail["To"] for mail in stage.inbox.mails] == [owner]


def membership_ended(stage: Stage) -> Steps:
    stage.world.member("manager")
    account = accounts.require_by_email(MEMBER).id
    choose(stage.owner, account, "manager", lead=["mail"])
    call_operator("remove_member", workspaceId=stage.workspace_id, email=MEMBER)
    assert choices.find(stage.workspace_id, account_id=account)
    yield
    assert choices.find(stage.workspace_id, account_id=account) is None


def bind_proven(stage: Stage) -> None:
    """Bind a domain to the site, and prove that it is the owner's."""
    record, _ = bind(stage.api, stage.things.site)["records"]
    stage.txt_records[record["host"]] = {record["value"]}
    delete_all_jobs_except([])  # The proof is checked by the call below.
    assert bind(stage.api, stage.things.site)["status"] == "verified"


@contextmanager
def cloudfront(stage: Stage, *answers: Answer) -> Iterator[Server]:
    """Run a CloudFront with scripted responses. moto's has no tenants of a distribution."""
    server = Server(*answers)
    stage.variables["AWS_ENDPOINT_URL_CLOUDFRONT"] = f"http://127.0.0.1:{server.port}"
    yield server
    server.close()


def request_methods(server: Server) -> list[str]:
    """Return the methods of the requests."""
    return [request.split(" ")[0] for request in server.requests]


def site_domain_check(stage: Stage) -> Steps:
    bind_proven(stage)
    none = http_response(NO_TENANT.encode(), "404 Not Found")
    with cloudfront(stage, none, http_response(TENANT.encode())) as server:
        yield
        assert request_methods(server) == ["GET", "POST"]
    site = SITES.require(stage.workspace_id, record_id=stage.things.site)
    assert site.domain
    assert site.domain.state == "certificate"


def site_domain_release(stage: Stage) -> Steps:
    bind_proven(stage)
    bind(stage.api, stage.things.site, None)
    tenant = http_response(TENANT.encode(), etag="v1")
    with cloudfront(stage, tenant, tenant, http_response(b"")) as server:
        yield
        assert request_methods(server) == ["GET", "PUT", "DELETE"]


def page_html_unused(stage: Stage) -> Steps:
    old_keys = object_keys()
    body = {"id": stage.things.page, "html": "<h1>New</h1>"}
    killed_before_commit(stage, lambda: stage.api.post("/api/pages/save-html", body))
    (unused,) = object_keys() - old_keys
    yield
    assert unused not in object_keys()
    assert PAGES.require(stage.workspace_id, record_id=stage.things.page).html_key in object_keys()


def page_purge(stage: Stage) -> Steps:
    key = PAGES.require(stage.workspace_id, record_id=stage.things.page).html_key
    stage.api.post("/api/pages/delete", {"id": stage.things.page, "confirm": True})
    assert key in object_keys()
    yield
    assert key not in object_keys()
    assert PAGES.find_deleted(stage.workspace_id, record_id=stage.things.page) is None


def form_ids(stage: Stage) -> list[str]:
    """Return the ids of the workspace's forms."""
    return [form["id"] for form in stage.api.get("/api/forms/list")["forms"]]


def site_cascade(stage: Stage) -> Steps:
    stage.patch(site_deletion, "RECORDS_PER_TRANSACTION", 1)  # as if there were more than fit
    stage.api.post("/api/projects/delete", {"id": stage.things.site})
    assert stage.things.form in form_ids(stage)  # The pages are deleted first.
    yield
    assert stage.things.form not in form_ids(stage)


def site_purge(stage: Stage) -> Steps:
    key = PAGES.require(stage.workspace_id, record_id=stage.things.page).html_key
    stage.api.post("/api/projects/delete", {"id": stage.things.site})
    run_jobs_here("site-cascade")
    assert key in object_keys()
    yield
    assert key not in object_keys()
    assert SITES.find_deleted(stage.workspace_id, record_id=stage.things.site) is None


def site_restore(stage: Stage) -> Steps:
    stage.api.post("/api/projects/delete", {"id": stage.things.site})
    run_jobs_here("site-cascade")
    stage.api.post("/api/projects/restore", {"id": stage.things.site})
    assert PAGES.entries(stage.workspace_id, stage.things.site) == []
    yield
    assert PAGES.find(stage.workspace_id, record_id=stage.things.page)
    assert stage.things.form in form_ids(stage)


def webhook_events(stage: Stage) -> Steps:
    with WebhookReceiver() as server:
        stage.webhook(server, "lead.created")
        submit(stage.things.form, name="Ada", email=ADA)
        yield
        assert [event["type"] for event in server.events] == ["lead.created"]


def deliver_webhook(stage: Stage) -> Steps:
    with WebhookReceiver() as server:
        webhook = stage.webhook(server, "lead.created")
        submit(stage.things.form, name="Ada", email=ADA)
        run_jobs_here("webhook-events")
        assert deliveries(webhook) == [("lead.created", "waiting")]
        yield
        assert deliveries(webhook) == [("lead.created", "delivered")]
        assert [event["type"] for event in server.events] == ["lead.created"]


def webhook_replies(stage: Stage) -> Steps:
    place = {"workspaceId": stage.workspace_id, "url": "https://echo.example/"}
    webhook = call_operator("create_webhook", **place, events=["lead.created"])["webhook"]["id"]
    stage.world.receiver.answer = lambda request: status(500, request.body)
    submit(stage.things.form, name="Ada", email=ADA)
    run_jobs_here("webhook-events", "deliver-webhook")
    call_operator("delete_webhook", id=webhook)

    def replies() -> list[str | None]:
        return [
            delivery.reply
            for delivery in stored_deliveries.latest(
                stage.workspace_id, webhook_id=webhook, limit=9
            )
        ]

    assert ADA in str(replies())
    yield
    assert replies() == [None]


def pause_webhooks(stage: Stage) -> Steps:
    body = {"url": "https://receiver.example/", "events": ["lead.created"]}
    made = stage.api.post("/api/webhooks/create", body)["webhook"]
    # A revocation makes the job and runs it at once.
    job = jobs.row(PAUSE_WEBHOOKS, stage.workspace_id, {"keyIds": made["keyIds"]})
    run_unit(stage.workspace_id, None, lambda unit: unit.create(job))
    yield
    (webhook,) = call_operator("list_webhooks", workspaceId=stage.workspace_id)["webhooks"]
    assert webhook["offBecause"] == "key_revoked"


def end_calendar_link(stage: Stage) -> Steps:
    resource_id = stage.api.post("/api/resources/create", {"name": "Vera"})["resource"]["id"]
    stage.api.post("/api/calendar-links/create", {"resourceId": resource_id})
    job = jobs.row(END_CALENDAR_LINK, stage.workspace_id, {"resourceId": resource_id})
    run_unit(stage.workspace_id, None, lambda unit: unit.create(job))
    yield
    links = stage.api.get("/api/calendar-links")["calendarLinks"]
    assert resource_id not in [link["resourceId"] for link in links]


def workspace_export(stage: Stage) -> Steps:
    export_id = call_console(stage.workspace_id, "export_workspace")["exportId"]
    yield
    export = call_console(stage.workspace_id, "get_export", id=export_id)
    assert export["state"] == "ready"
    (key,) = (key for key in object_keys() if f"/exports/{export_id}/" in key)
    assert key.endswith(".zip")


def export_expired(stage: Stage) -> Steps:
    export_id = call_console(stage.workspace_id, "export_workspace")["exportId"]
    run_jobs_here("workspace-export")
    yield
    assert not [key for key in object_keys() if f"/exports/{export_id}/" in key]
    listed = call_console(stage.workspace_id, "list_exports")["exports"]
    assert export_id not in [export["id"] for export in listed]


def start_import(stage: Stage) -> str:
    content = b64encode(b"name,email\nEve,eve@example.org\n").decode()
    file = call_console(stage.workspace_id, "upload_file", name="t.csv", content=content)["file"]
    started = call_console(stage.workspace_id, "import_clients", fileId=file["id"])
    return str(started["importId"])


def import_of_clients(stage: Stage) -> Steps:
    import_id = start_import(stage)
    yield
    record = call_console(stage.workspace_id, "get_import", id=import_id)
    assert (record["state"], record["counts"]["created"]) == ("finished", 1)
    assert not [key for key in object_keys() if f"/imports/{import_id}/" in key]


def import_expired(stage: Stage) -> Steps:
    import_id = start_import(stage)
    run_jobs_here("import")
    yield
    with pytest.raises(NotFoundError):
        call_console(stage.workspace_id, "get_import", id=import_id)


def deliveries(webhook: str) -> list[tuple[str, str]]:
    """Return the types and states of a webhook's deliveries."""
    records = call_operator("list_webhook_deliveries", id=webhook)["deliveries"]
    return [(delivery["type"], delivery["state"]) for delivery in records]


ROWS: dict[str, Callable[[Stage], Steps]] = {
    "late-entries": late_entries,
    "late-file-uses": late_file_uses,
    "answer-expired": answer_expired,
    "settle-hold": settle_hold,
    "file-orphan": file_orphan,
    "blog-cover-unused": blog_cover_unused,
    "lapse-of-hold": lapse_of_hold,
    "booking-payment": booking_payment,
    "booking-refund": booking_refund,
    "close-receipt": close_receipt,
    "read-returned-payments": read_returned_payments,
    "end-merchant-secret": end_merchant_secret,
    "top-up-payment": top_up_payment,
    "resource-cascade": resource_cascade,
    "starts-clear": starts_clear,
    "category-cascade": category_cascade,
    "dialog-expired": dialog_expired,
    "file-purge": file_purge,
    "file-replaced": file_replaced,
    "folder-cascade": folder_cascade,
    "upload-lapsed": upload_lapsed,
    "knowledge-text-unused": knowledge_text_unused,
    "knowledge-stale": knowledge_stale,
    "knowledge-index-unused": knowledge_index_unused,
    "knowledge-fetch": knowledge_fetch,
    "reports-count": reports_count,
    "directory": directory_follows,
    "busy-times-read": busy_times_read,
    "busy-times-clear": busy_times_clear,
    "waiting-line": waiting_line,
    "waiting-days": waiting_days,
    "tell-waiting": tell_waiting,
    "visitor-events": visitor_events,
    "mail-client": mail_client,
    "remind-client": remind_client,
    "book-again": book_again,
    "settle-sms": settle_sms,
    "check-sms": check_sms,
    "people-events": people_events,
    "mail-invitation": mail_invitation,
    "mail-password-reset": mail_password_reset,
    "mail-sign-up": mail_sign_up,
    "mail-standing": mail_standing,
    "cancel-bookings-of-closed": cancel_bookings,
    "delete-workspace": delete_workspace,
    "mail-password-set": mail_password_set,
    "mail-confirmed": mail_confirmed,
    "mail-booking-link": mail_booking_link,
    "mail-reply": mail_reply,
    "mail-proof": mail_proof,
    "mail-test-idle": mail_test_idle,
    "test-workspace-idle": test_workspace_idle,
    "wipe-test-workspace": wipe_test_workspace,
    "membership-ended": membership_ended,
    "notify-member": notify_member,
    "notify-digest": notify_digest,
    "site-domain-check": site_domain_check,
    "site-domain-release": site_domain_release,
    "page-html-unused": page_html_unused,
    "page-purge": page_purge,
    "site-cascade": site_cascade,
    "site-purge": site_purge,
    "site-restore": site_restore,
    "webhook-events": webhook_events,
    "deliver-webhook": deliver_webhook,
    "webhook-replies": webhook_replies,
    "end-calendar-link": end_calendar_link,
    "pause-webhooks": pause_webhooks,
    "workspace-export": workspace_export,
    "export-expired": export_expired,
    "import": import_of_clients,
    "import-expired": import_expired,
}
FOLLOWING = {
    "webhook-events": {"deliver-webhook": 1},
    "people-events": {"notify-member": 1},
    "visitor-events": {"mail-client": 1},
    "booking-refund": {"people-events": 1, "notify-member": 1, "mail-client": 1},
    "booking-payment": {
        "people-events": 1,
        "notify-member": 2,
        "visitor-events": 1,
        "mail-client": 1,
    },
}
"""Jobs that a kind makes and that the same run finishes."""
