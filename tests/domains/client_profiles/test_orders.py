"""Orders and bookings of a client, newest first."""

from tests.conftest import Api, Time
from tests.domains.leads.helpers import ORDERS
from tests.factories.examples import FORM, submit
from tests.factories.salon import Salon


class TestPurchases:
    def test_purchases_of_forms_and_bookings_are_listed_newest_first(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        product = api.post("/api/products/create", {"name": "Comb", "price": 900})["product"]["id"]
        order_ids = []
        for number in range(7):
            time.pass_by(minutes=1)
            if number % 2:
                order_ids.append(salon.book(f"2027-01-18T{10 + number}:00")["id"])
            else:
                items = [{"productId": product, "quantity": 2}]
                lead = submit(form, name="Ada", email="ada@example.com", items=items)
                order_ids.append(lead)
        submit(form, name="Ada", email="ada@example.com", message="no order")
        salon.book("2027-01-19T10:00", "Bob")
        url = f"/api/forms/collection-orders?id={lead}"
        pages = [api.get(f"{url}&size=3&page={page}") for page in (1, 2, 3, 4)]
        assert {page["total"] for page in pages} == {7}
        orders = [order for page in pages for order in page["orders"]]
        assert [order["id"] for order in orders] == order_ids[::-1]
        assert [order["kind"] for order in orders] == ["order", "booking"] * 3 + ["order"]
        booked = orders[1]
        assert (booked["status"], booked["total"]) == ("confirmed", 150_000)
        assert booked["items"] == [
            {
                "productId": None,
                "serviceId": salon.service,
                "name": "Haircut",
                "quantity": 1,
                "price": 150_000,
            }
        ]


class TestOrders:
    def test_all_orders_of_the_client_are_listed(self, api: Api, form: str) -> None:
        rye, bun = (
            api.post("/api/products/create", {"name": name, "price": price})["product"]["id"]
            for name, price in (("Rye", 9900), ("Bun", 4500))
        )
        ada = {"name": "Ada", "email": "ada@example.com"}
        first = submit(form, **ada, items=[{"productId": rye, "quantity": 2}, {"productId": bun}])
        plain = submit(form, **ada)
        submit(form, name="Bob", email="bob@example.com", items=[{"productId": bun}])
        second = submit(form, **ada, items=[{"productId": bun}])
        response = api.get(f"{ORDERS}?id={plain}")
        assert [(o["id"], o["kind"], o["status"]) for o in response["orders"]] == [
            (second, "order", "new"),
            (first, "order", "new"),
        ]
        assert [order["total"] for order in response["orders"]] == [4500, 24300]
        assert response["orders"][1]["items"][0] == {
            "productId": rye,
            "serviceId": None,
            "name": "Rye",
            "quantity": 2,
            "price": 9900,
        }
        page = api.get(f"{ORDERS}?id={plain}&size=1&page=2")
        assert ([o["id"] for o in page["orders"]], page["total"]) == ([first], 2)

    def test_a_lead_without_a_client_has_only_its_own_order(self, api: Api, form: str) -> None:
        rye = api.post("/api/products/create", {"name": "R" * 200, "price": 1})["product"]["id"]
        order = submit(form, name="Ada", items=[{"productId": rye}] * 50)
        plain = submit(form, name="Ada")
        assert api.get(f"{ORDERS}?id={plain}")["total"] == 0
        (found_order,) = api.get(f"{ORDERS}?id={order}")["orders"]
        assert (len(found_order["items"]), found_order["total"]) == (50, 50)
        assert api.get(f"{ORDERS}?id={order}&page=2")["orders"] == []

    def test_long_orders_of_a_client_are_returned_in_full(self, api: Api, form: str) -> None:
        rye = api.post("/api/products/create", {"name": "R" * 200, "price": 1})["product"]["id"]
        ada = {"name": "Ada", "email": "ada@example.com"}
        order = submit(form, **ada, items=[{"productId": rye}] * 50)
        (found_order,) = api.get(f"{ORDERS}?id={order}")["orders"]
        assert len(found_order["items"]) == 50
