"""Lists of bookings by date, resource and search."""

import pytest

from tests.conftest import Api, Time
from tests.factories.salon import CREATE, LIST, Salon


class TestList:
    @pytest.fixture
    def booking_ids(self, salon: Salon, time: Time) -> dict[str, str]:
        """Three bookings, on Monday, Tuesday and Wednesday. By start, b comes before a."""
        ids = {}
        for name, start in (
            ("Ada Lovelace", "2027-01-19T10:00"),
            ("Ёлкина", "2027-01-18T10:00"),
            ("Bob", "2027-01-20T00:00+03:00"),
        ):
            time.pass_by(minutes=1)
            who = {"name": name, "phone": f"8 495 123-45-6{len(ids)}"}
            body = salon.order(start, ignoreSchedule=True) | {"client": who}
            ids[name.split()[0]] = salon.api.post(CREATE, body)["booking"]["id"]
        return ids

    @staticmethod
    def names(api: Api, query: str = "") -> list[str]:
        page = api.get(f"{LIST}?{query}")
        assert page["pagination"]["total"] == len(page["bookings"])
        return [booking["client"]["name"].split()[0] for booking in page["bookings"]]

    def test_dates_are_read_in_the_zone_of_the_resource(self, api: Api, time: Time) -> None:
        salon = Salon.opened(api, [{"timezone": "Asia/Tokyo"}])
        salon.book("2027-01-18T00:30", ignoreSchedule=True)
        day = "from=2027-01-18&to=2027-01-18"
        assert self.names(api, day) == []
        assert self.names(api, f"{day}&resourceId={salon.resource}") == ["Ada"]
        assert self.names(api, f"{day}&serviceId={salon.service}") == ["Ada"]

    @pytest.mark.parametrize(
        ("search", "expected_names"),
        [
            ("елкина", ["Ёлкина"]),
            ("LOVE", ["Ada"]),
            ("8 (495) 123-45-61", ["Ёлкина"]),
            ("+7 495 123 45 61", ["Ёлкина"]),
            ("74951234562", ["Bob"]),
            ("123-45-60", ["Ada"]),
            ("8 495 123", ["Bob", "Ada", "Ёлкина"]),
            ("nobody", []),
        ],
    )
    @pytest.mark.usefixtures("booking_ids")
    def test_the_search_finds_clients_and_phones_in_any_spelling(
        self, search: str, expected_names: list[str], api: Api
    ) -> None:
        from urllib.parse import quote

        assert self.names(api, f"q={quote(search)}") == expected_names
