"""Tests of new bookings and of time zones."""

from collections import Counter
from datetime import date
from typing import Any

import pytest

from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.sites.store import site_visits
from chalicelib.engine import metrics
from tests.conftest import Api, Owner, Time
from tests.factories.examples import FORM, submit
from tests.factories.salon import CREATE, LIST, Salon, check_calendars, invalid, refusal


class TestCreate:
    def test_a_booking_keeps_a_snapshot_of_service_resource_and_client(
        self, api: Api, salon: Salon
    ) -> None:
        api.post("/api/services/update", {"id": salon.service, "bufferAfterMin": 15})
        booking = salon.book("2027-01-18T10:00", notes="By the window")
        client = api.get("/api/clients/list")["clients"][0]
        api.post(
            "/api/services/update",
            {"id": salon.service, "name": "Cut", "price": 1, "durationMin": 30},
        )
        api.post("/api/resources/update", {"id": salon.resource, "timezone": "Asia/Tokyo"})
        api.post("/api/clients/update", {"id": client["id"], "name": "Countess"})
        current = api.get(f"/api/bookings/{booking['id']}")["booking"]
        assert current == booking
        assert current | {"id": "", "createdAt": "", "updatedAt": "", "statusHistory": []} == {
            "id": "",
            "status": "confirmed",
            "serviceId": salon.service,
            "serviceName": "Haircut",
            "resourceId": salon.resource,
            "resourceName": "Stylist 0",
            "startAt": "2027-01-18T07:00:00.000Z",
            "endAt": "2027-01-18T08:00:00.000Z",
            "startLocal": "2027-01-18T10:00:00+03:00",
            "weekday": "mon",
            "durationMin": 60,
            "timezone": "Europe/Moscow",
            "price": 150_000,
            "client": {
                "id": client["id"],
                "name": "Ada",
                "phone": None,
                "phoneEntered": None,
                "email": "ada@example.com",
            },
            "notes": "By the window",
            "source": "api",
            "holdExpiresAt": None,
            "externalId": None,
            "metadata": {},
            "createdAt": "",
            "updatedAt": "",
            "version": 1,
            "statusHistory": [],
            "mails": [],
        }
        (event,) = current["statusHistory"]
        assert (event["status"], event["reason"], event["move"]) == ("confirmed", None, None)

    def test_a_booking_counts_for_its_client_and_is_the_last_activity(
        self, api: Api, owner: Owner, salon: Salon, time: Time
    ) -> None:
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        lead = submit(form, name="Ada", email="ada@example.com")
        submit(form, name="Bob", email="bob@example.com")
        time.pass_by(minutes=1)
        booking = salon.book("2027-01-18T10:00")
        client = api.get(f"/api/clients/{booking['client']['id']}")
        assert client["leads"][0]["id"] == lead
        assert client["bookings"] == [
            {
                "id": booking["id"],
                "status": "confirmed",
                "serviceName": "Haircut",
                "startAt": booking["startAt"],
            }
        ]
        assert (client["client"]["leadsCount"], client["client"]["bookingsCount"]) == (1, 1)
        newest = api.get("/api/clients/list?sort=lastActivityDesc")["clients"][0]
        assert newest["id"] == client["client"]["id"]

    def test_a_booking_creates_a_new_client_or_fills_in_empty_fields(
        self, api: Api, salon: Salon
    ) -> None:
        first = salon.book("2027-01-18T10:00", "Eve")
        who = {"name": "Eve B", "email": "EVE@example.com", "phone": "8 (495) 123-45-67"}
        second = api.post(CREATE, salon.order("2027-01-18T11:00") | {"client": who})["booking"]
        assert first["client"]["id"] == second["client"]["id"]
        assert second["client"]["name"] == "Eve B"
        (client,) = api.get("/api/clients/list")["clients"]
        assert (client["name"], client["phone"]) == ("Eve", "+74951234567")
        assert (client["bookingsCount"], api.get("/api/crm/stats")["clients"]) == (
            2,
            {"total": 1, "new": 1},
        )

    def test_bookings_are_listed_by_their_client(self, api: Api, salon: Salon) -> None:
        ada = salon.book("2027-01-18T10:00", "Ada")
        eve = salon.book("2027-01-18T11:00", "Eve")
        for booking in (ada, eve):
            page = api.get(f"{LIST}?clientId={booking['client']['id']}")
            assert [listed_booking["id"] for listed_booking in page["bookings"]] == [booking["id"]]
            assert page["pagination"]["total"] == 1
        assert api.get(f"{LIST}?clientId=nobody")["bookings"] == []

    def test_a_booking_for_a_client_id_leaves_the_clients_contacts(
        self, api: Api, salon: Salon
    ) -> None:
        client = salon.book("2027-01-18T10:00")["client"]
        body = salon.order("2027-01-18T11:00") | {"clientId": client["id"]}
        del body["client"]
        assert api.post(CREATE, body)["booking"]["client"] == client
        assert api.call_refused("POST", CREATE, body | {"clientId": "none"}).status == 404

    @pytest.mark.parametrize(
        ("client", "field"),
        [
            ({"name": "Ada"}, "client"),
            ({"name": "Ada", "phone": "call me"}, "client.phone"),
            ({"name": "Ada", "email": "nobody"}, "client.email"),
            ({"email": "ada@example.com"}, "client.name"),
            (None, "client"),
        ],
    )
    def test_a_booking_needs_a_phone_or_email(self, client: Any, field: str, salon: Salon) -> None:
        body = salon.order("2027-01-18T10:00") | {"client": client}
        invalid(salon.api.call("POST", CREATE, body), field)

    @pytest.mark.parametrize("zone", ["Europe/Moscow", "Asia/Vladivostok", "America/Los_Angeles"])
    def test_bookings_with_anyone_are_shared_equally(self, zone: str, api: Api, time: Time) -> None:
        salon = Salon.opened(api, [{"timezone": zone}] * 3)
        booked = Counter[str]()
        for count, hour in enumerate([9, 12, 17, 10, 16, 11, 13, 15, 14], 1):
            booking = salon.book(f"2027-01-18T{hour:02}:00", f"C {hour}")
            booked[booking["resourceId"]] += 1
            assert max(booked.values()) == -(-count // 3)

    def test_the_least_busy_resource_of_the_local_day_is_booked(self, api: Api, time: Time) -> None:
        salon = Salon.opened(api, [{}, {}, {}])
        first, second, third = salon.resources
        for hour in (9, 10):
            salon.book(f"2027-01-18T{hour:02}:00", f"A {hour}", resourceId=first)
        salon.book("2027-01-18T09:00", "B", resourceId=second)
        # Neither bookings of another day nor cancelled ones count.
        for day, hour in (("17", 9), ("19", 9), ("19", 10)):
            salon.book(f"2027-01-{day}T{hour:02}:00", f"C {day} {hour}", resourceId=third)
        cancelled = [
            salon.book(f"2027-01-18T{hour}:00", f"D {hour}", resourceId=third) for hour in (14, 15)
        ]
        for booking in cancelled:
            salon.set_status(booking["id"], "cancelled")
        assert salon.book("2027-01-18T16:00")["resourceId"] == third

    def test_one_that_is_busy_then_is_not_chosen_whatever_its_day(
        self, api: Api, time: Time
    ) -> None:
        salon = Salon.opened(api, [{}, {}])
        first, second = salon.resources
        for hour in (9, 11, 12):
            salon.book(f"2027-01-18T{hour:02}:00", f"A {hour}", resourceId=first)
        salon.book("2027-01-18T10:00", "B", resourceId=second)
        assert salon.book("2027-01-18T10:00", "C")["resourceId"] == first

    def test_equals_take_turns_by_the_day(self, api: Api, time: Time) -> None:
        salon = Salon.opened(api, [{}, {}])
        firsts = [
            salon.book(f"2027-01-{day}T10:00", f"C {day}")["resourceId"] for day in range(18, 30)
        ]
        assert set(firsts) == set(salon.resources)

    def test_a_taken_time_is_refused_with_bookable_alternatives(self, salon: Salon) -> None:
        salon.book("2027-01-18T10:00")
        data = refusal(salon.try_to_book("2027-01-18T10:00", "Bob"))
        starts = [alternative["startLocal"][:16] for alternative in data["alternatives"]]
        assert starts == [f"2027-01-18T{hour}:00" for hour in ("09", "11", "12", "13", "14")]
        assert data["resources"][0]["timezone"] == "Europe/Moscow"
        assert salon.book(data["alternatives"][0]["startAt"], "Bob")

    @pytest.mark.parametrize(
        ("start", "reason"),
        [
            ("2027-01-18T08:00", "closed"),
            ("2027-01-18T10:30", "closed"),
            ("2027-01-18T17:30", "closed"),
            ("2027-06-18T10:00", "outside_horizon"),
        ],
    )
    def test_a_start_that_is_not_a_listed_slot_is_refused(
        self, start: str, reason: str, salon: Salon
    ) -> None:
        refusal(salon.try_to_book(start), reason)
        assert salon.book(start, ignoreSchedule=True)

    def test_time_off_and_notice_are_respected(self, api: Api, time: Time) -> None:
        salon = Salon.opened(api, minNoticeMin=24 * 60)
        refusal(salon.try_to_book("2027-01-16T14:00"), "too_little_notice")
        assert salon.book("2027-01-16T15:00")
        body = {"startAt": "2027-01-18", "endAt": "2027-01-18"}
        api.post("/api/resources/create-time-off", body)
        data = refusal(salon.try_to_book("2027-01-18T10:00"), "time_off")
        assert data["alternatives"][0]["startLocal"][:10] in {"2027-01-17", "2027-01-19"}
        assert salon.book("2027-01-18T10:00", ignoreSchedule=True)

    @pytest.mark.parametrize(
        "start", ["2027-01-15T14:00", "2027-01-14", "2027-01-18T10:00:30", "soon"]
    )
    def test_a_start_that_is_not_a_future_whole_minute_is_refused(
        self, start: str, salon: Salon
    ) -> None:
        invalid(salon.try_to_book(start), "startAt")

    def test_the_past_can_be_booked_when_the_schedule_is_ignored(self, salon: Salon) -> None:
        assert salon.book("2026-12-31T23:00", ignoreSchedule=True)["weekday"] == "thu"

    def test_other_bookings_and_deleted_resources_are_never_ignored(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        other = Salon.opened(api)
        salon.book("2027-01-18T03:00", ignoreSchedule=True)
        options = {"ignoreSchedule": True}
        refusal(salon.try_to_book("2027-01-18T03:30", "Bob", **options))
        answer = salon.try_to_book("2027-01-19T03:30", resourceId=other.resource, **options)
        refusal(answer, "not_bound")
        answer = salon.try_to_book("2027-01-19T03:30", resourceId="none", **options)
        assert (answer.status, answer.data["code"]) == (404, "not_found")
        api.post("/api/services/update", {"id": salon.service, "status": "inactive"})
        refusal(salon.try_to_book("2027-01-19T03:30", **options), "service_inactive")
        api.post("/api/services/delete", {"id": salon.service})
        assert salon.try_to_book("2027-01-19T03:30", **options).status == 404

    def test_a_booking_counts_for_its_site(self, api: Api, owner: Owner, time: Time) -> None:
        site = api.post("/api/projects/create", {"title": "Salon"})["project"]["id"]
        salon = Salon.opened(api, siteId=site)
        salon.book("2027-01-18T10:00")
        day = date(2027, 1, 15)
        subject = site_visits.subject(site)
        assert metrics.read(owner.workspace.id, subject=subject, first=day, last=day)[
            day
        ].totals == {"bookings": 1}

    def test_a_full_day_takes_no_more_bookings(
        self, salon: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(calendar_days, "MAX_ENTRIES", 2)
        for hour in (10, 11):
            salon.book(f"2027-01-18T{hour}:00")
        refusal(salon.try_to_book("2027-01-18T12:00"), "day_full")


class TestZones:
    def test_a_start_without_offset_is_in_the_resources_zone(self, api: Api, time: Time) -> None:
        salon = Salon.opened(api, [{"timezone": "Asia/Kolkata"}])
        booking = salon.book("2027-01-18T09:00")
        assert (booking["startAt"], booking["timezone"]) == (
            "2027-01-18T03:30:00.000Z",
            "Asia/Kolkata",
        )
        assert (booking["startLocal"], booking["weekday"]) == ("2027-01-18T09:00:00+05:30", "mon")

    def test_a_start_without_offset_is_refused_if_the_resources_zones_differ(
        self, api: Api, time: Time
    ) -> None:
        salon = Salon.opened(api, [{"timezone": "Asia/Kolkata"}, {"timezone": "Europe/Berlin"}])
        message = invalid(salon.try_to_book("2027-01-18T09:00"), "startAt")
        assert "Asia/Kolkata, Europe/Berlin" in message
        booking = salon.book("2027-01-18T09:00", resourceId=salon.resources[1])
        assert booking["startAt"] == "2027-01-18T08:00:00.000Z"
        assert salon.book("2027-01-18T09:00+05:30")["resourceId"] == salon.resources[0]

    def test_an_ambiguous_or_skipped_start_is_refused_with_both_offsets(
        self, api: Api, time: Time
    ) -> None:
        rules = [{"weekday": "sun", "start": "00:00", "end": "06:00"}]
        salon = Salon.opened(api, [{"timezone": "America/New_York"}], rules, horizonDays=365)
        message = invalid(salon.try_to_book("2027-11-07T01:00"), "startAt")
        assert "2027-11-07T01:00:00-04:00" in message
        assert "2027-11-07T01:00:00-05:00" in message
        assert "does not exist" in invalid(salon.try_to_book("2027-03-14T02:30"), "startAt")
        first, second = salon.book("2027-11-07T01:00-04:00"), salon.book("2027-11-07T01:00-05:00")
        assert first["startLocal"] != second["startLocal"]
        assert salon.starts(first="2027-11-07", to="2027-11-07") == [
            "2027-11-07T00:00",
            *(f"2027-11-07T0{hour}:00" for hour in (2, 3, 4, 5)),
        ]

    def test_a_day_of_23_hours_has_23_slots_and_one_of_25_has_25(
        self, api: Api, time: Time
    ) -> None:
        rules = [{"weekday": "sun", "start": "00:00", "end": "24:00"}]
        salon = Salon.opened(api, [{"timezone": "Europe/Berlin"}], rules, horizonDays=365)
        for day, count in (("2027-03-28", 23), ("2027-10-31", 25)):
            response = salon.search(first=day, to=day)
            assert len(response["slots"]) == count
            for slot in (response["slots"][0], response["slots"][2], response["slots"][-1]):
                assert salon.book(slot["startAt"])["startAt"] == slot["startAt"]
            assert len(salon.starts(first=day, to=day)) == count - 3

    def test_bookings_keep_their_time_when_the_resources_zone_changes(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        booking = salon.book("2027-01-18T10:00")
        api.post("/api/resources/update", {"id": salon.resource, "timezone": "Asia/Tokyo"})
        assert api.get(f"/api/bookings/{booking['id']}")["booking"] == booking
        # 9 to 18 in Tokyo is 3 to 12 in Moscow.
        starts = salon.starts(first="2027-01-18", to="2027-01-18")
        assert len(starts) == 8
        assert "2027-01-18T16:00" not in starts
        check_calendars(owner.workspace.id, salon.resources)

    def test_bookings_on_both_sides_of_midnight_block_each_other(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        rules = [{"weekdays": ["mon", "tue", "wed"], "start": "00:00", "end": "24:00"}]
        salon = Salon.opened(
            api,
            [{"timezone": "UTC"}],
            rules,
            durationMin=30,
            slotStepMin=15,
            bufferAfterMin=60,
        )
        salon.book("2027-01-18T23:30")
        refusal(salon.try_to_book("2027-01-19T00:15", "Bob"))
        assert salon.book("2027-01-19T01:00", "Bob")
        refusal(salon.try_to_book("2027-01-18T22:15", "Eve"))
        assert salon.book("2027-01-18T22:00", "Eve")
        check_calendars(owner.workspace.id, salon.resources)
