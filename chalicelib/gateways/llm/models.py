"""Catalogue of the models that bots can use.

Bots use public names such as ``claude-sonnet-4.5``. A name outside the catalogue is sent unchanged
to the first provider, at the highest price in the catalogue. Bots can therefore use a new model
immediately, at a price that probably covers its cost.

Prices are in micro-kopecks per token. They come from the providers' list prices on the date in
``VERSION``, at 100 roubles to the dollar: one dollar per million tokens is 10,000 micro-kopecks per
token. A hold stores its prices, so a change here does not affect a chat that is in progress.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import UNKNOWN_CONTEXT, UNKNOWN_OUTPUT, Provider
from chalicelib.core.text import fold, lazy_pattern

VERSION = "2026-11-22"

Row = tuple[str, str, int, int, int, int]
"""Public name, provider's id, input price, output price, context and longest answer in tokens."""

BEDROCK_BY_PROFILE: tuple[Row, ...] = (
    ("claude-opus-4.6", "anthropic.claude-opus-4-6-v1", 50_000, 250_000, 200_000, 64_000),
    (
        "claude-opus-4.5",
        "anthropic.claude-opus-4-5-20251101-v1:0",
        50_000,
        250_000,
        200_000,
        64_000,
    ),
    (
        "claude-opus-4.1",
        "anthropic.claude-opus-4-1-20250805-v1:0",
        150_000,
        750_000,
        200_000,
        32_000,
    ),
    ("claude-sonnet-4.6", "anthropic.claude-sonnet-4-6", 30_000, 150_000, 200_000, 64_000),
    (
        "claude-sonnet-4.5",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        30_000,
        150_000,
        200_000,
        64_000,
    ),
    (
        "claude-sonnet-4",
        "anthropic.claude-sonnet-4-20250514-v1:0",
        30_000,
        150_000,
        200_000,
        64_000,
    ),
    (
        "claude-haiku-4.5",
        "anthropic.claude-haiku-4-5-20251001-v1:0",
        10_000,
        50_000,
        200_000,
        64_000,
    ),
    ("claude-3.5-haiku", "anthropic.claude-3-5-haiku-20241022-v1:0", 8_000, 40_000, 200_000, 8_192),
    ("nova-premier", "amazon.nova-premier-v1:0", 25_000, 125_000, 1_000_000, 10_000),
    ("nova-pro", "amazon.nova-pro-v1:0", 8_000, 32_000, 300_000, 10_000),
    ("nova-2-lite", "amazon.nova-2-lite-v1:0", 3_000, 25_000, 1_000_000, 64_000),
    ("nova-lite", "amazon.nova-lite-v1:0", 600, 2_400, 300_000, 10_000),
    ("nova-micro", "amazon.nova-micro-v1:0", 350, 1_400, 128_000, 10_000),
    ("llama-4-maverick", "meta.llama4-maverick-17b-instruct-v1:0", 2_400, 9_700, 1_000_000, 8_192),
    ("llama-4-scout", "meta.llama4-scout-17b-instruct-v1:0", 1_700, 6_600, 1_000_000, 8_192),
    ("llama-3.3-70b", "meta.llama3-3-70b-instruct-v1:0", 7_200, 7_200, 128_000, 8_192),
    ("llama-3.1-8b", "meta.llama3-1-8b-instruct-v1:0", 2_200, 2_200, 128_000, 8_192),
    ("deepseek-r1", "deepseek.r1-v1:0", 13_500, 54_000, 128_000, 32_768),
    ("pixtral-large", "mistral.pixtral-large-2502-v1:0", 20_000, 60_000, 128_000, 8_192),
)
"""Models that Bedrock serves only through an inference profile, such as ``eu``."""

BEDROCK: tuple[Row, ...] = (
    ("claude-3-haiku", "anthropic.claude-3-haiku-20240307-v1:0", 2_500, 12_500, 200_000, 4_096),
    ("deepseek-v3.1", "deepseek.v3-v1:0", 5_800, 16_800, 128_000, 8_192),
    ("qwen3-235b", "qwen.qwen3-235b-a22b-2507-v1:0", 2_200, 8_800, 262_144, 16_384),
    ("qwen3-32b", "qwen.qwen3-32b-v1:0", 1_500, 6_000, 32_768, 16_384),
    ("mistral-large", "mistral.mistral-large-2407-v1:0", 20_000, 60_000, 128_000, 8_192),
    ("mistral-small", "mistral.mistral-small-2402-v1:0", 10_000, 30_000, 32_000, 8_192),
    ("gpt-oss-120b", "openai.gpt-oss-120b-1:0", 1_500, 6_000, 128_000, 16_384),
    ("gpt-oss-20b", "openai.gpt-oss-20b-1:0", 700, 3_000, 128_000, 16_384),
    ("command-r-plus", "cohere.command-r-plus-v1:0", 30_000, 150_000, 128_000, 4_096),
    ("command-r", "cohere.command-r-v1:0", 5_000, 15_000, 128_000, 4_096),
)
"""Models that Bedrock serves under their own id, in some regions."""

