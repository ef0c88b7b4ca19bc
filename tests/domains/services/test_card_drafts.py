"""Drafts of service cards."""

from tests.conftest import Api
from tests.factories.services import new_category
from tests.fakes.openverse import FakeOpenverse


class TestAiFill:
    def test_the_draft_has_a_length(self, openverse: FakeOpenverse, api: Api) -> None:
        hair = new_category(api, "Стрижки")
        new_category(api, "Стрижка товаров", kind="product")
        body = {"name": "Стрижка женская", "prompt": "Моем и сушим. 90 мин."}
        reply = api.post("/api/services/ai-fill", body)
        assert reply["draft"]["name"] == "Стрижка женская"
        assert "Моем и сушим" in reply["draft"]["description"]
        assert reply["draft"]["durationMin"] == 90
        assert (reply["draft"]["categoryId"], reply["draft"]["categoryName"]) == (hair, "Стрижки")
        assert "sku" not in reply["draft"]
        assert reply["images"]
        assert api.get("/api/services/list")["services"] == []

    def test_a_draft_needs_a_name_or_a_prompt(self, api: Api) -> None:
        answer = api.call_refused("POST", "/api/services/ai-fill", {"language": "en"})
        assert (answer.status, answer.data["key"]) == (400, "empty")
        assert "name, prompt" in answer.data["message"]

    def test_the_draft_has_no_length_unless_one_is_given(
        self, openverse: FakeOpenverse, api: Api
    ) -> None:
        reply = api.post("/api/services/ai-fill", {"name": "Стрижка"})
        assert reply["draft"]["durationMin"] is None
