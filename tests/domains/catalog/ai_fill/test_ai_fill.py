"""AI drafts of products, with good, bad and failing models."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from chalicelib.domains.catalog.flows import drafting
from chalicelib.gateways import barcodes as barcode_gateway
from chalicelib.gateways import llm
from chalicelib.gateways import photos as photo_gateway
from tests.conftest import Api, Owner, all_rows
from tests.domains.catalog.ai_fill.helpers import (
    KEY,
    category,
    fill,
    model_response,
    refusal,
    request,
)
from tests.fakes import openai_api
from tests.fakes.open_facts import NUTELLA, OpenFacts, nutella
from tests.fakes.openai_api import Answering, OpenAiApi
from tests.fakes.openverse import FakeOpenverse


class TestEmbeddedModel:
    def test_a_name_is_enough_for_a_draft(self, openverse: FakeOpenverse, api: Api) -> None:
        data = fill(api, name="Ржаной хлеб")
        assert data["draft"] == {
            "name": "Ржаной хлеб",
            "description": "Ржаной хлеб.",
            "categoryId": None,
            "categoryName": None,
            "tags": ["ржаной", "хлеб"],
            "sku": None,
        }
        assert "warnings" not in data

    def test_the_draft_has_a_category_of_the_workspace(
        self, openverse: FakeOpenverse, api: Api
    ) -> None:
        category(api, "Cakes")
        bakery = category(api, "Выпечка / хлеб")
        bread = category(api, "Хлеб", parentId=bakery)
        draft = fill(api, name="Ржаной хлеб")["draft"]
        assert draft["categoryId"] in {bread, bakery}
        assert draft["categoryName"] in {"Хлеб", "Выпечка / хлеб"}

    def test_a_draft_stores_nothing(self, openverse: FakeOpenverse, owner: Owner) -> None:
        api = owner.api()
        fill(api)
        rows_before = all_rows()
        fill(api, name="Cake")
        changed_keys = {key for key, row in all_rows().items() if rows_before.get(key) != row}
        kinds = {key.split("/")[1].split("#")[0] for key in changed_keys}
        assert kinds == {"LIMIT", "CACHE"}
        assert api.get("/api/products/list")["total"] == 0


class TestModel:
    def test_the_model_receives_the_facts_and_categories(
        self, model: OpenAiApi, open_facts: list[OpenFacts], new_owner: Callable[..., Owner]
    ) -> None:
        category(new_owner().api(), "Theirs")
        api = new_owner().api()
        bakery = category(api, "Bakery")
        bread = category(api, "Bread", parentId=bakery)
        category(api, "Haircuts", kind="service")
        open_facts[0].products[NUTELLA] = nutella()
        fill(api, name="Nut", prompt="Sweet", barcode=NUTELLA, language="en")
        assert request(model) == {
            "language": "en",
            "name": "Nut",
            "prompt": "Sweet",
            "barcode": NUTELLA,
            "facts": {
                "name": "Нутелла",
                "brand": "Ferrero",
                "description": "Ореховая паста с какао",
                "category": "Спреды",
            },
            "categories": [
                {"id": bakery, "path": "Bakery"},
                {"id": bread, "path": "Bakery / Bread"},
            ],
        }
        call = model.asked[-1]
        assert call.headers["authorization"] == f"Bearer {KEY}"
        assert call.body["model"] == "m-1"
        assert call.body["max_tokens"] == 2000
        assert call.body["response_format"] == {"type": "json_object"}

    def test_a_service_draft_has_a_typical_length(self, model: OpenAiApi, api: Api) -> None:
        hair = category(api, "Haircuts", kind="service")
        bread = category(api, "Bread")
        model.answers = [
            model_response(categoryId=hair, durationMin=45),
            model_response(categoryId=bread),
        ]
        first, second = (
            api.post("/api/services/ai-fill", {"name": "Cut"})["draft"] for _ in range(2)
        )
        assert (first["categoryId"], first["durationMin"]) == (hair, 45)
        assert (second["categoryId"], second["durationMin"]) == (None, None)
        assert request(model)["categories"] == [{"id": hair, "path": "Haircuts"}]

    def test_a_category_that_is_not_the_workspaces_is_ignored(
        self, model: OpenAiApi, new_owner: Callable[..., Owner]
    ) -> None:
        theirs = category(new_owner().api(), "Theirs")
        api = new_owner().api()
        own_category = category(api, "Bread")
        service = category(api, "Haircuts", kind="service")
        model.answers = [
            model_response(categoryId=id_) for id_ in (theirs, service, "Bread", 17, own_category)
        ]
        drafts = [fill(api)["draft"] for _ in range(5)]
        assert [draft["categoryId"] for draft in drafts] == [None, None, None, None, own_category]
        assert [draft["categoryName"] for draft in drafts] == [None, None, None, None, "Bread"]

    def test_the_draft_has_no_price_stock_or_sku(self, model: OpenAiApi, api: Api) -> None:
        model.answers = [model_response(price=1, stock=2, sku="X-1", images=["https://x.example/"])]
        draft = fill(api)["draft"]
        assert set(draft) == {"name", "description", "categoryId", "categoryName", "tags", "sku"}
        assert draft["sku"] is None

    def test_the_models_texts_are_cleaned_and_cut(self, model: OpenAiApi, api: Api) -> None:
        model.answers = [
            model_response(
                name="<b>Bread</b>\n" + "a" * 300,
                description="<script>x</script>Fresh\x00.",
                tags=["rye", "RYE", "", "t" * 51, *map(str, range(30))],
            )
        ]
        draft = fill(api)["draft"]
        assert draft["name"] == ("Bread " + "a" * 300)[:255]
        assert draft["description"] == "xFresh."
        assert draft["tags"] == ["rye", *map(str, range(19))]

    @pytest.mark.parametrize(
        ("answer", "status"),
        [
            (openai_api.refusing(500, b"{}"), "is unavailable"),
            (openai_api.refusing(503, b"no"), "is unavailable"),
            (openai_api.refusing(401, b'{"error": "sk-SECRET"}'), "rejected the request"),
            (openai_api.refusing(404, b"no such model"), "rejected the request"),
            (openai_api.refusing(429, b"{}"), "has reached its rate limit"),
            (openai_api.plain(b"<html>It works!</html>"), "sent an invalid answer"),
            (openai_api.endless(b"x" * 2**16), "sent an invalid answer"),
            (openai_api.cut(), "is unavailable"),
            (openai_api.saying("I am sorry, I cannot do that."), "not a valid card"),
            (openai_api.saying('{"name": "Bread"'), "not a valid card"),
            (openai_api.saying('{"name": 17, "description": "x"}'), "expected name to be text"),
            (openai_api.saying('{"name": "x", "description": " "}'), "expected description"),
            (openai_api.saying("[" * 5000), "not a valid card"),
            (openai_api.saying(""), "not a valid card"),
        ],
        ids=[
            "down",
            "overloaded",
            "key refused",
            "model unknown",
            "limited",
            "garbage",
            "huge",
            "cut off",
            "prose",
            "half a card",
            "a card of the wrong types",
            "an empty card",
            "nonsense",
            "silence",
        ],
    )
    def test_a_failing_model_is_502_with_advice_over_rest_and_mcp(
        self, answer: Answering, status: str, model: OpenAiApi, api: Api
    ) -> None:
        model.answers = [answer]
        failure = refusal(api)
        assert (failure.status, failure.data["code"]) == (502, "upstream_failed")
        assert status in failure.data["message"]
        assert "Try again" in failure.data["message"]
        for secret in (KEY, "SECRET", model.url):
            assert secret not in failure.body.decode()
        failed, reply = api.tool("svc_ai_fill_product", name="Bread")
        assert failed
        assert (reply["httpStatus"], reply["data"]["code"]) == (502, "upstream_failed")
        assert reply["data"]["message"] == failure.data["message"]

    @pytest.mark.parametrize(
        ("received", "forwarded"), [("7", "7"), ("0", None), ("9" * 400, "86400"), ("soon", None)]
    )
    def test_a_rate_limited_model_passes_on_when_to_retry(
        self, received: str, forwarded: str | None, model: OpenAiApi, api: Api
    ) -> None:
        model.answers = [openai_api.refusing(429, b"{}", f"Retry-After: {received}")]
        assert refusal(api).headers.get("Retry-After") == forwarded

    @pytest.mark.parametrize(
        "answer", [openai_api.silent, openai_api.dripping(b": thinking\n\n", 0.02)]
    )
    def test_a_slow_model_is_given_up(
        self, answer: Answering, model: OpenAiApi, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(drafting, "MODEL_SECONDS", 0.3)
        model.answers = [answer]
        failure = refusal(api)
        assert (failure.status, failure.data["key"]) == (502, "model")
        assert "in time" in failure.data["message"]

    def test_all_external_calls_together_stay_within_the_request_deadline(self) -> None:
        outside = barcode_gateway.TOTAL_SECONDS + photo_gateway.TOTAL_SECONDS
        assert outside + drafting.MODEL_SECONDS <= 27

    @pytest.mark.parametrize(
        ("changes", "variable"),
        [({"llm_provider": "off"}, "LLM_PROVIDER"), ({"llm_model": ""}, "LLM_MODEL")],
    )
    def test_without_a_model_drafts_are_503_and_nothing_is_requested(
        self,
        changes: dict[str, str],
        variable: str,
        model: OpenAiApi,
        open_facts: list[OpenFacts],
        api: Api,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        config = replace(llm.settings(), **changes)
        monkeypatch.setattr(llm, "settings", lambda: config)
        answer = refusal(api, barcode=NUTELLA)
        assert (answer.status, answer.data["code"]) == (503, "not_configured")
        assert variable in answer.data["message"]
        assert open_facts[0].requests == []
        failed, reply = api.tool("svc_ai_fill_product", name="Bread")
        assert failed
        assert reply["httpStatus"] == 503