OPENAI: tuple[Row, ...] = (
    ("gpt-5.2", "gpt-5.2", 17_500, 140_000, 400_000, 128_000),
    ("gpt-5.1", "gpt-5.1", 12_500, 100_000, 400_000, 128_000),
    ("gpt-5", "gpt-5", 12_500, 100_000, 400_000, 128_000),
    ("gpt-5-mini", "gpt-5-mini", 2_500, 20_000, 400_000, 128_000),
    ("gpt-5-nano", "gpt-5-nano", 500, 4_000, 400_000, 128_000),
    ("gpt-4.1", "gpt-4.1", 20_000, 80_000, 1_047_576, 32_768),
    ("gpt-4.1-mini", "gpt-4.1-mini", 4_000, 16_000, 1_047_576, 32_768),
    ("gpt-4.1-nano", "gpt-4.1-nano", 1_000, 4_000, 1_047_576, 32_768),
    ("gpt-4o", "gpt-4o", 25_000, 100_000, 128_000, 16_384),
    ("gpt-4o-mini", "gpt-4o-mini", 1_500, 6_000, 128_000, 16_384),
    ("gpt-4-turbo", "gpt-4-turbo", 100_000, 300_000, 128_000, 4_096),
    ("gpt-3.5-turbo", "gpt-3.5-turbo", 5_000, 15_000, 16_385, 4_096),
    ("o3", "o3", 20_000, 80_000, 200_000, 100_000),
    ("o4-mini", "o4-mini", 11_000, 44_000, 200_000, 100_000),
    ("deepseek-chat", "deepseek-chat", 2_800, 4_200, 128_000, 8_192),
    ("deepseek-reasoner", "deepseek-reasoner", 2_800, 4_200, 128_000, 65_536),
    ("qwen-max", "qwen-max", 16_000, 64_000, 32_768, 8_192),
    ("qwen-plus", "qwen-plus", 4_000, 12_000, 131_072, 16_384),
    ("qwen-turbo", "qwen-turbo", 500, 2_000, 131_072, 16_384),
    ("mistral-large-latest", "mistral-large-latest", 20_000, 60_000, 128_000, 8_192),
    ("mistral-medium-latest", "mistral-medium-latest", 4_000, 20_000, 128_000, 8_192),
    ("mistral-small-latest", "mistral-small-latest", 1_000, 3_000, 128_000, 8_192),
    ("gemini-2.5-pro", "gemini-2.5-pro", 12_500, 150_000, 1_048_576, 65_536),
    ("gemini-2.5-flash", "gemini-2.5-flash", 3_000, 25_000, 1_048_576, 65_536),
    ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite", 1_000, 4_000, 1_048_576, 65_536),
    ("grok-4", "grok-4", 30_000, 150_000, 256_000, 16_384),
)
"""Models of servers with OpenAI's chat completions API, under the names of their vendors."""

WITHOUT_ANY_TOOLS = frozenset({"deepseek-r1"})
"""Names of models that cannot call tools at all."""
WITHOUT_TOOLS = WITHOUT_ANY_TOOLS | frozenset(
    {
        # Bedrock refuses tools in streams of Meta's and Mistral's models.
        "llama-4-maverick",
        "llama-4-scout",
        "llama-3.3-70b",
        "llama-3.1-8b",
        "pixtral-large",
        "mistral-large",
        "mistral-small",
    }
)
"""Names of models that cannot call tools in a streamed answer. All others of the catalogue can.

See "Supported models and model features" of the Converse API in the documentation of Amazon
Bedrock.
"""

DEMO: tuple[Row, ...] = (("demo", "demo", 10_000, 30_000, 32_000, 1_024),)
"""The embedded demo model. It has a price for testing billing: 100 input tokens cost a kopeck."""


MAX_SIMILAR_NAMES = 3


class ModelSpec(NamedTuple):
    """Provider, prices and limits of a model.

    ``name`` is the name set in the bot. ``provider_id`` is the id that the provider uses. Prices
    are in micro-kopecks per token. ``context_tokens`` limits input and answer together, and
    ``max_output_tokens`` limits the answer. ``known`` is true for a model of the catalogue; others
    have default prices and limits. ``requires_profile`` is true if Bedrock serves the model only
    through an inference profile. ``takes_tools`` is true if the model can call tools in a streamed
    answer.
    """

    name: str
    provider: Provider
    provider_id: str
    input_price: int
    output_price: int
    context_tokens: int
    max_output_tokens: int
    known: bool = True
    requires_profile: bool = False
    takes_tools: bool = False


def _specs(
    provider: Provider, rows: Iterable[Row], *, requires_profile: bool = False
) -> Iterable[ModelSpec]:
    for name, id_, input_price, output_price, context, max_output in rows:
        yield ModelSpec(
            name,
            provider,
            id_,
            input_price,
            output_price,
            context,
            max_output,
            requires_profile=requires_profile,
            takes_tools=name not in WITHOUT_TOOLS,
        )


