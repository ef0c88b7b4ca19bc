"""The currency of a workspace, which stays once it has a price."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine import workspace_currency
from tests.conftest import Answer, Api, Owner, call_console, call_operator, run_concurrently
from tests.fakes.payment_shop import FakeShop, shop  # noqa: F401  a fixture

pytestmark = pytest.mark.usefixtures("database")

UPDATE = "/api/workspace/update"
PRODUCT = {"name": "Tea", "price": 450}
SERVICE = {"name": "Haircut", "durationMin": 60}


def change(api: Api, currency: str) -> Answer:
    return api.call("POST", UPDATE, {"currency": currency})


def currency_in(api: Api) -> Any:
    return api.get("/api/workspace")["workspace"]["currency"]


@pytest.mark.parametrize(
    ("country", "currency", "zone"),
    [
        ("GB", "GBP", "Europe/London"),
        ("JP", "JPY", "Asia/Tokyo"),
        ("KW", "KWD", "Asia/Kuwait"),
        ("RU", "RUB", "Europe/Moscow"),
    ],
)
def test_a_new_workspace_has_the_currency_and_the_zone_of_its_country(
    owner: Owner, country: str, currency: str, zone: str
) -> None:
    email = call_operator("create_account", email=f"{country}@example.com", password="x" * 12)
    assert email
    made = call_operator(
        "create_workspace", owner=f"{country}@example.com", name="Salon", country=country
    )
    assert workspaces.get(made["workspaceId"]).currency == currency
    assert made["timezone"] == zone


def test_a_currency_that_is_not_offered_is_refused(api: Api) -> None:
    for currency in ("XXX", "BTC", "rub", "DEM"):
        assert change(api, currency).status == 400


def test_the_currency_changes_before_the_first_price(api: Api) -> None:
    api.post("/api/services/create", SERVICE)  # for nothing
    api.post("/api/products/create", {**PRODUCT, "price": 0})
    assert change(api, "GBP").data["workspace"]["currency"] == "GBP"
    assert currency_in(api) == "GBP"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/products/create", PRODUCT),
        ("/api/products/upsert", {"items": [{**PRODUCT, "sku": "T"}, {**PRODUCT, "sku": "U"}]}),
        ("/api/services/create", {**SERVICE, "price": 1}),
        ("/api/services/upsert", {"items": [{**SERVICE, "externalId": "s", "price": 1}]}),
    ],
)
def test_the_currency_stays_after_the_first_price(api: Api, path: str, body: Any) -> None:
    api.post(path, body)
    answer = change(api, "GBP")
    assert (answer.status, answer.data["code"], answer.data["key"]) == (
        409,
        "currency_fixed",
        "has_prices",
    )
    assert currency_in(api) == "RUB"
    assert change(api, "RUB").status == 200


def test_the_currency_stays_after_the_only_price_is_deleted(api: Api) -> None:
    product = api.post("/api/products/create", PRODUCT)["product"]["id"]
    api.post("/api/products/delete", {"id": product})
    assert change(api, "GBP").data["key"] == "has_prices"


def test_a_price_that_a_change_of_many_sets_counts(api: Api) -> None:
    product = api.post("/api/products/create", {**PRODUCT, "price": 0})["product"]["id"]
    api.post("/api/products/bulk", {"ids": [product], "action": "setPrice", "value": 5})
    assert change(api, "GBP").data["key"] == "has_prices"


def test_an_older_workspace_is_asked_for_its_prices(owner: Owner, api: Api) -> None:
    api.post("/api/products/create", PRODUCT)
    row = workspaces.get(owner.workspace.id)
    row.update([WorkspaceRow.has_prices.remove(), WorkspaceRow.currency.remove()])
    workspace_currency.forget()
    assert currency_in(api) == "RUB"
    assert change(api, "GBP").data["key"] == "has_prices"


def test_a_process_remembers_no_currency_that_another_may_change(owner: Owner, api: Api) -> None:
    assert workspace_currency.currency_of(owner.workspace.id) == "RUB"
    # Another process changes it, of which this one hears nothing.
    workspaces.get(owner.workspace.id).update([WorkspaceRow.currency.set("GBP")])
    assert workspace_currency.currency_of(owner.workspace.id) == "GBP"


@pytest.mark.store
def test_of_a_price_and_a_change_at_once_the_second_knows_the_first(api: Api, owner: Owner) -> None:
    def call(number: int) -> Answer:
        if number % 2:
            return change(api, "JPY")
        return api.call("POST", "/api/products/create", {**PRODUCT, "price": 1_250})

    answers = run_concurrently(4, call)
    assert {answer.status for answer in answers[::2]} == {200}
    workspace = workspaces.get(owner.workspace.id)
    changed = {answer.status for answer in answers[1::2]}
    assert workspace.has_prices
    assert changed <= {200, 409}
    assert (workspace.currency == "JPY") == (200 in changed)
    assert len(PRODUCTS.entries(owner.workspace.id)) == 2
    assert change(api, "EUR").status == 409


def test_a_price_that_the_change_overtakes_is_read_again(
    owner: Owner, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The currency changes between the read of a first price and its commit.
    read, stale = workspace_currency._read, []

    def read_late(workspace_id: str) -> Any:
        known = read(workspace_id)
        if not stale:
            stale.append(known.currency)
            assert change(Api(owner.token()), "JPY").status == 200
        return known

    workspace_currency.forget()
    monkeypatch.setattr(workspace_currency, "_read", read_late)
    api.post("/api/products/create", PRODUCT)
    assert stale == ["RUB"]
    workspace = workspaces.get(owner.workspace.id)
    assert (workspace.currency, workspace.has_prices) == ("JPY", True)


class TestProviders:
    @pytest.fixture
    def london(self, new_owner: Callable[..., Owner], shop: FakeShop) -> Owner:  # noqa: F811  the fixture
        owner = new_owner()
        assert change(owner.api(), "GBP").status == 200
        return owner

    def connect(self, owner: Owner, provider: str) -> Any:
        fields = {"provider": provider, "shopId": "100500", "secret": "secret-of-the-shop-1234"}
        return call_console(
            owner.workspace.id, "set_merchant", account_id=owner.workspace.owner_id, **fields
        )

    def test_yookassa_is_refused_in_another_currency(self, london: Owner) -> None:
        with pytest.raises(Exception) as refused:  # noqa: PT011  its code is checked
            self.connect(london, "yookassa")
        (error,) = refused.value.errors  # type: ignore[attr-defined]  # of AppError
        assert (error.field, error.key) == ("provider", "provider_currency")
        assert self.connect(london, "stripe")["merchant"]["provider"] == "stripe"

    def test_the_currency_stays_rubles_while_yookassa_is_set_up(
        self,
        new_owner: Callable[..., Owner],
        shop: FakeShop,  # noqa: F811  the fixture
    ) -> None:
        owner = new_owner()
        self.connect(owner, "yookassa")
        assert change(owner.api(), "GBP").data["key"] == "payment_provider"
        self.connect(owner, "stripe")
        assert change(owner.api(), "GBP").status == 200


@pytest.mark.parametrize(
    ("currency", "sent", "named"), [("JPY", 12.5, "decimals"), ("KWD", "1.5", "1500")]
)
def test_a_refused_price_is_named_in_units_of_the_currency(
    api: Api, currency: str, sent: Any, named: str
) -> None:
    assert change(api, currency).status == 200
    answer = api.call("POST", "/api/products/create", {**PRODUCT, "price": sent})
    assert answer.status == 400
    assert named in answer.data["message"]
    assert currency in answer.data["message"] or currency == "JPY"
