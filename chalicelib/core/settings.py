"""What the environment decides, read once. Every variable the service knows is named here."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

Provider = Literal["bedrock", "openai", "demo"]
UNKNOWN_OUTPUT = 2_048
"""Tokens that a model outside the catalogue may answer with, unless the operator sets another."""

_PROVIDERS: Mapping[frozenset[str], tuple[Provider, ...]] = {
    frozenset({"off"}): (),
    frozenset({"demo"}): ("demo",),
    frozenset({"bedrock"}): ("bedrock",),
    frozenset({"openai"}): ("openai",),
    frozenset({"bedrock", "openai"}): ("bedrock", "openai"),
}
"""What ``LLM_PROVIDER`` may name."""

_BARCODE_SOURCES = (
    "openfoodfacts=https://world.openfoodfacts.org"
    " openbeautyfacts=https://world.openbeautyfacts.org"
    " openproductsfacts=https://world.openproductsfacts.org"
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The process's settings.

    ``object_store`` is ``s3://<bucket>`` on AWS and ``file://<folder>`` elsewhere;
    ``rate_limit_scale`` multiplies every rate limit (load tests); ``public_url`` is the base URL
    that visitors see; ``sites_domain`` the domain below which each site has a host of its own, if
    any; browsers on ``allowed_origins`` may use the tool server, too.
    ``barcode_sources`` (asked in this order) and ``photo_source`` name services as
    ``<name>=<base URL>``, separated by spaces; empty means off. ``llm_provider`` is ``demo``
    (embedded), ``off`` (in the stage ``prod`` unless another is named), or one or both of
    ``bedrock`` and ``openai`` (any server of that shape, at ``llm_base_url``; the default once its
    key or URL is given), separated by spaces, the first for models that the catalogue does not
    know; ``llm_unknown_output`` is how many tokens such a model may answer with, and so how much
    money is held for it; ``llm_model`` is the model that drafts cards; ``ai_drafts_per_day`` is
    how many of them a workspace may ask for in a UTC day; ``bedrock_profile`` is the inference
    profile that calls to Bedrock take, such as ``eu``; ``demo_word_seconds`` is how long the
    embedded model takes for each word of a chat. With an ``edge_secret``, only requests that carry
    it, which the edge adds, are answered, and their word on the visitor's address and the host is
    believed.
    ``demo_balance`` is how many kopecks a new workspace adds to its owner's balance, for
    development.
    """

    stage: str
    table_prefix: str
    object_store: str
    public_url: str
    sites_domain: str
    allowed_origins: frozenset[str]
    rate_limit_scale: float
    barcode_sources: str
    photo_source: str
    llm_provider: str
    llm_base_url: str
    llm_api_key: str = field(repr=False)
    llm_model: str
    ai_drafts_per_day: int
    demo_balance: int
    bedrock_profile: str = ""
    edge_secret: str = field(default="", repr=False)
    demo_word_seconds: float = 0.0
    llm_unknown_output: int = UNKNOWN_OUTPUT

    @property
    def llm_providers(self) -> tuple[Provider, ...]:
        """The providers that are set up; ``demo`` alone if none is, and none if they are off.

        Raises:
            ValueError: ``LLM_PROVIDER`` names what is none.
        """
        providers = _PROVIDERS.get(frozenset(self.llm_provider.split()))
        if providers is None:
            msg = (
                "LLM_PROVIDER is demo, off, bedrock, openai, or the last two separated by a space, "
                f"not {self.llm_provider!r}"
            )
            raise ValueError(msg)
        # The first one named comes first.
        return tuple(sorted(providers, key=self.llm_provider.index))

    def table_name(self, table: str) -> str:
        """Return the full name of one of the tables, such as ``workspace-dev-content``."""
        return f"{self.table_prefix}-{self.stage}-{table}"


_PROFILES = {"us": "us", "ca": "us", "sa": "us", "eu": "eu", "ap": "apac"}
"""Bedrock's inference profiles, by how the names of their regions begin."""


def _default_provider(stage: str) -> str:
    """Return the model provider where none is named.

    In production an embedded demonstration would pass for an answer: there it is named or off.
    """
    return "off" if stage == "prod" else "demo"


@cache
def settings() -> Settings:
    """Return the settings of this process; the environment is read on the first call only."""
    return read(os.environ)


def read(environment: Mapping[str, str]) -> Settings:
    """Return the settings that an environment decides.

    Raises:
        RuntimeError: it is that of a Lambda function without a stage.
        ValueError: a variable has a value that it cannot have.
    """
    env = environment.get
    stage = env("STAGE", "")
    if not stage and env("AWS_LAMBDA_FUNCTION_NAME"):
        msg = "STAGE is missing: expected the stage that this function serves, such as prod"
        raise RuntimeError(msg)
    stage = stage or "dev"
    made = Settings(
        stage=stage,
        table_prefix=env("TABLE_PREFIX", "workspace"),
        object_store=env("OBJECT_STORE", "file://.local/objects"),
        public_url=env("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/"),
        sites_domain=env("SITES_DOMAIN", "").strip().strip(".").lower(),
        allowed_origins=frozenset(env("ALLOWED_ORIGINS", "").split()),
        rate_limit_scale=float(env("RATE_LIMIT_SCALE", "1")),
        barcode_sources=env("BARCODE_SOURCES", _BARCODE_SOURCES),
        photo_source=env("PHOTO_SOURCE", "openverse=https://api.openverse.org"),
        llm_provider=env("LLM_PROVIDER")
        or ("openai" if env("LLM_API_KEY") or env("LLM_BASE_URL") else _default_provider(stage)),
        llm_base_url=env("LLM_BASE_URL") or "https://api.openai.com/v1",
        llm_api_key=env("LLM_API_KEY", "").strip(),
        llm_model=env("LLM_MODEL", "").strip(),
        ai_drafts_per_day=int(env("AI_DRAFTS_PER_DAY") or "100"),
        demo_balance=int(env("DEMO_BALANCE") or "0"),
        bedrock_profile=env("BEDROCK_PROFILE", "").strip()
        or _PROFILES.get((env("AWS_REGION") or env("AWS_DEFAULT_REGION") or "")[:2], ""),
        demo_word_seconds=float(env("DEMO_WORD_SECONDS") or "0"),
        edge_secret=env("EDGE_SECRET", "").strip(),
        llm_unknown_output=_positive("LLM_UNKNOWN_OUTPUT", env("LLM_UNKNOWN_OUTPUT"))
        or UNKNOWN_OUTPUT,
    )
    made.llm_providers  # noqa: B018  says now what is wrong with it
    return made


def _positive(name: str, text: str | None) -> int | None:
    """Return the number that a variable names, or None if it is not set.

    Raises:
        ValueError: it is not a whole number from 1 on.
    """
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        msg = (
            f"{name}: expected a whole number of 1 or more, received {text!r}. Correct or unset it."
        )
        raise ValueError(msg)
    return int(text)