CATALOGUE: Mapping[str, ModelSpec] = {
    spec.name: spec
    for specs in (
        _specs("bedrock", BEDROCK_BY_PROFILE, requires_profile=True),
        _specs("bedrock", BEDROCK),
        _specs("openai", OPENAI),
        _specs("demo", DEMO),
    )
    for spec in specs
}
"""Known models by public name."""
DEFAULT_INPUT_PRICE = max(spec.input_price for spec in CATALOGUE.values())
DEFAULT_OUTPUT_PRICE = max(spec.output_price for spec in CATALOGUE.values())
"""Prices of an unknown model, equal to the prices of the most expensive known model."""


def resolve(
    name: str,
    providers: Sequence[Provider],
    profile: str = "",
    *,
    unknown_context: int = UNKNOWN_CONTEXT,
    unknown_output: int = UNKNOWN_OUTPUT,
) -> ModelSpec:
    """Return the model that serves a name with the configured providers.

    Args:
        name: the name set in a bot.
        providers: the configured providers. The first one serves unknown models. If ``demo`` is the
            only one, it serves all models, at their own prices. Otherwise it serves only the model
            ``demo``.
        profile: the inference profile, such as ``eu``, for Bedrock models that require one. A
            profile at the beginning of ``name`` takes precedence.
        unknown_context: context, in tokens, of a model outside the catalogue.
        unknown_output: longest answer, in tokens, of a model outside the catalogue.

    Raises:
        NotConfiguredError: no provider is configured, or the model's provider is not configured, or
            the name is an ARN. An ARN could give access to other resources of the AWS account.
    """
    if not providers:
        raise NotConfiguredError("Bots are switched off. The operator can set LLM_PROVIDER.")
    spec = find(name)
    if spec is None:
        if is_arn(name):
            raise NotConfiguredError("The bot's model is an ARN. Use the name of a model instead.")
        spec = _find_vendor_model(name, providers) or ModelSpec(
            name,
            "openai" if "/" in name and "openai" in providers else providers[0],
            name.strip(),
            DEFAULT_INPUT_PRICE,
            DEFAULT_OUTPUT_PRICE,
            unknown_context,
            unknown_output,
            known=False,
            takes_tools=True,
        )
    spec = spec._replace(name=name)
    if tuple(providers) == ("demo",):
        return spec._replace(
            provider="demo",
            provider_id="demo",
            requires_profile=False,
            takes_tools=CATALOGUE["demo"].takes_tools,
        )
    if spec.provider not in (*providers, "demo"):
        msg = (
            f"The provider of the bot's model, {spec.provider}, is not configured. Choose another "
            "model, or ask the operator to add the provider to LLM_PROVIDER."
        )
        raise NotConfiguredError(msg)
    if _PROFILE.match(name) and spec.provider == "bedrock":
        return spec._replace(provider_id=name.strip())
    if spec.requires_profile and profile:
        return spec._replace(provider_id=f"{profile}.{spec.provider_id}")
    return spec


def find(name: str) -> ModelSpec | None:
    """Return the known model with a name or a provider's id, or None.

    Case, and which of spaces, dots, hyphens and underscores separates words, do not matter.

    ``Claude Sonnet 4.5``, ``claude-sonnet-4-5`` and the id on Bedrock find the same model.
    """
    return _BY_KEY.get(_key(_PROFILE.sub("", name)))


def _find_vendor_model(name: str, providers: Sequence[Provider]) -> ModelSpec | None:
    """Return the model of a name with its vendor, such as ``openai/gpt-4o-mini``, or None.

    OpenRouter and other servers with OpenAI's API use these names, with suffixes such as ``:free``.
    They receive the whole name, and call tools, since only Bedrock refuses tools in streams of
    models that have them. Without such a server, the short name determines the model.
    """
    vendor, _, short_name = name.strip().rpartition("/")
    spec = find(short_name.partition(":")[0]) if vendor else None
    if spec is None or spec.provider == "demo":
        return None
    if "openai" not in providers:
        return spec if {spec.provider, "demo"} & {*providers} else None
    return spec._replace(
        provider="openai",
        provider_id=name.strip(),
        requires_profile=False,
        takes_tools=spec.takes_tools or spec.name not in WITHOUT_ANY_TOOLS,
    )


def similar_names(name: str) -> list[str]:
    """Return the known names that are similar to an unknown name, the most similar first."""
    keys = {_key(name): name for name in CATALOGUE}
    return [
        keys[key] for key in get_close_matches(_key(name), keys, n=MAX_SIMILAR_NAMES, cutoff=0.6)
    ]


def is_arn(name: str) -> bool:
    """Whether a name is an ARN, which bots may not use."""
    return fold(name).strip().startswith("arn:")


_PROFILE = lazy_pattern(r"\s*(us|us-gov|eu|apac|ap|au|ca|jp|global)\.")
"""The profile before a Bedrock id, such as ``eu.`` in ``eu.amazon.nova-pro-v1:0``."""


def _key(name: str) -> str:
    return re.sub(r"[\s._-]+", "-", fold(name).strip())


_BY_KEY = {
    _key(spelling): spec
    for spec in CATALOGUE.values()
    for spelling in (spec.provider_id, spec.name)
}
