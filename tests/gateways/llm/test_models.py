"""Names, providers and prices of models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core.errors import NotConfiguredError
from chalicelib.gateways.llm import model_tariffs, models
from chalicelib.gateways.llm.models import CATALOGUE, ModelSpec, find, resolve, similar_names
from tests.support.keyed import keyed
from tests.support.sweep import sweep

SONNET = CATALOGUE["claude-sonnet-4.5"]


@sweep("spec", CATALOGUE.values())
def test_the_catalogue_is_consistent(spec: ModelSpec) -> None:
    assert spec.known
    assert 0 < spec.input_price <= spec.output_price
    assert 0 < spec.max_output_tokens <= spec.context_tokens
    assert len(spec.name) <= 100
    assert find(spec.name) == spec
    assert find(spec.provider_id) is not None
    assert not models.is_arn(spec.provider_id)


def test_no_two_models_share_a_name() -> None:
    assert len(CATALOGUE) == sum(
        map(len, (getattr(models, n) for n in ("BEDROCK_BY_PROFILE", "BEDROCK", "OPENAI")))
    ) + len(model_tariffs.DEMO)


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4.5",
        " Claude Sonnet 4.5 ",
        "CLAUDE-SONNET-4-5",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ],
)
def test_a_name_is_recognised_in_any_spelling(name: str) -> None:
    assert find(name) == SONNET
    resolved = resolve(name, ["bedrock"])
    assert (resolved.name, resolved.known, resolved.input_price) == (name, True, SONNET.input_price)


def test_an_inference_profile_leads_to_models_that_require_one() -> None:
    assert resolve(SONNET.name, ["bedrock"], "eu").provider_id == f"eu.{SONNET.provider_id}"
    assert resolve("qwen3-32b", ["bedrock"], "eu").provider_id == "qwen.qwen3-32b-v1:0"
    profile = f"global.{SONNET.provider_id}"
    assert resolve(profile, ["bedrock"], "eu").provider_id == profile


def test_an_unknown_name_goes_to_the_first_provider_at_the_highest_price() -> None:
    resolved = resolve(" Org/New-Model ", ["openai", "bedrock"])
    assert (resolved.provider, resolved.provider_id) == ("openai", "Org/New-Model")
    assert (resolved.context_tokens, resolved.known) == (32_000, False)
    for known in CATALOGUE.values():
        assert resolved.input_price >= known.input_price
        assert resolved.output_price >= known.output_price
    assert resolve("new-model", ["bedrock", "openai"]).provider == "bedrock"


@pytest.mark.parametrize("name", ["arn:aws:bedrock:us-east-1:1:prompt/x", " ARN:aws:x"])
@pytest.mark.parametrize("providers", [["bedrock"], ["openai"], ["demo"]])
def test_an_arn_has_no_provider(name: str, providers: list[models.Provider]) -> None:
    with pytest.raises(NotConfiguredError, match="ARN"):
        resolve(name, providers)


@pytest.mark.parametrize("name", ["demo", "gpt-4o", "claude-sonnet-4.5", "new-model"])
def test_demo_model_has_the_price_of_the_named_model(name: str) -> None:
    resolved = resolve(name, ["demo"], "eu")
    assert (resolved.name, resolved.provider, resolved.provider_id) == (name, "demo", "demo")
    tariff = CATALOGUE.get(name)
    price = tariff.input_price if tariff else models.DEFAULT_INPUT_PRICE
    assert resolved.input_price == price


def test_a_model_of_an_unconfigured_provider_is_refused() -> None:
    with pytest.raises(NotConfiguredError, check=keyed("model_provider")):
        resolve("gpt-4o", ["bedrock"])
    assert resolve("gpt-4o", ["bedrock", "openai"]).provider == "openai"
    assert resolve("demo", ["bedrock"]).provider == "demo"


def test_no_provider_answers_if_models_are_off() -> None:
    for name in ("demo", "gpt-4o", "new-model"):
        with pytest.raises(NotConfiguredError, check=keyed("models")):
            resolve(name, [])


def test_similar_names_are_suggested() -> None:
    assert similar_names("gpt4o")[0] == "gpt-4o"
    assert "claude-sonnet-4.5" in similar_names("Claude Sonet 4.5")
    assert similar_names("zzzzzzzz") == []


@given(st.text(max_size=100), st.sampled_from([("demo",), ("bedrock",), ("openai", "bedrock")]))
def test_any_name_has_a_price_or_is_refused(
    name: str, providers: tuple[models.Provider, ...]
) -> None:
    similar_names(name)
    try:
        resolved = resolve(name, providers)
    except NotConfiguredError:
        return
    assert resolved.name == name
    assert min(resolved.input_price, resolved.output_price) > 0


@pytest.mark.parametrize(
    ("name", "takes_tools"),
    [
        ("claude-haiku-4.5", True),
        ("eu.amazon.nova-lite-v1:0", True),
        ("gpt-5-mini", True),
        ("deepseek-v3.1", True),
        ("deepseek-r1", False),
        ("llama-4-scout", False),
        ("pixtral-large", False),
        ("Org/New-Model", True),
        ("openai/gpt-4o-mini", True),
        ("meta-llama/llama-3.3-70b", True),
        ("deepseek/deepseek-r1", False),
        ("demo", True),
    ],
)
def test_tools_are_for_models_that_can_call_them_in_a_stream(name: str, takes_tools: bool) -> None:
    assert resolve(name, ["openai", "bedrock"]).takes_tools is takes_tools
    assert resolve(name, ["demo"]).takes_tools is CATALOGUE["demo"].takes_tools


def test_every_model_without_tools_is_in_the_catalogue() -> None:
    assert CATALOGUE.keys() >= model_tariffs.WITHOUT_TOOLS


def test_name_with_a_vendor_has_the_catalogues_price() -> None:
    known, spec = find("gpt-4o-mini"), resolve("openai/gpt-4o-mini", ["openai"])
    assert known
    assert spec == known._replace(name="openai/gpt-4o-mini", provider_id="openai/gpt-4o-mini")
    sonnet = resolve("anthropic/claude-sonnet-4.5", ["openai", "bedrock"])
    assert (sonnet.provider, sonnet.provider_id) == ("openai", "anthropic/claude-sonnet-4.5")
    assert sonnet.input_price == SONNET.input_price


def test_the_operator_sets_the_context_of_models_outside_the_catalogue() -> None:
    assert resolve("new", ["openai"], unknown_context=8_000).context_tokens == 8_000
