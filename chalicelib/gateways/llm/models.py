"""Which model a bot's model name stands for, who answers for it, and what it costs.

Bots name models as people do (``claude-sonnet-4.5``); the catalogue knows the provider's id and
the tariff. A name that it does not know goes to the first provider as it is, at a tariff that no
known model passes, so that a new model is usable at once and never sold below its price.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import UNKNOWN_OUTPUT, Provider
from chalicelib.core.text import fold
from chalicelib.gateways.llm import model_tariffs as tariffs

UNKNOWN_CONTEXT = 32_000
"""Tokens that a model outside the catalogue is trusted to take, its answer included."""
NEAR_NAMES = 3


class ModelSpec(NamedTuple):
    """A model as a chat needs it.

    ``name`` is the bot's; ``provider_id`` is what the provider calls it, and ``by_profile`` whether
    Bedrock serves it through an inference profile only. Prices are micro-kopecks for one token.
    ``context_tokens`` bounds input and answer together, ``max_output_tokens`` the answer alone.
    ``known`` is whether the catalogue has it: else price and limits are defaults.
    """

    name: str
    provider: Provider
    provider_id: str
    input_price: int
    output_price: int
    context_tokens: int
    max_output_tokens: int
    known: bool = True
    by_profile: bool = False


def _specs(
    provider: Provider, rows: Iterable[tariffs.Row], *, by_profile: bool = False
) -> Iterable[ModelSpec]:
    for name, id_, *numbers in rows:
        asked, said, context, longest = numbers
        yield ModelSpec(name, provider, id_, asked, said, context, longest, by_profile=by_profile)


CATALOGUE: Mapping[str, ModelSpec] = {
    spec.name: spec
    for specs in (
        _specs("bedrock", tariffs.BEDROCK_BY_PROFILE, by_profile=True),
        _specs("bedrock", tariffs.BEDROCK),
        _specs("openai", tariffs.OPENAI),
        _specs("demo", tariffs.DEMO),
    )
    for spec in specs
}
"""The known models by their public names."""
DEFAULT_INPUT_PRICE = max(spec.input_price for spec in CATALOGUE.values())
DEFAULT_OUTPUT_PRICE = max(spec.output_price for spec in CATALOGUE.values())
"""What an unknown model costs: as much as the dearest known one."""


def resolve(
    name: str,
    providers: Sequence[Provider],
    profile: str = "",
    *,
    unknown_output: int = UNKNOWN_OUTPUT,
) -> ModelSpec:
    """Return the model that a name stands for where these providers answer, the first one first.

    ``demo`` alone means that no provider is set up: it answers for every name, at that name's
    tariff. Beside others it answers to its own name. ``profile`` is the inference profile, such as
    ``eu``, that leads to models of Bedrock which have no other way; a name may bring its own.
    ``unknown_output`` is how many tokens a model outside the catalogue may answer with.

    Raises:
        NotConfiguredError: nobody answers for it: there is no provider, or not that of this model,
            or the name is an ARN, which would lead to resources of an AWS account.
    """
    if not providers:
        raise NotConfiguredError("Bots are switched off: the operator sets LLM_PROVIDER.")
    spec = find(name)
    if spec is None:
        if is_arn(name):
            raise NotConfiguredError("The bot's model is an ARN; name the model itself.")
        spec = ModelSpec(
            name,
            providers[0],
            name.strip(),
            DEFAULT_INPUT_PRICE,
            DEFAULT_OUTPUT_PRICE,
            UNKNOWN_CONTEXT,
            unknown_output,
            known=False,
        )
    spec = spec._replace(name=name)
    if tuple(providers) == ("demo",):
        return spec._replace(provider="demo", provider_id="demo", by_profile=False)
    if spec.provider not in (*providers, "demo"):
        msg = (
            f"The bot's model is one of {spec.provider}, which is not set up here: choose another "
            "model, or the operator adds it to LLM_PROVIDER."
        )
        raise NotConfiguredError(msg)
    if _PROFILE.match(name) and spec.provider == "bedrock":
        return spec._replace(provider_id=name.strip())
    if spec.by_profile and profile:
        return spec._replace(provider_id=f"{profile}.{spec.provider_id}")
    return spec


def find(name: str) -> ModelSpec | None:
    """Return the known model that a name stands for, however it is spelt, or by its provider's id.

    ``Claude Sonnet 4.5``, ``claude-sonnet-4-5`` and the id on Bedrock are the same model.
    """
    return _BY_KEY.get(_key(_PROFILE.sub("", name)))


def near_names(name: str) -> list[str]:
    """Return the known names that an unknown one was probably meant for, the nearest first."""
    keys = {_key(known): known for known in CATALOGUE}
    return [keys[key] for key in get_close_matches(_key(name), keys, n=NEAR_NAMES, cutoff=0.6)]


def is_arn(name: str) -> bool:
    """Whether a name is an ARN, which no bot may name."""
    return fold(name).strip().startswith("arn:")


_PROFILE = re.compile(r"\s*(us|us-gov|eu|apac|ap|au|ca|jp|global)\.")
"""The profile before an id of Bedrock's, such as ``eu.`` in ``eu.amazon.nova-pro-v1:0``."""


def _key(name: str) -> str:
    return re.sub(r"[\s._-]+", "-", fold(name).strip())


_BY_KEY = {
    _key(each): spec for spec in CATALOGUE.values() for each in (spec.provider_id, spec.name)
}
