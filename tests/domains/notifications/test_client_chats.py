"""Clients link chats in messengers by codes from the pages of their bookings, and end the links."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.clients.store import client_chats
from chalicelib.domains.clients.store.client_chats import Chat
from chalicelib.domains.notifications.rules.messenger_updates import stop_mark
from chalicelib.engine import jobs
from tests import fakes
from tests.conftest import (
    Api,
    Owner,
    all_rows,
    call_console,
    run_concurrently,
)
from tests.domains.notifications.chats import (
    LINK,
    WRONG,
    ask,
    booking_row,
    chats_of,
    link,
    link_max,
    post_max,
    token_of,
    visitor,
)
from tests.domains.notifications.clients import ADA, book
from tests.domains.notifications.helpers import link as link_member
from tests.domains.notifications.helpers import send_text
from tests.domains.notifications.inbox import Inbox
from tests.factories.salon import Salon
from tests.fakes.max_messenger import FakeMax, said, started
from tests.fakes.telegram import NAME, FakeTelegram

NOON, NINE = "2027-03-03T12:00:00Z", "2027-03-03T09:00:00Z"
pytestmark = pytest.mark.usefixtures("database", "telegram", "inbox")


@pytest.fixture
def salon(api: Api) -> Salon:
    return Salon.opened(api)


@pytest.fixture
def booking(salon: Salon) -> str:
    """A booking of Ada by a stranger."""
    return str(book(salon, NOON)["booking"]["id"])


def test_a_code_has_22_characters_of_a_link_and_is_stored_as_a_hash(
    owner: Owner, booking: str
) -> None:
    asked = ask(owner, booking)
    assert re.fullmatch(r"[\w-]{22}", asked["code"], re.ASCII)
    assert asked["url"] == f"https://t.me/{NAME}?start={asked['code']}"
    assert asked["code"] not in str(all_rows())


def test_a_stranger_links_a_chat_to_the_booking_only(owner: Owner, booking: str) -> None:
    answer = link(owner, booking)
    assert f"“{owner.workspace.name}” about this booking" in answer
    assert chats_of(owner, booking) == [("telegram", 7, False)]


def test_the_link_of_a_booking_by_the_business_is_for_the_client(
    owner: Owner, salon: Salon
) -> None:
    made = salon.book(NOON)["id"]
    answer = link(owner, made)
    assert f"“{owner.workspace.name}” about your bookings" in answer
    assert chats_of(owner, made) == [("telegram", 7, True)]


def test_a_program_that_booked_with_a_key_links_the_booking_only(
    owner: Owner, salon: Salon
) -> None:
    made = salon.book(NOON)["id"]
    token = token_of(owner, made, Purpose.SHARED)
    code = visitor.post(LINK, {"token": token, "messenger": "telegram"})["code"]
    send_text(7, f"/start {code}")
    assert chats_of(owner, made) == [("telegram", 7, False)]


def test_a_code_works_once(owner: Owner, booking: str) -> None:
    code = ask(owner, booking)["code"]
    assert not send_text(7, f"/start {code}").startswith(WRONG)
    assert not send_text(7, f"/start {code}").startswith(WRONG)  # The same chat, again.
    assert send_text(8, f"/start {code}").startswith(WRONG)
    send_text(7, "/stop")
    assert send_text(7, f"/start {code}").startswith(WRONG)
    assert chats_of(owner, booking) == []


def test_of_two_chats_with_one_code_one_is_linked(owner: Owner, booking: str) -> None:
    code = ask(owner, booking)["code"]
    answers = run_concurrently(2, lambda number: send_text(10 + number, f"/start {code}"))
    assert sorted(answer.startswith(WRONG) for answer in answers) == [False, True]
    assert len(chats_of(owner, booking)) == 1


def test_a_code_ends_after_24_hours(owner: Owner, booking: str) -> None:
    begun = clock.now()
    early, late = (ask(owner, booking)["code"] for _ in range(2))
    with clock.using(lambda: begun + timedelta(hours=23, minutes=59)):
        assert not send_text(7, f"/start {early}").startswith(WRONG)
    with clock.using(lambda: begun + timedelta(hours=24, minutes=1)):
        assert send_text(8, f"/start {late}").startswith(WRONG)


@pytest.mark.parametrize("code", ["x" * 22, "", "../..", "x" * 5000])
def test_a_guess_links_nothing(owner: Owner, booking: str, code: str) -> None:
    send_text(7, f"/start {code}")
    assert chats_of(owner, booking) == []


def test_wrong_codes_are_limited_for_both_messengers(
    owner: Owner,
    booking: str,
    max_bot: FakeMax,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    code, code_of_max = ask(owner, booking)["code"], ask(owner, booking, "max")["code"]
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    for number in range(5):
        send_text(7, f"/start wrong{number}")
        post_max(started(7, f"wrong{number}", 100 + number))
    assert send_text(7, f"/start {code}").startswith("Too many wrong codes")
    post_max(started(7, code_of_max, 200))
    assert "Слишком много" in max_bot.texts[-1]
    assert chats_of(owner, booking) == []


def test_the_code_of_an_erased_client_is_wrong(owner: Owner, booking: str) -> None:
    code = ask(owner, booking)["code"]
    owner.api().post("/api/clients/delete", {"email": ADA})
    assert send_text(7, f"/start {code}").startswith(WRONG)
    assert chats_of(owner, booking) == []


def test_erasing_a_client_ends_the_links(
    owner: Owner, salon: Salon, booking: str, max_bot: FakeMax
) -> None:
    other = salon.book(NINE)["id"]
    link(owner, booking)
    link(owner, other, 8)
    link_max(owner, other)
    assert len(chats_of(owner, booking)) == 3
    owner.api().post("/api/clients/delete", {"email": ADA})
    assert chats_of(owner, booking) == []
    for chat in (Chat("telegram", 7), Chat("telegram", 8), Chat("max", 7)):
        assert client_chats.of_chat(chat) == []


def test_a_link_at_the_moment_of_an_erasure_does_not_outlive_it(owner: Owner, salon: Salon) -> None:
    made = salon.book(NOON)["id"]
    code = ask(owner, made)["code"]

    def act(number: int) -> object:
        if number:
            return send_text(7, f"/start {code}")
        return owner.api().post("/api/clients/delete", {"email": ADA})

    run_concurrently(2, act)
    assert client_chats.of_chat(Chat("telegram", 7)) == []


def test_emptying_and_closing_a_workspace_end_the_links(owner: Owner, tester: Owner) -> None:
    made = Salon.opened(tester.api()).book(NOON)["id"]
    link(tester, made)
    call_console(tester.workspace.id, "wipe_test_workspace", slug=tester.workspace.slug)
    jobs.run(JOB_HANDLERS)
    assert client_chats.of_chat(Chat("telegram", 7)) == []


def test_a_code_links_in_its_own_workspace_only(
    owner: Owner, booking: str, new_owner: Callable[..., Owner]
) -> None:
    other = new_owner()
    there = book(Salon.opened(other.api()), NOON)["booking"]["id"]
    link(owner, booking)
    assert chats_of(other, there) == []
    with pytest.raises(NotFoundError):
        call_console(
            other.workspace.id,
            "list_client_chats",
            clientId=booking_row(owner, booking).client_id,
        )


def test_stop_ends_the_only_link(owner: Owner, booking: str) -> None:
    link(owner, booking)
    assert owner.workspace.name in send_text(7, "/stop")
    assert chats_of(owner, booking) == []


def test_stop_asks_for_the_business_when_there_are_several(
    owner: Owner, booking: str, new_owner: Callable[..., Owner]
) -> None:
    other = new_owner()
    there = book(Salon.opened(other.api()), NOON)["booking"]["id"]
    link(owner, booking)
    link(other, there)
    question = send_text(7, "/stop")
    assert owner.workspace.name in question
    assert other.workspace.name in question
    assert chats_of(owner, booking)
    assert chats_of(other, there)
    send_text(7, f"/stop_{stop_mark(owner.workspace.id)}")
    assert chats_of(owner, booking) == []
    assert chats_of(other, there)
    # The old choice does not end what is left.
    assert other.workspace.name in send_text(7, f"/stop_{stop_mark(owner.workspace.id)}")
    assert chats_of(other, there)
    send_text(7, "/stop_all")
    assert chats_of(other, there) == []


def test_stop_ends_a_members_and_a_clients_link_of_one_business(owner: Owner, booking: str) -> None:
    link_member(owner, 7)
    link(owner, booking)
    send_text(7, "/stop")
    assert chats_of(owner, booking) == []
    assert not call_console(
        owner.workspace.id, "get_telegram", account_id=owner.workspace.owner_id
    )["isLinked"]


def test_a_client_links_max_and_reads_the_answer_there(
    owner: Owner, booking: str, max_bot: FakeMax
) -> None:
    link_max(owner, booking)
    assert chats_of(owner, booking) == [("max", 7, False)]
    assert owner.workspace.name in max_bot.texts[-1]
    assert post_max(said(7, "/stop", "mid.1")).status == 200
    assert chats_of(owner, booking) == []


def test_an_answer_that_max_does_not_take_is_sent_when_the_update_comes_again(
    owner: Owner, booking: str, max_bot: FakeMax
) -> None:
    update = started(7, ask(owner, booking, "max")["code"])
    max_bot.failures = [(500, {"code": "internal", "message": ""})]
    assert post_max(update).status == 502
    assert post_max(update).status == 200
    assert len(max_bot.texts) == 1
    assert chats_of(owner, booking) == [("max", 7, False)]


def test_a_user_who_stops_the_bot_at_max_ends_the_links(
    owner: Owner, booking: str, max_bot: FakeMax
) -> None:
    link_max(owner, booking)
    max_bot.sent_messages.clear()
    assert post_max(started(7, None, update_type="bot_stopped")).status == 200
    assert chats_of(owner, booking) == []
    assert max_bot.texts == []


@pytest.mark.usefixtures("max_bot")
@pytest.mark.parametrize("secret", ["", "wrong", "секрет"])
def test_max_must_know_the_secret(owner: Owner, booking: str, secret: str) -> None:
    code = ask(owner, booking, "max")["code"]
    assert post_max(started(7, code), secret).status == 403
    assert chats_of(owner, booking) == []


def test_the_webhook_of_max_needs_a_bot() -> None:
    assert visitor.call("POST", "/api/max/webhook", started(7, "x")).status == 404


def test_only_messengers_that_are_set_up_and_chosen_are_offered(
    owner: Owner, salon: Salon, booking: str, max_bot: FakeMax
) -> None:
    token = token_of(owner, booking)

    def offered() -> Any:
        return visitor.post("/api/public/bookings/by-token", {"token": token})["messengers"]

    assert offered() == ["telegram", "max"]
    owner.api().post("/api/client-channels/update", {"channels": ["max", "mail"]})
    assert offered() == ["max"]
    assert book(salon, NINE)["messengers"] == ["max"]
    refused = visitor.call("POST", LINK, {"token": token, "messenger": "telegram"})
    assert (refused.status, refused.data["key"]) == (409, "messenger_not_offered")


def test_without_a_bot_no_page_names_a_messenger(
    owner: Owner,
    booking: str,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    path = f"/booking/{token_of(owner, booking)}"
    assert "Telegram" in visitor.call("GET", path).body.decode()
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN")
    reload_settings()
    page = visitor.call("GET", path).body.decode()
    assert "Telegram" not in page
    assert "messenger" not in page


def test_the_page_of_a_booking_shows_the_link_and_the_code(owner: Owner, booking: str) -> None:
    path = f"/booking/{token_of(owner, booking)}"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = b"action=messenger&messenger=telegram"
    answer = visitor.call("POST", path, body, headers)
    assert answer.status == 200
    code = re.search(rf'href="https://t.me/{NAME}\?start=([\w-]+)"', answer.body.decode())
    assert code
    assert not send_text(7, f"/start {code[1]}").startswith(WRONG)
    assert chats_of(owner, booking)
    # A messenger that is not offered changes nothing.
    assert (
        "max.ru"
        not in visitor.call("POST", path, b"action=messenger&messenger=max", headers).body.decode()
    )


def test_a_messenger_that_does_not_answer_leaves_the_page_of_the_booking(
    owner: Owner, booking: str, max_bot: FakeMax
) -> None:
    max_bot.breaks = fakes.status(502)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    path = f"/booking/{token_of(owner, booking)}"
    answer = visitor.call("POST", path, b"action=messenger&messenger=max", headers)
    assert answer.status == 502
    assert "/booking/" in answer.body.decode()


def test_the_console_shows_the_chats_of_a_client_and_ends_them(owner: Owner, booking: str) -> None:
    link(owner, booking)
    client_id = booking_row(owner, booking).client_id
    (chat,) = call_console(owner.workspace.id, "list_client_chats", clientId=client_id)["chats"]
    assert chat.keys() == {"messenger", "bookingId", "linkedAt"}
    place = {"clientId": client_id, "messenger": "telegram", "bookingId": booking}
    unlinked = call_console(owner.workspace.id, "unlink_client_chat", **place)
    assert unlinked == {"wasLinked": True}
    assert call_console(owner.workspace.id, "unlink_client_chat", **place) == {"wasLinked": False}
    assert client_chats.of_chat(Chat("telegram", 7)) == []


def test_no_log_line_has_the_id_of_a_chat(
    owner: Owner, booking: str, telegram: FakeTelegram, capfd: pytest.CaptureFixture[str]
) -> None:
    code = ask(owner, booking)["code"]
    send_text(987654321, f"/start {code}")
    send_text(987654321, "/stop")
    assert "987654321" not in "".join(capfd.readouterr())


def test_an_export_has_no_chats(owner: Owner, booking: str, inbox: Inbox) -> None:
    link(owner, booking, 987654321)
    client_id = booking_row(owner, booking).client_id
    known = call_console(owner.workspace.id, "export_client", id=client_id)
    assert "987654321" not in str(known)
