"""Barcode lookups, against fake Open Facts servers on loopback."""

import json
import threading
from dataclasses import asdict
from typing import Any

import pytest

from chalicelib import VERSION
from chalicelib.gateways import barcodes as gateway
from chalicelib.gateways.barcodes import Found, LookupFailedError, look_up
from chalicelib.lib.barcodes import check_digit, parse
from tests import fakes
from tests.fakes.open_facts import NUTELLA, OpenFacts, nutella
from tests.support.patience import PATIENCE

BARCODE = parse(NUTELLA)
Servers = list[OpenFacts]


def find_product(servers: Servers, **changes: Any) -> Found | None:
    """Look up a product with some fields changed."""
    servers[0].products[NUTELLA] = {**nutella(), **changes}
    return look_up(BARCODE)


def must_find(servers: Servers, **changes: Any) -> Found:
    answer = find_product(servers, **changes)
    assert answer
    return answer


class TestFinding:
    def test_a_known_product_is_returned_in_russian_with_its_source(
        self, open_facts: Servers
    ) -> None:
        assert find_product(open_facts) == Found(
            source="openfoodfacts",
            name="Нутелла",
            brand="Ferrero",
            description="Ореховая паста с какао",
            category="Спреды",
            images=["https://images.openfoodfacts.org/images/products/front_ru.400.jpg"],
        )

    def test_a_found_product_can_be_stored_as_json(self, open_facts: Servers) -> None:
        product = must_find(open_facts)
        assert Found(**json.loads(json.dumps(asdict(product)))) == product

    def test_english_is_the_second_choice_and_any_other_language_the_last(
        self, open_facts: Servers
    ) -> None:
        no_russian = {"product_name_ru": "", "generic_name_ru": None, "categories_tags_ru": []}
        product = must_find(open_facts, **no_russian)
        assert product.name == "Nutella spread"
        assert product.description == "Hazelnut spread"
        assert product.category == "Hazelnut spreads"
        product = must_find(
            open_facts,
            **no_russian,
            product_name_en=" ",
            generic_name_en="",
            categories_tags_en=["fr:Pâtes à tartiner"],
        )
        assert product.name == "Nutella pâte à tartiner"
        assert product.description == "Pâte à tartiner aux noisettes"
        assert product.category == "Pâtes à tartiner"

    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_sources_are_queried_in_order_until_one_has_the_product(
        self, place: int, open_facts: Servers
    ) -> None:
        open_facts[place].products[NUTELLA] = nutella()
        product = look_up(BARCODE)
        assert product
        assert product.source == ["openfoodfacts", "openbeautyfacts", "openproductsfacts"][place]
        assert [len(server.requests) for server in open_facts] == [
            int(number <= place) for number in range(3)
        ]

    def test_a_product_unknown_to_all_sources_is_none(self, open_facts: Servers) -> None:
        assert look_up(BARCODE) is None
        assert [server.codes for server in open_facts] == [[NUTELLA]] * 3

    def test_an_unknown_code_may_also_come_with_status_200(self, open_facts: Servers) -> None:
        for server in open_facts:
            server.breaks = fakes.body(b'{"status": 0, "status_verbose": "product not found"}')
        assert look_up(BARCODE) is None

    def test_a_product_of_a_sister_database_is_looked_up_there(self, open_facts: Servers) -> None:
        verbose = "product found with a different product type: beauty"
        answer = json.dumps({"code": NUTELLA, "status": 0, "status_verbose": verbose})
        open_facts[0].breaks = fakes.body(answer.encode(), 404)
        open_facts[1].products[NUTELLA] = nutella()
        product = look_up(BARCODE)
        assert product
        assert product.source == "openbeautyfacts"

    @pytest.mark.parametrize(
        ("entered", "expected"),
        [
            ("3017624010701", "3017624010701"),
            ("03017624010701", "3017624010701"),
            ("036000291452", "0036000291452"),
            ("00036000291452", "0036000291452"),
            ("96385074", "96385074"),
            ("00000096385074", "96385074"),
            ("10614141000415", "10614141000415"),
        ],
    )
    def test_each_form_of_a_number_is_queried_as_the_database_stores_it(
        self, entered: str, expected: str, open_facts: Servers
    ) -> None:
        look_up(parse(entered))
        assert open_facts[0].codes == [expected]

    def test_the_request_names_the_service_and_asks_for_few_fields(
        self, open_facts: Servers
    ) -> None:
        look_up(BARCODE)
        request = open_facts[0].requests[0]
        assert request.headers["user-agent"] == (
            f"Workspace-Automation-API/{VERSION} (+http://127.0.0.1:8000)"
        )
        assert "product_name_ru" in request.query["fields"].split(",")
        assert "nutriments" not in request.query["fields"]


