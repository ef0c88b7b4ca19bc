"""The test merchant of ``make dev``: its page, and its notifications to the accounts."""

from collections.abc import Callable

import pytest
import requests

from chalicelib.core.errors import AppError
from chalicelib.domains.payments.store import payments
from infra.local.devserver.inboxes import merchant
from tests.conftest import Owner, call_console
from tests.domains.payments.checkout import PRICE
from tests.factories.event_runs import run_until_idle
from tests.factories.payments import open_payment
from tests.factories.salon import Salon
from tests.transports.conftest import LocalServer

ACCOUNT = {"provider": "test", "shopId": "shop", "secret": "test_x"}


class Timers:
    """Collects what would be sent, instead of waiting."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def __call__(self, seconds: float, send: Callable[[], None]) -> "Timers":
        self.waiting.append((seconds, send))
        return self

    def start(self) -> None:
        """Do nothing: the test sends."""

    def send(self) -> list[float]:
        """Send what waits, and return after how many seconds it would have been sent."""
        sent, self.waiting = self.waiting, []
        for _, send in sent:
            send()
        return [seconds for seconds, _ in sent]


@pytest.fixture
def url(
    local_server: LocalServer, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> str:
    """The base URL of the server, which notifications are sent to."""
    url = f"http://127.0.0.1:{local_server.port}"
    monkeypatch.setenv("PUBLIC_URL", url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    reload_settings()
    return url


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    """The timers of notifications."""
    timers = Timers()
    monkeypatch.setattr(merchant, "Timer", timers)
    return timers


@pytest.fixture
def payment_id(owner: Owner, url: str) -> str:
    """The id of an open payment at the test merchant."""
    workspace = owner.workspace
    call_console(workspace.id, "set_merchant", account_id=workspace.owner_id, **ACCOUNT)
    api = owner.api()
    # Whole days off are a row that has the names of other rows' numbers for texts.
    holidays = {"startAt": "2027-05-01", "endAt": "2027-05-09"}
    api.post("/api/resources/create-time-off", holidays)
    salon = Salon.opened(api, requirePayment=True, price=PRICE)
    booking = salon.book("2027-03-03T12:00", ignoreSchedule=True, status="pending_payment")
    return open_payment(workspace.id, booking["id"])


@pytest.mark.parametrize(
    ("choice", "seconds"),
    [("once", [0]), ("twice", [0, 1]), ("late", [merchant.LATE_SECONDS]), ("never", [])],
)
def test_a_notification_arrives_as_the_developer_chooses(
    owner: Owner, url: str, timers: Timers, payment_id: str, choice: str, seconds: list[float]
) -> None:
    form = {"action": "pay", "notification": choice}
    page = f"{url}{merchant.PATH}/{payment_id}"
    assert requests.get(page, timeout=10).status_code == 200
    assert requests.post(page, form, timeout=10, allow_redirects=False).status_code == 303
    assert timers.send() == seconds
    run_until_idle()
    (payment,) = payments.latest(owner.workspace.id, 10)
    assert payment.status == ("succeeded" if seconds else "pending")


def test_a_paid_payment_can_be_returned_and_disputed(
    owner: Owner, url: str, timers: Timers, payment_id: str
) -> None:
    page = f"{url}{merchant.PATH}/{payment_id}"
    seen = []
    for action in ("return", "pay", "return", "dispute", "win"):
        requests.post(page, {"action": action}, timeout=10, allow_redirects=False)
        timers.send()
        run_until_idle()
        (payment,) = payments.latest(owner.workspace.id, 10)
        seen.append((payment.status, int(payment.refunded_at_provider), int(payment.disputed)))
    assert seen == [
        ("pending", 0, 0),
        ("succeeded", 0, 0),
        ("succeeded", PRICE, 0),
        ("succeeded", PRICE, PRICE),
        ("succeeded", PRICE, 0),
    ]


def test_a_secret_without_the_prefix_is_refused(owner: Owner, url: str) -> None:
    body = ACCOUNT | {"secret": "x"}
    with pytest.raises(AppError) as refusal:
        call_console(owner.workspace.id, "set_merchant", **body)
    assert refusal.value.errors[0].field == "secret"
