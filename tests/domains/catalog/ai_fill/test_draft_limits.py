"""Validation and limits of AI drafts of products."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.settings import settings
from chalicelib.domains.catalog.flows import drafting
from chalicelib.engine import limits
from chalicelib.engine.unit import UnitOfWork
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.domains.catalog.ai_fill.helpers import PATH, fill, model_response, refusal
from tests.fakes import openai_api
from tests.fakes.open_facts import NUTELLA, OpenFacts
from tests.fakes.openai_api import OpenAiApi


@pytest.fixture
def set_cap(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set the number of drafts that a workspace may make per day."""

    def choose(limit: int) -> None:
        config = replace(drafting.settings(), ai_drafts_per_day=limit)
        monkeypatch.setattr(drafting, "settings", lambda: config)
        unscaled = replace(limits.settings(), rate_limit_scale=1)
        monkeypatch.setattr(limits, "settings", lambda: unscaled)

    return choose


class TestInput:
    @pytest.mark.parametrize(
        "body",
        [{}, {"language": "en"}, {"name": None}, {"barcode": ""}, {"name": None, "prompt": None}],
    )
    def test_an_input_without_any_information_is_refused(
        self, body: dict[str, Any], api: Api
    ) -> None:
        answer = api.call_refused("POST", PATH, body)
        assert (answer.status, answer.data["code"]) == (400, "validation_error")
        assert answer.data["key"] == "empty"
        assert "name, barcode, prompt" in answer.data["message"]

    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"name": " "}, "name"),
            ({"name": "\x1f"}, "name"),
            ({"name": "<b>"}, "name"),
            ({"name": "a", "prompt": "\u202e"}, "prompt"),
        ],
    )
    def test_a_text_without_visible_characters_is_named(
        self, fields: dict[str, Any], field: str, model: OpenAiApi, api: Api
    ) -> None:
        answer = refusal(api, **fields)
        assert answer.status == 400
        assert [error["field"] for error in answer.data["errors"]] == [field]
        assert model.asked == []


class TestCap:
    def test_the_daily_cap_counts_all_keys_of_a_workspace(
        self,
        set_cap: Callable[[int], None],
        new_owner: Callable[..., Owner],
        model: OpenAiApi,
        time: Time,
    ) -> None:
        set_cap(2)
        owner = new_owner()
        fill(owner.api())
        fill(owner.api())
        answer = refusal(owner.api())
        assert (answer.status, answer.data["code"]) == (429, "rate_limited")
        assert answer.data["key"] == "ai_drafts"
        assert answer.headers["RateLimit-Limit"] == "2"
        assert answer.headers["Retry-After"] == str(12 * 3600)
        assert len(model.asked) == 2
        assert fill(new_owner().api())["draft"]
        time.pass_by(hours=11, minutes=59)
        assert refusal(owner.api()).status == 429
        time.pass_by(minutes=1)
        assert fill(owner.api())["draft"]

    def test_of_twenty_concurrent_drafts_exactly_the_cap_is_admitted(
        self, set_cap: Callable[[int], None], model: OpenAiApi, owner: Owner
    ) -> None:
        set_cap(7)
        api = owner.api()
        answers = run_concurrently(20, lambda _: api.call("POST", PATH, {"name": "Bread"}))
        assert sorted(answer.status for answer in answers) == [200] * 7 + [429] * 13
        assert len(model.asked) == 7

    def test_a_failed_draft_counts_because_it_was_paid_for(
        self, set_cap: Callable[[int], None], model: OpenAiApi, api: Api
    ) -> None:
        set_cap(1)
        model.answers = [openai_api.saying("no"), model_response()]
        assert refusal(api).status == 502
        assert refusal(api).status == 429

    def test_a_draft_that_never_reaches_the_model_does_not_count(
        self,
        set_cap: Callable[[int], None],
        model: OpenAiApi,
        open_facts: list[OpenFacts],
        api: Api,
    ) -> None:
        set_cap(1)
        assert refusal(api, barcode=NUTELLA).status == 404
        assert refusal(api, name="").status == 400
        assert fill(api)["draft"]["name"] == "Bread"

    def test_a_cap_of_zero_refuses_every_draft(
        self, set_cap: Callable[[int], None], model: OpenAiApi, api: Api
    ) -> None:
        set_cap(0)
        assert refusal(api).status == 429
        assert model.asked == []

    def test_a_replay_makes_no_request_and_does_not_count(
        self, set_cap: Callable[[int], None], model: OpenAiApi, api: Api
    ) -> None:
        set_cap(1)
        first = api.post(PATH, {"name": "Bread"}, key="k")
        assert api.post(PATH, {"name": "Bread"}, key="k") == first
        assert len(model.asked) == 1

    def test_a_retried_commit_makes_no_second_request_and_counts_once(
        self,
        set_cap: Callable[[int], None],
        model: OpenAiApi,
        api: Api,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        set_cap(1)
        commit, lost = UnitOfWork.commit, iter([True])

        def lose_once(unit: UnitOfWork, *args: Any) -> None:
            if next(lost, False):
                raise ConcurrentUpdateError
            commit(unit, *args)

        monkeypatch.setattr(UnitOfWork, "commit", lose_once)
        assert api.post(PATH, {"name": "Bread"}, key="k")["draft"]["name"] == "Bread"
        assert len(model.asked) == 1

    def test_a_key_may_draft_only_so_often_per_minute(
        self,
        set_cap: Callable[[int], None],
        model: OpenAiApi,
        owner: Owner,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        set_cap(1000)
        monkeypatch.setattr(
            limits, "settings", lambda: replace(settings(), rate_limit_scale=2 / 60)
        )
        api = owner.api()
        fill(api)
        fill(api)
        answer = refusal(api)
        assert (answer.status, answer.headers["Retry-After"]) == (429, "60")
        assert fill(owner.api())["draft"]
