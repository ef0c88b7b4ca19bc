"""Operations on bots, their keys, their public settings and the models."""

import json
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import AppError, ConflictError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.domains.bots.operations import bots as records
from chalicelib.domains.bots.store import bot_keys
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.lib import accents, tokens
from tests.conftest import (
    Api,
    Owner,
    Time,
    all_rows,
    call_console,
    call_operator,
    run_concurrently,
)
from tests.factories.examples import AGENT
from tests.support.keyed import keyed
from tests.support.warned import warned

LIST, CREATE = "/api/agents/list", "/api/agents/create"


def create(api: Api, **values: Any) -> Any:
    return api.post(CREATE, AGENT | values)["agent"]


def update(api: Api, agent_id: str, **changes: Any) -> Any:
    answer = api.call("PUT", f"/api/agents/{agent_id}", changes)
    assert answer.status == 200, answer.body
    return answer.data["agent"]


def refused_fields(api: Api, **values: Any) -> dict[str, str]:
    """Create a bot that must be refused, and return the keys of the errors by field."""
    answer = api.call_refused("POST", CREATE, AGENT | values)
    assert answer.status == 400
    return {error["field"]: error["key"] for error in answer.data["errors"]}


class TestCreateAgent:
    def test_create_makes_an_active_public_bot(self, api: Api, owner: Owner) -> None:
        agent = create(api)
        assert agent == api.get(f"/api/agents/{agent['id']}")["agent"]
        assert AGENT.items() <= agent.items()
        assert (agent["isActive"], agent["isPrivate"]) == (True, False)
        assert (agent["welcomeMessage"], agent["allowedOrigins"]) == (None, [])
        assert AGENTS.workspace_of(agent["id"]) == owner.workspace.id

    def test_create_accepts_all_fields(self, api: Api) -> None:
        values = {
            "isActive": False,
            "isPrivate": True,
            "welcomeMessage": "Hello!\nWhat shall it be?",
            "systemPrompt": "я" * 20_000,
        }
        assert values.items() <= create(api, **values).items()

    def test_a_new_bot_reads_the_catalogue_until_its_capabilities_change(self, api: Api) -> None:
        agent = create(api)
        assert agent["capabilities"] == ["catalog"]
        both = update(api, agent["id"], capabilities=["slots", "catalog"])
        assert both["capabilities"] == ["catalog", "slots"]
        assert update(api, agent["id"], capabilities=[])["capabilities"] == []
        response = api.call_refused("PUT", f"/api/agents/{agent['id']}", {"capabilities": ["pay"]})
        assert response.status == 400

    def test_a_name_has_a_visible_character(self, api: Api) -> None:
        assert refused_fields(api, name="\u200b \u2060") == {"name": "invisible"}

    def test_origins_are_stored_as_browsers_send_them(self, api: Api) -> None:
        origins = [
            "HTTPS://Bakery.Example:443/",
            "https://bakery.example",
            "http://localhost:8080",
            "https://хлеб.example",
            "http://[::1]:80",
        ]
        assert create(api, allowedOrigins=origins)["allowedOrigins"] == [
            "https://bakery.example",
            "http://localhost:8080",
            "https://xn--90ahr3b.example",
            "http://[::1]",
        ]

    @pytest.mark.parametrize(
        "origin",
        [
            *("bakery.example", "https://", "*", "https://*.example", "ftp://bakery.example"),
            *("https://bakery.example/shop", "https://a@bakery.example", "https://b.example:x"),
            "null",
        ],
    )
    def test_an_invalid_origin_is_refused(self, api: Api, origin: str) -> None:
        assert refused_fields(api, allowedOrigins=[origin]) == {"allowedOrigins.0": "origin"}

    def test_a_model_outside_the_catalogue_is_a_warning_with_similar_names(self, api: Api) -> None:
        assert "warnings" not in api.post(CREATE, AGENT | {"model": "Claude Sonnet 4.5"})
        response = api.post(CREATE, AGENT | {"model": "claude-sonet-4.5"})
        assert response["agent"]["model"] == "claude-sonet-4.5"
        (warning,) = warned(response)
        assert (warning["code"], warning["model"]) == ("unknown_model", "claude-sonet-4.5")
        assert "claude-sonnet-4.5" in warning["suggestions"]

    def test_a_model_name_may_include_its_vendor(self, api: Api) -> None:
        assert "warnings" not in api.post(CREATE, AGENT | {"model": "openai/gpt-4o-mini"})

    def test_capabilities_that_the_model_cannot_use_are_a_warning(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> None:
        monkeypatch.setenv("LLM_PROVIDER", "bedrock")
        reload_settings()
        response = api.post(CREATE, AGENT | {"model": "llama-4-scout"})
        path = f"/api/agents/{response['agent']['id']}"
        (warning,) = warned(api.call("PUT", path, {"capabilities": ["booking"]}).data)
        facts = {"model": "llama-4-scout", "capabilities": ["slots", "booking"]}
        assert warning == {"code": "model_without_tools", **facts}
        update_response = api.call("PUT", path, {"model": "claude-haiku-4.5"}).data
        assert "warnings" not in update_response
        for change in ({"model": "deepseek-r1"}, {"capabilities": ["handover"]}):
            (warning,) = warned(api.call("PUT", path, change).data)
            assert warning["code"] == "model_without_tools"
        assert "warnings" not in api.call("PUT", path, {"capabilities": ["catalog"]}).data

    def test_an_arn_is_refused_as_a_model(self, api: Api) -> None:
        arn = "arn:aws:bedrock:eu-central-1:1:inference-profile/x"
        assert refused_fields(api, model=arn) == {"model": "model_arn"}

    def test_the_number_of_bots_is_limited_to_the_size_of_a_list(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(records, "MAX_AGENTS", 3)
        answers = run_concurrently(
            6, lambda n: api.call("POST", CREATE, AGENT | {"name": f"{n}"}).status
        )
        assert sorted(answers) == [200, 200, 200, 409, 409, 409]
        assert len(api.get(LIST)["agents"]) == 3


def test_the_list_has_all_bots_newest_first_without_prompts(api: Api, time: Time) -> None:
    ids = []
    for number in range(3):
        ids.append(create(api, name=f"Bot {number}")["id"])
        time.pass_by(seconds=1)
    agents = api.get(LIST)["agents"]
    assert [agent["id"] for agent in agents] == ids[::-1]
    assert not any("systemPrompt" in agent for agent in agents)


class TestUpdateAgent:
    def test_an_update_changes_only_the_given_fields(self, api: Api, time: Time) -> None:
        agent = create(api, welcomeMessage="Hello!")
        time.pass_by(minutes=1)
        updated_agent = update(api, agent["id"], name="Miller", isActive=False)
        changed_fields = {name for name in updated_agent if updated_agent[name] != agent[name]}
        assert changed_fields == {"name", "isActive", "updatedAt"}
        cleared = update(api, agent["id"], welcomeMessage=None, allowedOrigins=[])
        assert cleared["welcomeMessage"] is None

    def test_a_new_model_outside_the_catalogue_is_a_warning(self, api: Api) -> None:
        agent = create(api)["id"]
        answer = api.call("PUT", f"/api/agents/{agent}", {"model": "my-own-model"})
        (warning,) = warned(answer.data)
        assert (warning["code"], warning["model"]) == ("unknown_model", "my-own-model")
        assert "warnings" not in api.call("PUT", f"/api/agents/{agent}", {"name": "x"}).data


class TestBotKeys:
    def make(self, agent_id: str, name: str = "Site") -> Any:
        return call_operator("create_bot_key", agentId=agent_id, name=name)

    def test_a_key_is_shown_once_and_stored_as_a_hash(self, api: Api) -> None:
        agent = create(api)["id"]
        key = self.make(agent)
        token = key["token"]
        assert tokens.well_formed(token, prefix=tokens.BOT_PREFIX)
        assert token not in str(all_rows())
        assert api.get(f"/api/agents/{agent}")["keys"] == [f"svc_bot_…{token[-4:]}"]
        assert bot_keys.is_key_of(agent, token=token)

    def test_a_key_opens_only_its_own_bot(self, api: Api) -> None:
        one, other = create(api)["id"], create(api)["id"]
        token = self.make(one)["token"]
        assert not bot_keys.is_key_of(other, token=token)
        wrong = tokens.generate(tokens.BOT_PREFIX)
        assert not any(
            bot_keys.is_key_of(one, token=text) for text in (wrong, "", token[:-1], api.token)
        )

    def test_a_bot_has_at_most_five_keys_even_when_created_concurrently(self, api: Api) -> None:
        agent = create(api)["id"]

        def act(number: int) -> bool:
            try:
                return bool(self.make(agent, f"{number}"))
            except ConflictError:
                return False

        assert sum(run_concurrently(8, act)) == 5
        with pytest.raises(ConflictError, check=keyed("too_many_bot_keys", maximum=5)):
            self.make(agent)
        assert len(api.get(f"/api/agents/{agent}")["keys"]) == 5

    def test_a_deleted_key_stays_deleted_and_makes_room(self, api: Api) -> None:
        agent = create(api)["id"]
        keys = [self.make(agent) for _ in range(5)]
        gone = call_operator("delete_bot_key", agentId=agent, keyId=keys[2]["keyId"])
        assert gone == {"keyId": keys[2]["keyId"]}
        assert not bot_keys.is_key_of(agent, token=keys[2]["token"])
        assert bot_keys.is_key_of(agent, token=keys[3]["token"])
        assert self.make(agent)["token"]

    def test_keys_of_another_bot_are_not_found(self, api: Api) -> None:
        one, other = create(api)["id"], create(api)["id"]
        key = self.make(one)["keyId"]
        for agent_id, key_id in ((other, key), (one, new_id()), (new_id(), key)):
            with pytest.raises(AppError) as caught:
                call_operator("delete_bot_key", agentId=agent_id, keyId=key_id)
            assert caught.value.status == 404


class TestSession:
    """Bots in the console."""

    CALLS: ClassVar[dict[str, dict[str, Any]]] = {
        "create_bot_key": {"name": "Site"},
        "delete_bot_key": {"keyId": "x"},
        "set_bot_limits": {"daily": 100},
    }

    def act(self, operation: str, workspace_id: str, **arguments: Any) -> Any:
        principal = SessionPrincipal(
            account_id="a", workspace_id=workspace_id, membership=Role.OWNER
        )
        reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id="r")
        return json.loads(reply.body)["data"]

    def test_a_session_manages_keys_and_limits_of_its_own_bots(
        self, api: Api, owner: Owner
    ) -> None:
        agent, home = create(api)["id"], owner.workspace.id
        key = self.act("create_bot_key", home, agentId=agent, name="Site")["keyId"]
        assert self.act("set_bot_limits", home, agentId=agent, daily=5)["daily"] == 5
        assert self.act("delete_bot_key", home, agentId=agent, keyId=key)["keyId"] == key


class TestPublicSettings:
    """``GET /api/public/agents/{id}``: the settings that a page's widget receives."""

    def test_a_page_receives_only_the_settings_it_shows(self, api: Api) -> None:
        public_fields = {"welcomeMessage": "Hello!", "allowedOrigins": ["https://bakery.example"]}
        agent = create(api, **public_fields)
        answer = Api(None).call("GET", f"/api/public/agents/{agent['id']}")
        assert (answer.status, answer.data["agent"]) == (
            200,
            {
                "id": agent["id"],
                "name": agent["name"],
                "isPrivate": False,
                "offersTimes": False,
                "privacyUrl": None,
                "isTest": False,
                "brand": {
                    "name": "Workspace",
                    "logoUrl": None,
                    "colors": list(accents.colours(None)),
                },
                **public_fields,
            },
        )
        assert answer.headers["Access-Control-Allow-Origin"] == "*"

    def test_settings_of_a_private_bot_only_show_that_it_is_private(self, api: Api) -> None:
        agent = create(api, isPrivate=True, welcomeMessage="Hello, Ada!")
        settings = Api(None).get(f"/api/public/agents/{agent['id']}")["agent"]
        assert settings["isPrivate"] is True
        assert (settings["name"], settings["welcomeMessage"]) == ("", None)
        assert (settings["brand"], settings["privacyUrl"]) == (None, None)

    def test_a_page_receives_the_look_of_the_business_and_the_bots_policy(
        self, api: Api, owner: Owner
    ) -> None:
        home = owner.workspace
        call_console(home.id, "set_workspace", account_id=home.owner_id, accent="teal")
        agent = create(api, name=home.name)
        call_console(home.id, "set_workspace", privacyUrl="https://bakery.example/rules")
        settings = Api(None).get(f"/api/public/agents/{agent['id']}")["agent"]
        assert settings["privacyUrl"] == "https://bakery.example/rules"
        update(api, agent["id"], privacyUrl="https://bakery.example/privacy")
        settings = Api(None).get(f"/api/public/agents/{agent['id']}")["agent"]
        assert settings["brand"]["colors"] == list(accents.colours("teal"))
        assert settings["brand"]["name"] is None, "the bot has the same name"
        assert settings["privacyUrl"] == "https://bakery.example/privacy"

    def test_unknown_and_inactive_bots_get_the_same_response(self, api: Api) -> None:
        agent = create(api)
        update(api, agent["id"], isActive=False)
        errors = [
            Api(None).call_refused("GET", f"/api/public/agents/{agent_id}").data
            for agent_id in (agent["id"], new_id())
        ]
        assert [error.pop("code") for error in errors] == ["not_found"] * 2
        assert [error["message"] for error in errors] == [errors[0]["message"]] * 2

    def test_reading_public_settings_is_not_audited(self, api: Api) -> None:
        agent = create(api)
        audited = sum(key.startswith("audit/") for key in all_rows())
        Api(None).get(f"/api/public/agents/{agent['id']}")
        assert sum(key.startswith("audit/") for key in all_rows()) == audited


class TestListModels:
    def test_each_model_has_limits_and_prices_for_a_million_tokens(self, api: Api) -> None:
        models = {model["name"]: model for model in api.get("/api/agents/models")["models"]}
        assert models["claude-sonnet-4.5"] == {
            "name": "claude-sonnet-4.5",
            "provider": "demo",
            "contextTokens": 200_000,
            "maxOutputTokens": 64_000,
            "inputPrice": 30_000,
            "outputPrice": 150_000,
        }
        assert list(models) == sorted(models)

    def test_every_listed_model_is_accepted_without_a_warning(self, api: Api) -> None:
        for model in api.get("/api/agents/models")["models"]:
            answer = api.post(CREATE, AGENT | {"model": model["name"]})
            assert "warnings" not in answer

    def test_models_of_a_provider_that_is_not_configured_are_not_listed(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
    ) -> None:
        monkeypatch.setenv("LLM_PROVIDER", "bedrock")
        reload_settings()
        models = api.get("/api/agents/models")["models"]
        assert {model["provider"] for model in models} == {"bedrock", "demo"}