class TestUntrustedData:
    def test_escaped_html_is_read_as_text(self, open_facts: Servers) -> None:
        name = "Chips &quot;M&amp;M&quot; &lt;b&gt;"
        assert must_find(open_facts, product_name_ru=name).name == 'Chips "M&M" <b>'

    def test_control_characters_and_line_breaks_become_a_space(self, open_facts: Servers) -> None:
        name = "\x00 A\r\nB\x1b[31m\u202eC\ud800D&#0;&#27;\u0085 "
        assert must_find(open_facts, product_name_ru=name).name == "A B [31m C D\ufffd"

    def test_long_texts_are_cut_to_a_products_limits(self, open_facts: Servers) -> None:
        product = must_find(
            open_facts,
            product_name_ru="н" * 5000,
            generic_name_ru="о" * 50_000,
            brands="б" * 5000,
            categories_tags_ru=["к" * 5000],
        )
        assert product.name == "н" * 255
        assert product.description == "о" * 20_000
        assert product.brand == "б" * 255
        assert product.category == "к" * 255

    @pytest.mark.parametrize("wrong", [None, 17, True, [17], {"a": "b"}, "", "  ", "\u0000"])
    def test_fields_of_a_wrong_type_count_as_missing(self, wrong: Any, open_facts: Servers) -> None:
        fields = [name for name in nutella() if name not in {"product_name", "categories"}]
        product = must_find(open_facts, **dict.fromkeys(fields, wrong))
        assert product == Found(
            source="openfoodfacts",
            name="Nutella pâte à tartiner",
            brand=None,
            description=None,
            category="Pâtes à tartiner",
            images=[],
        )

    @pytest.mark.parametrize("tags", [[17, None, {}], "Спреды", {"0": "Спреды"}, [["Спреды"]]])
    def test_categories_of_a_wrong_type_count_as_missing(
        self, tags: Any, open_facts: Servers
    ) -> None:
        product = must_find(
            open_facts, categories_tags_ru=tags, categories_tags_en=tags, categories=tags
        )
        assert product.category in {None, "Спреды"}
        assert (product.category is None) == (tags != "Спреды")

    @pytest.mark.parametrize(
        "image",
        [
            "http://images.openfoodfacts.org/1.jpg",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "//images.openfoodfacts.org/1.jpg",
            "https://",
            "https://user:secret@images.openfoodfacts.org/1.jpg",
            "https://[::1/1.jpg",
            "https://images.openfoodfacts.org/a b.jpg",
            "https://images.openfoodfacts.org/\r\nSet-Cookie:x",
            "https://images.openfoodfacts.org/" + "a" * 3000,
        ],
    )
    def test_an_image_is_a_plain_https_url_or_left_out(
        self, image: str, open_facts: Servers
    ) -> None:
        product = must_find(open_facts, image_front_url=image)
        assert product.images == []

    def test_a_product_without_any_data_is_not_found(self, open_facts: Servers) -> None:
        open_facts[0].products[NUTELLA] = {"categories": "Food", "product_name": ""}
        assert look_up(BARCODE) is None

    def test_a_product_without_a_name_is_named_by_its_description(
        self, open_facts: Servers
    ) -> None:
        names = dict.fromkeys(["product_name", "product_name_ru", "product_name_en"], "")
        product = must_find(open_facts, **names)
        assert (product.name, product.description) == ("Ореховая паста с какао", None)


class TestInStoreCodes:
    @pytest.mark.parametrize("payload", ["210123401234", "20123401234", "2123456", "0123456"])
    def test_in_store_codes_are_never_sent_out(self, payload: str, open_facts: Servers) -> None:
        digits = payload + check_digit(payload)
        for server in open_facts:
            server.products[digits] = server.products[digits.zfill(13)] = nutella()
        assert look_up(parse(digits)) is None
        assert [server.requests for server in open_facts] == [[], [], []]


