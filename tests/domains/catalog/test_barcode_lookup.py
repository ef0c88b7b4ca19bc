"""Tests of barcode lookups in the workspace's catalogue, then in open databases."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.gateways import barcodes as gateway
from chalicelib.lib.barcodes import check_digit
from tests import fakes
from tests.conftest import Api, Owner, Time, all_rows
from tests.fakes.open_facts import NUTELLA, OpenFacts, nutella
from tests.support.warned import warned

PATH = "/api/products/barcode"
IN_STORE = "2" + "0" * 11 + check_digit("2" + "0" * 11)
Servers = list[OpenFacts]


def look_up(api: Api, barcode: str = NUTELLA) -> Any:
    return api.get(f"{PATH}?barcode={barcode}")


def request_count(servers: Servers) -> int:
    return sum(len(server.requests) for server in servers)


def create(api: Api, **fields: Any) -> Any:
    body = {"name": "Bread", "price": 9900, **fields}
    return api.post("/api/products/create", body)["product"]


class TestOwnCatalogue:
    def test_an_own_product_is_found_without_an_external_request(
        self, open_facts: Servers, api: Api
    ) -> None:
        open_facts[0].products[NUTELLA] = nutella()
        product = create(api, barcode=NUTELLA)
        assert look_up(api) == {
            "status": True,
            "barcode": NUTELLA,
            "format": "EAN13",
            "gtin14": f"0{NUTELLA}",
            "found": True,
            "source": "workspace",
            "product": product,
            "draft": None,
        }
        assert request_count(open_facts) == 0

    def test_a_number_is_found_in_any_of_its_forms(self, api: Api) -> None:
        upc = "01234567890" + check_digit("01234567890")
        product = create(api, barcode=upc)
        for form in (upc, f"0{upc}", f"00{upc}"):
            assert look_up(api, form)["product"]["id"] == product["id"]

    def test_products_of_another_workspace_are_not_found(
        self, open_facts: Servers, new_owner: Callable[..., Owner]
    ) -> None:
        create(new_owner().api(), barcode=NUTELLA)
        data = look_up(new_owner().api())
        assert (data["found"], data["product"]) == (False, None)

    def test_a_deleted_product_is_not_found(self, open_facts: Servers, api: Api) -> None:
        api.post("/api/products/delete", {"id": create(api, barcode=NUTELLA)["id"]})
        assert look_up(api)["found"] is False

    def test_an_own_in_store_number_is_found(self, open_facts: Servers, api: Api) -> None:
        create(api, barcode=IN_STORE)
        data = look_up(api, IN_STORE)
        assert data["source"] == "workspace"
        assert "warnings" not in data


class TestOpenDatabases:
    @pytest.mark.parametrize(
        ("place", "source"),
        list(enumerate(["openfoodfacts", "openbeautyfacts", "openproductsfacts"])),
    )
    def test_an_article_is_returned_as_a_draft_with_its_source(
        self, place: int, source: str, open_facts: Servers, api: Api
    ) -> None:
        open_facts[place].products[NUTELLA] = nutella()
        assert look_up(api) == {
            "status": True,
            "barcode": NUTELLA,
            "format": "EAN13",
            "gtin14": f"0{NUTELLA}",
            "found": True,
            "source": source,
            "product": None,
            "draft": {
                "name": "Нутелла",
                "brand": "Ferrero",
                "description": "Ореховая паста с какао",
                "category": "Спреды",
                "images": [
                    {"url": "https://images.openfoodfacts.org/images/products/front_ru.400.jpg"}
                ],
            },
        }

    def test_an_article_unknown_to_all_databases_is_not_found(
        self, open_facts: Servers, api: Api
    ) -> None:
        assert look_up(api) == {
            "status": True,
            "barcode": NUTELLA,
            "format": "EAN13",
            "gtin14": f"0{NUTELLA}",
            "found": False,
            "source": None,
            "product": None,
            "draft": None,
        }
        assert request_count(open_facts) == 3

    @pytest.mark.parametrize("prefix", ["02", "04", *map(str, range(20, 30))])
    def test_an_in_store_number_is_never_sent_out(
        self, prefix: str, open_facts: Servers, api: Api
    ) -> None:
        payload = prefix + "0123456789"
        data = look_up(api, payload + check_digit(payload))
        assert data["found"] is False
        assert warned(data) == [{"code": "barcode_internal"}]
        assert request_count(open_facts) == 0
        assert not [key for key in all_rows() if "CACHE#" in key]


class TestCache:
    def test_an_article_is_requested_once_in_30_days_for_all_workspaces(
        self, open_facts: Servers, new_owner: Callable[..., Owner], time: Time
    ) -> None:
        open_facts[0].products[NUTELLA] = nutella()
        first = look_up(new_owner().api())
        time.pass_by(days=29, hours=23)
        assert look_up(new_owner().api()) == first
        assert request_count(open_facts) == 1
        time.pass_by(hours=1)
        look_up(new_owner().api())
        assert request_count(open_facts) == 2

    def test_all_forms_of_a_number_share_one_cached_article(
        self, open_facts: Servers, api: Api
    ) -> None:
        open_facts[0].products[NUTELLA] = nutella()
        look_up(api)
        assert look_up(api, f"0{NUTELLA}")["format"] == "GTIN14"
        assert request_count(open_facts) == 1

    def test_an_unknown_article_is_requested_again_the_next_day(
        self, open_facts: Servers, api: Api, time: Time
    ) -> None:
        look_up(api)
        time.pass_by(hours=23)
        assert look_up(api)["found"] is False
        assert request_count(open_facts) == 3
        open_facts[2].products[NUTELLA] = nutella()
        time.pass_by(hours=1)
        assert look_up(api)["source"] == "openproductsfacts"

    def test_a_failure_is_not_cached(self, open_facts: Servers, api: Api) -> None:
        open_facts[0].breaks = fakes.status(500)
        assert look_up(api)["found"] is False
        open_facts[0].breaks = None
        open_facts[0].products[NUTELLA] = nutella()
        assert look_up(api)["found"] is True


class TestFailure:
    @pytest.mark.parametrize(
        ("breaks", "reason"),
        [
            (fakes.status(500), "openfoodfacts answered with status 500"),
            (fakes.status(429, Retry_After="60"), "openfoodfacts has reached its rate limit"),
            (fakes.body(b"<html>It works!</html>"), "sent a response that is not JSON"),
            (fakes.body(b'{"status": 1}'), "sent a response that is not a product"),
            (fakes.huge, "openfoodfacts sent more than 1 MB"),
            (fakes.cut_off, "openfoodfacts cannot be reached"),
        ],
        ids=["down", "limited", "garbage", "of another shape", "huge", "cut off"],
    )
    def test_a_failed_lookup_is_a_warning_over_rest_and_mcp(
        self, breaks: Any, reason: str, open_facts: Servers, api: Api
    ) -> None:
        open_facts[0].breaks = breaks
        data = look_up(api)
        assert (data["found"], data["source"], data["draft"]) == (False, None, None)
        (warning,) = warned(data)
        assert warning["code"] == "barcode_lookup_failed"
        assert reason in warning["reason"]
        assert open_facts[0].url not in data["warnings"][0]
        failed, reply = api.tool("svc_lookup_barcode", barcode=NUTELLA)
        assert not failed
        assert reply["data"] == data

    def test_a_failing_database_does_not_hide_the_article_of_another(
        self, open_facts: Servers, api: Api
    ) -> None:
        open_facts[0].breaks = fakes.status(500)
        open_facts[1].products[NUTELLA] = nutella()
        data = look_up(api)
        assert data["source"] == "openbeautyfacts"
        assert "warnings" not in data

    def test_slow_databases_are_given_up(
        self, open_facts: Servers, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = gateway.look_up
        monkeypatch.setattr(
            gateway, "look_up", lambda barcode, **_: real(barcode, timeout_seconds=0.2)
        )
        open_facts[0].breaks = fakes.silent
        (warning,) = warned(look_up(api))
        assert warning["code"] == "barcode_lookup_failed"
        assert "openfoodfacts did not answer in time" in warning["reason"]

    def test_a_lookup_that_is_switched_off_is_a_warning(self, api: Api) -> None:
        data = look_up(api)
        assert data["found"] is False
        (warning,) = warned(data)
        assert warning["code"] == "barcode_lookup_failed"
        assert "switched off" in warning["reason"]

    def test_own_products_are_found_without_any_database(self, api: Api) -> None:
        create(api, barcode=NUTELLA)
        data = look_up(api)
        assert data["found"] is True
        assert "warnings" not in data


class TestInput:
    @pytest.mark.parametrize(
        ("barcode", "format_"),
        [
            ("96385074", "EAN8"),
            ("036000291452", "UPCA"),
            ("3017624010701", "EAN13"),
            ("13017624010708", "GTIN14"),
            ("3-017624-010701", "EAN13"),
            ("301%207624%20010%20701", "EAN13"),
        ],
    )
    def test_all_forms_of_a_barcode_are_recognised(
        self, barcode: str, format_: str, open_facts: Servers, api: Api
    ) -> None:
        data = look_up(api, barcode)
        assert data["format"] == format_
        assert data["barcode"].isdigit()
        assert data["gtin14"] == data["barcode"].zfill(14)

    @pytest.mark.parametrize(
        ("barcode", "reason"),
        [
            ("3017624010702", "expected the check digit 1"),
            ("301762401070", "expected the check digit"),
            ("123", "expected 8, 12, 13 or 14 digits"),
            ("", "expected 8, 12, 13 or 14 digits"),
            ("hello", "expected 8, 12, 13 or 14 digits"),
            ("３０１７６２４", "(7 digits)"),
            ("1" * 1000, "expected 8, 12, 13 or 14 digits"),
        ],
    )
    def test_an_invalid_barcode_is_refused_with_the_expected_form(
        self, barcode: str, reason: str, open_facts: Servers, api: Api
    ) -> None:
        failed, reply = api.tool("svc_lookup_barcode", barcode=barcode)
        assert failed
        assert (reply["httpStatus"], reply["data"]["code"]) == (400, "invalid_barcode")
        assert reply["data"]["errors"][0]["field"] == "barcode"
        assert reason in reply["data"]["message"]
        assert len(reply["data"]["message"]) < 200
        assert request_count(open_facts) == 0

    def test_an_invalid_barcode_is_refused_over_rest_too(self, api: Api) -> None:
        answer = api.call_refused("GET", f"{PATH}?barcode=3017624010702")
        assert (answer.status, answer.data["code"]) == (400, "invalid_barcode")
        assert api.call_refused("GET", PATH).data["code"] == "validation_error"


def test_only_the_configured_databases_are_queried(
    open_facts: Servers, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(gateway.settings(), barcode_sources=f"openbeautyfacts={open_facts[1].url}")
    monkeypatch.setattr(gateway, "settings", lambda: config)
    look_up(api)
    assert [len(server.requests) for server in open_facts] == [0, 1, 0]
