"""Catalogue of the models that bots can use, by public names such as ``claude-sonnet-4.5``.

A name outside the catalogue is sent unchanged to the first provider, at the highest price in the
catalogue. Bots can therefore use a new model immediately, at a price that probably covers its cost.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import UNKNOWN_CONTEXT, UNKNOWN_OUTPUT, Provider
from chalicelib.core.text import fold
from chalicelib.gateways.llm.model_tariffs import (
    BEDROCK,
    BEDROCK_BY_PROFILE,
    DEMO,
    OPENAI,
    WITHOUT_ANY_TOOLS,
    WITHOUT_TOOLS,
    Row,
)

MAX_SIMILAR_NAMES = 3
# The profile before a Bedrock id, such as ``eu.`` in ``eu.amazon.nova-pro-v1:0``.
_PROFILE = re.compile(r"(?<!\s)\s*(us|us-gov|eu|apac|ap|au|ca|jp|global)\.")


class ModelSpec(NamedTuple):
    """Provider, prices in micro-kopecks per token, and limits of a model."""

    name: str  # as set in the bot
    provider: Provider
    provider_id: str
    input_price: int
    output_price: int
    context_tokens: int  # input and answer together
    max_output_tokens: int
    known: bool = True  # in the catalogue; others have default prices and limits
    requires_profile: bool = False  # Bedrock serves it only through an inference profile.
    takes_tools: bool = False  # in a streamed answer


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


# Known models by public name.
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

DEFAULT_INPUT_PRICE = max(spec.input_price for spec in CATALOGUE.values())

# An unknown model costs as much as the most expensive known one.
DEFAULT_OUTPUT_PRICE = max(spec.output_price for spec in CATALOGUE.values())


def resolve(
    name: str,
    providers: Sequence[Provider],
    profile: str = "",
    *,
    unknown_context: int = UNKNOWN_CONTEXT,
    unknown_output: int = UNKNOWN_OUTPUT,
) -> ModelSpec:
    """Return the model that serves a name, with the first provider for unknown models.

    ``demo`` serves all models, at their own prices, if it is the only provider. A ``profile``, such
    as ``eu``, at the beginning of ``name`` takes precedence. Raises NotConfiguredError if the
    model's provider is not configured, or the name is an ARN.
    """
    if not providers:
        raise NotConfiguredError(
            "Bots are switched off. The operator can set LLM_PROVIDER.", key="models"
        )
    spec = find(name)
    if spec is None:
        # An ARN could give access to other resources of the AWS account.
        if is_arn(name):
            raise NotConfiguredError(
                "The bot's model is an ARN. Use the name of a model instead.", key="model"
            )
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
        raise NotConfiguredError(msg, key="model_provider")
    if _PROFILE.match(name) and spec.provider == "bedrock":
        return spec._replace(provider_id=name.strip())
    if spec.requires_profile and profile:
        return spec._replace(provider_id=f"{profile}.{spec.provider_id}")
    return spec


def find(name: str) -> ModelSpec | None:
    """Return the known model with a name or a provider's id, in any case and with any separator."""
    # ``Claude Sonnet 4.5`` and ``claude-sonnet-4-5`` find the same model.
    return _BY_KEY.get(_key(_PROFILE.sub("", name)))


def _find_vendor_model(name: str, providers: Sequence[Provider]) -> ModelSpec | None:
    # OpenRouter and other servers with OpenAI's API use names such as ``openai/gpt-4o-mini``, with
    # suffixes such as ``:free``. They receive the whole name, and call tools, since only Bedrock
    # refuses tools in streams of models that have them.
    vendor, _, short_name = name.strip().rpartition("/")
    spec = find(short_name.partition(":")[0]) if vendor else None
    if spec is None or spec.provider == "demo":
        return None
    if "openai" not in providers:  # The short name determines the model.
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


def _key(name: str) -> str:
    return re.sub(r"[\s._-]+", "-", fold(name).strip())


_BY_KEY = {
    _key(spelling): spec
    for spec in CATALOGUE.values()
    for spelling in (spec.provider_id, spec.name)
}