class TestFailing:
    @pytest.mark.parametrize(
        ("breaks", "reason"),
        [
            (fakes.status(500), "openfoodfacts answered with status 500"),
            (fakes.status(503), "openfoodfacts answered with status 503"),
            (fakes.status(403), "openfoodfacts answered with status 403"),
            (fakes.status(302, Location="/x"), "openfoodfacts answered with status 302"),
            (fakes.status(429), "openfoodfacts has reached its rate limit"),
            (fakes.cut_off, "openfoodfacts cannot be reached"),
            (fakes.body(b"<html>", 404), "openfoodfacts sent a response that is not JSON"),
            (fakes.body(b"{}", 404), "openfoodfacts sent a response that is not a product"),
            (fakes.huge, "openfoodfacts sent more than 1 MB"),
        ],
    )
    def test_a_failing_source_is_named_if_no_other_has_the_product(
        self, breaks: fakes.Misbehaviour, reason: str, open_facts: Servers
    ) -> None:
        open_facts[0].breaks = breaks
        with pytest.raises(LookupFailedError) as failure:
            look_up(BARCODE)
        assert failure.value.reason == reason
        open_facts[2].products[NUTELLA] = nutella()
        product = look_up(BARCODE)
        assert product
        assert product.source == "openproductsfacts"

    def test_a_server_that_is_down_is_reported_as_unreachable(self, open_facts: Servers) -> None:
        for server in open_facts:
            server.close()
        with pytest.raises(LookupFailedError) as failure:
            look_up(BARCODE)
        assert failure.value.reason == (
            "openfoodfacts cannot be reached; openbeautyfacts cannot be reached;"
            " openproductsfacts cannot be reached"
        )

    @pytest.mark.parametrize(
        "raw",
        [
            *fakes.GARBAGE,
            b'{"status": 1}',
            b'{"status": 1, "product": null}',
            b'{"status": 1, "product": []}',
            b'{"status": "1", "product": {}}',
            b'{"status": 2, "product": {}}',
        ],
    )
    def test_invalid_data_is_a_failure_not_an_unknown_product(
        self, raw: bytes, open_facts: Servers
    ) -> None:
        open_facts[0].breaks = fakes.body(raw)
        with pytest.raises(LookupFailedError, match="openfoodfacts sent a response that is not"):
            look_up(BARCODE)

    def test_little_of_an_endless_answer_is_read(self, open_facts: Servers) -> None:
        open_facts[0].breaks = fakes.huge
        with pytest.raises(LookupFailedError):
            look_up(BARCODE)
        assert open_facts[0].hung_up.wait(PATIENCE)
        assert open_facts[0].sent < fakes.HUGE / 4

    @pytest.mark.parametrize(
        "breaks",
        [
            fakes.silent,
            fakes.drip(b""),
            fakes.drip(b"HTTP/1.1 200 OK\r\nX-Long: "),
            fakes.drip(b"HTTP/1.1 200 OK\r\n\r\n["),
            fakes.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n["),
        ],
    )
    def test_all_sources_share_one_time_limit_however_slowly_they_send(
        self, breaks: fakes.Misbehaviour, open_facts: Servers
    ) -> None:
        for server in open_facts:
            server.breaks = breaks
        with pytest.raises(LookupFailedError) as failure:
            look_up(BARCODE, timeout_seconds=0.3)
        assert failure.value.reason == (
            "openfoodfacts did not answer in time; openbeautyfacts was not called, because the "
            "time limit was reached; openproductsfacts was not called, because the time limit was "
            "reached"
        )

    @pytest.mark.parametrize(
        "breaks",
        [
            fakes.silent,
            fakes.drip(b"HTTP/1.1 200 OK\r\n\r\n["),
            fakes.drip(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n["),
        ],
    )
    def test_no_source_is_read_for_long_after_the_time_limit(
        self, breaks: fakes.Misbehaviour, open_facts: Servers
    ) -> None:
        open_facts[0].breaks = breaks
        with pytest.raises(LookupFailedError):
            look_up(BARCODE, timeout_seconds=0.2)
        for thread in threading.enumerate():
            if thread.name == "asking openfoodfacts":
                thread.join(PATIENCE)
                assert not thread.is_alive()

    def test_the_default_time_limit_is_three_seconds(self) -> None:
        assert gateway.TOTAL_SECONDS == 3


class TestRateLimit:
    def test_a_rate_limited_source_is_skipped(self, open_facts: Servers) -> None:
        with pytest.raises(LookupFailedError, match="has reached its rate limit"):
            look_up(BARCODE, admits=lambda source: source != "openfoodfacts")
        assert [len(server.requests) for server in open_facts] == [0, 1, 1]
