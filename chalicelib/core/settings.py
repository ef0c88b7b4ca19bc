"""Read the settings from environment variables, once per process; names every variable in use."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypedDict, cast, get_args
from urllib.parse import unquote, urlsplit

from chalicelib import SERVICE
from chalicelib.core.plans import PLANS, Plan

Provider = Literal["bedrock", "openai", "demo"]
MIN_MASTER_KEY = 32  # characters
MailProvider = Literal["ses", "smtp", "file", "off"]
MAIL_PROVIDERS = get_args(MailProvider)
SmsProvider = Literal["smsru", "twilio", "file", "off"]
SMS_PROVIDERS = get_args(SmsProvider)
UNKNOWN_CONTEXT = 32_000
# Output tokens for a model outside the catalogue, unless the operator sets another number.
UNKNOWN_OUTPUT = 2_048

# The providers by the names in ``LLM_PROVIDER``.
_PROVIDERS: Mapping[frozenset[str], tuple[Provider, ...]] = {
    frozenset({"off"}): (),
    frozenset({"demo"}): ("demo",),
    frozenset({"bedrock"}): ("bedrock",),
    frozenset({"openai"}): ("openai",),
    frozenset({"bedrock", "openai"}): ("bedrock", "openai"),
}

_BARCODE_SOURCES = (
    "openfoodfacts=https://world.openfoodfacts.org"
    " openbeautyfacts=https://world.openbeautyfacts.org"
    " openproductsfacts=https://world.openproductsfacts.org"
)


@dataclass(frozen=True, slots=True)
class Settings:
    stage: str  # a part of the name of every table
    table_prefix: str  # before the stage
    object_store: str  # ``s3://<bucket>`` on AWS, ``file://<folder>`` elsewhere
    product_name: str  # on pages and in e-mails
    public_url: str  # the base URL that visitors see, without a trailing slash
    # The domain whose subdomains are the hosts of sites. Empty: sites are below paths instead.
    sites_domain: str
    # The gateway to customers' own domains: ``local``, ``cloudfront:<distribution>/<connection
    # group>/<routing endpoint>``, or empty without a gateway (``gateways.site_hosts``).
    site_hosts: str
    # Browser origins that may use the tool server, in addition to its own.
    allowed_origins: frozenset[str]
    # The tool server refuses browser origins that are neither its own nor in ``allowed_origins``.
    deny_other_origins: bool
    # The local server accepts them, in addition to the hosts of this machine.
    allowed_hosts: frozenset[str]
    rate_limit_scale: float  # multiplies every rate limit, for load tests
    # Services as ``<name>=<base URL>``, separated by spaces, requested in this order. Empty:
    # look-ups are off.
    barcode_sources: str
    photo_source: str  # ``<name>=<base URL>`` of stock photos; empty: the search is off
    # The value of ``LLM_PROVIDER`` or its default. ``llm_providers`` returns it parsed.
    llm_provider: str
    llm_base_url: str  # of the chat completions API for the provider ``openai``
    llm_api_key: str = field(repr=False)  # for that server, for local use
    llm_model: str  # drafts cards
    ai_drafts_per_day: int  # per workspace in a UTC day
    demo_balance: int  # Kopecks that a new workspace adds to its owner's balance, for development.
    # The ARN of the secret with that key, read at run time. The key takes precedence.
    llm_api_key_secret: str = ""
    # Secrets of webhooks are computed from it; for local use.
    master_key: str = field(default="", repr=False)
    # The ARN of the secret with that key, read at run time. The key takes precedence.
    master_key_secret: str = ""
    # The token of the bot that writes to members, for local use.
    telegram_bot_token: str = field(default="", repr=False)
    # The ARN of the secret with that token, read at run time. The token takes precedence.
    telegram_bot_token_secret: str = ""
    telegram_url: str = "https://api.telegram.org"  # base URL of Telegram's Bot API
    telegram_links: str = "https://t.me"  # base URL of links to the Telegram bot
    # The token of the bot at the messenger MAX, for local use.
    max_token: str = field(default="", repr=False)
    # The ARN of the secret with that token, read at run time. The token takes precedence.
    max_token_secret: str = ""
    max_url: str = "https://platform-api2.max.ru"  # base URL of MAX's Bot API
    max_links: str = "https://max.ru"  # base URL of links to the bot at MAX
    # An authority that signs the certificates of ``max_url``, beside the usual ones: the path of a
    # PEM file, or its text. No other host is trusted by it.
    max_ca: str = ""
    yookassa_url: str = "https://api.yookassa.ru/v3"
    stripe_url: str = "https://api.stripe.com/v1"
    # Only live keys may take payments to the platform. Always so on the stage prod.
    payments_live: bool = False
    bedrock_profile: str = ""  # the inference profile of calls to Bedrock, such as ``eu``
    # The edge adds it to each request. If it is set, requests without it are refused, and the
    # edge's headers state the visitor's address and the host.
    edge_secret: str = field(default="", repr=False)
    # The former secret, accepted as well while the edge changes to the new one.
    edge_secret_previous: str = field(default="", repr=False)
    # The queue of SQS whose messages wake the runner of event jobs. Empty: a process of its own
    # wakes it, or it waits for its schedule.
    events_queue_url: str = ""
    # The base URL of the chat, without a trailing slash, if it differs from ``public_url``. Without
    # an edge, another function than the API's serves the chat.
    chat_url: str = ""
    demo_word_seconds: float = 0.0  # for each word of a chat with the embedded model
    # Webhooks may be sent by http to this machine. Only the local stack allows it.
    webhooks_to_loopback: bool = False
    # The embedded model ends a reply as a message such as ``demo:length`` requests. Only outside
    # AWS, to try how a client shows each ending.
    demo_endings: bool = False
    # Tokens that a model outside the catalogue is assumed to accept, including its output.
    llm_unknown_context: int = UNKNOWN_CONTEXT
    # Maximum output tokens of a model outside the catalogue. The money reserved depends on it.
    llm_unknown_output: int = UNKNOWN_OUTPUT
    # Anybody may make an account and a workspace (``identity.operations.sign_ups``).
    is_sign_up_open: bool = False
    # ISO 3166 codes of the countries of workspaces that come by sign-up. Empty: all, only in the
    # local stack.
    sign_up_countries: tuple[str, ...] = ()
    sign_up_plan: Plan = "free"  # of workspaces that come by sign-up
    # Where people reach the operator, ``https:`` or ``mailto:``. Empty: pages have no such link.
    support_url: str = ""
    mail: MailProvider = "off"
    # The sender of all e-mail. Its domain is also the domain of the Message-ID.
    mail_from: str = ""
    # ``smtp://`` or ``smtps://``, with user and password. Messages never contain it.
    mail_smtp: str = field(default="", repr=False)
    mail_folder: str = ""  # for the provider ``file``
    mail_ses_configuration_set: str = ""  # reports bounces and complaints; empty: none
    sms: SmsProvider = "off"
    sms_sender: str = ""  # a name, a number, or the SID of a messaging service at Twilio
    sms_account: str = ""  # the SID of the account at Twilio
    sms_key: str = field(default="", repr=False)  # at the provider, for local use
    # The ARN of the secret with that key, read at run time. The key takes precedence.
    sms_key_secret: str = ""
    sms_url: str = ""  # base URL of the provider's API
    sms_test: bool = False  # The provider only checks the SMS, if it has a mode for that.
    sms_folder: str = ""  # for the provider ``file``

    @property
    def llm_providers(self) -> tuple[Provider, ...]:
        """The providers, none if models are off. The first serves models outside the catalogue."""
        return _providers(self.llm_provider)

    @property
    def tells_clients(self) -> bool:
        """Whether clients may be told of bookings: by mail or, if there is a bot, by a messenger.

        A secret may still be without a token.
        """
        bots = (self.telegram_bot_token, self.telegram_bot_token_secret)
        return self.mail != "off" or any((*bots, self.max_token, self.max_token_secret))

    @property
    def edge_secrets(self) -> tuple[str, ...]:
        """The accepted secrets of the edge, newest first, or nothing without an edge."""
        # A former secret does not put the service behind an edge that it no longer has.
        if not self.edge_secret:
            return ()
        return tuple(filter(None, (self.edge_secret, self.edge_secret_previous)))

    @property
    def base_path(self) -> str:
        """The path of ``public_url``, such as API Gateway's stage, or an empty string."""
        return urlsplit(self.public_url).path

    def table_name(self, table: str) -> str:
        return f"{self.table_prefix}-{self.stage}-{table}"


# Bedrock's inference profiles, by the first two letters of the region's name.
_PROFILES = {"us": "us", "ca": "us", "sa": "us", "eu": "eu", "ap": "apac"}


def _default_provider(stage: str) -> str:
    # In production, replies of the embedded demo model could be mistaken for real ones. There, a
    # provider must be named; otherwise models are off.
    return "off" if stage == "prod" else "demo"


@cache
def settings() -> Settings:
    """Return the settings of this process, which the first call reads from the environment.

    >>> settings() is settings()
    True
    """
    return read(os.environ)


def read(environment: Mapping[str, str]) -> Settings:
    """Return an environment's settings; raise ValueError or, without a stage, RuntimeError.

    An empty variable is as good as none.
    """

    def env(name: str, default: str = "") -> str:
        return environment.get(name, "").strip() or default

    stage = env("STAGE")
    if not stage and env("AWS_LAMBDA_FUNCTION_NAME"):
        msg = (
            "STAGE: expected the name of the stage that this function serves, such as prod, "
            "received none"
        )
        raise RuntimeError(msg)
    stage = stage or "dev"
    provider = env("LLM_PROVIDER") or (
        "openai" if env("LLM_API_KEY") or env("LLM_BASE_URL") else _default_provider(stage)
    )
    _providers(provider)  # A wrong name fails here, not at the first request.
    return Settings(
        stage=stage,
        table_prefix=env("TABLE_PREFIX", "workspace"),
        object_store=env("OBJECT_STORE", "file://.local/objects"),
        product_name=env("PRODUCT_NAME", SERVICE),
        public_url=env("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/"),
        sites_domain=env("SITES_DOMAIN").strip(".").lower(),
        site_hosts=_site_hosts(env("SITE_HOSTS")),
        allowed_origins=frozenset(env("ALLOWED_ORIGINS").split()),
        deny_other_origins=_flag("DENY_OTHER_ORIGINS", env("DENY_OTHER_ORIGINS")),
        allowed_hosts=frozenset(env("ALLOWED_HOSTS").lower().split()),
        rate_limit_scale=float(env("RATE_LIMIT_SCALE", "1")),
        barcode_sources=_unless_off(env("BARCODE_SOURCES", _BARCODE_SOURCES)),
        photo_source=_unless_off(env("PHOTO_SOURCE", "openverse=https://api.openverse.org")),
        llm_provider=provider,
        llm_base_url=env("LLM_BASE_URL", "https://api.openai.com/v1"),
        llm_api_key=env("LLM_API_KEY"),
        llm_api_key_secret=env("LLM_API_KEY_SECRET"),
        master_key=_master_key(env("MASTER_KEY")),
        master_key_secret=env("MASTER_KEY_SECRET"),
        telegram_bot_token=env("TELEGRAM_BOT_TOKEN"),
        telegram_bot_token_secret=env("TELEGRAM_BOT_TOKEN_SECRET"),
        telegram_url=env("TELEGRAM_URL", "https://api.telegram.org").rstrip("/"),
        telegram_links=env("TELEGRAM_LINKS", "https://t.me").rstrip("/"),
        max_token=env("MAX_TOKEN"),
        max_token_secret=env("MAX_TOKEN_SECRET"),
        max_url=env("MAX_URL", "https://platform-api2.max.ru").rstrip("/"),
        max_links=env("MAX_LINKS", "https://max.ru").rstrip("/"),
        max_ca=env("MAX_CA"),
        yookassa_url=env("YOOKASSA_URL", "https://api.yookassa.ru/v3").rstrip("/"),
        stripe_url=env("STRIPE_URL", "https://api.stripe.com/v1").rstrip("/"),
        payments_live=_flag("PAYMENTS_LIVE", env("PAYMENTS_LIVE")) or stage == "prod",
        llm_model=env("LLM_MODEL"),
        ai_drafts_per_day=int(env("AI_DRAFTS_PER_DAY", "100")),
        demo_balance=int(env("DEMO_BALANCE", "0")),
        bedrock_profile=env("BEDROCK_PROFILE")
        or _PROFILES.get((env("AWS_REGION") or env("AWS_DEFAULT_REGION"))[:2], ""),
        demo_word_seconds=float(env("DEMO_WORD_SECONDS", "0")),
        edge_secret=env("EDGE_SECRET"),
        edge_secret_previous=env("EDGE_SECRET_PREVIOUS"),
        events_queue_url=env("EVENTS_QUEUE_URL"),
        chat_url=env("CHAT_URL").rstrip("/"),
        webhooks_to_loopback=_webhooks_to_loopback(env),
        demo_endings=not env("AWS_LAMBDA_FUNCTION_NAME"),
        llm_unknown_context=_positive("LLM_UNKNOWN_CONTEXT", env("LLM_UNKNOWN_CONTEXT"))
        or UNKNOWN_CONTEXT,
        llm_unknown_output=_positive("LLM_UNKNOWN_OUTPUT", env("LLM_UNKNOWN_OUTPUT"))
        or UNKNOWN_OUTPUT,
        **_sign_up(env),
        **_mail(env),
        **_sms(env),
    )


def _providers(text: str) -> tuple[Provider, ...]:
    providers = _PROVIDERS.get(frozenset(text.split()))
    if providers is None:
        msg = (
            "LLM_PROVIDER: expected demo, off, bedrock, openai, or the last two separated by a "
            f"space, received {text!r}"
        )
        raise ValueError(msg)
    return tuple(sorted(providers, key=text.index))


def _unless_off(text: str) -> str:
    return "" if text == "off" else text


def _site_hosts(text: str) -> str:
    if text and not re.fullmatch(r"local|cloudfront:[\w-]+/[\w-]+/[\w.-]+", text, re.ASCII):
        msg = (
            "SITE_HOSTS: expected local or cloudfront:<distribution>/<connection group>/<routing "
            f"endpoint>, received {text!r}. Correct or unset it."
        )
        raise ValueError(msg)
    return text


def _master_key(text: str) -> str:
    # The error must not contain the received value.
    if text and len(text) < MIN_MASTER_KEY:
        msg = (
            f"MASTER_KEY: expected at least {MIN_MASTER_KEY} random characters, received "
            f"{len(text)}. Correct or unset it."
        )
        raise ValueError(msg)
    return text


def _webhooks_to_loopback(env: Callable[..., str]) -> bool:
    is_on = _flag("WEBHOOKS_TO_LOOPBACK", env("WEBHOOKS_TO_LOOPBACK"))
    emulated = urlsplit(env("AWS_ENDPOINT_URL")).hostname in {"127.0.0.1", "localhost"}
    # A process of the local stack, which has a database of its own and a folder of objects, or a
    # function whose AWS is an emulator on this machine.
    local = emulated or (
        not env("AWS_LAMBDA_FUNCTION_NAME")
        and env("AWS_ENDPOINT_URL_DYNAMODB")
        and env("OBJECT_STORE").startswith("file://")
    )
    if is_on and not local:
        msg = (
            "WEBHOOKS_TO_LOOPBACK: expected no value outside make dev and the AWS emulator, "
            "received 1. With it, users could send requests to the server itself. Unset it."
        )
        raise ValueError(msg)
    return is_on


def _flag(name: str, text: str) -> bool:
    if text not in {"", "0", "1"}:
        msg = f"{name}: expected 1 or 0, received {text!r}. Correct or unset it."
        raise ValueError(msg)
    return text == "1"


class _SignUp(TypedDict):
    is_sign_up_open: bool
    sign_up_countries: tuple[str, ...]
    sign_up_plan: Plan
    support_url: str


def _sign_up(env: Callable[..., str]) -> _SignUp:
    state, countries, plan, support = (
        env(name) for name in ("SIGN_UP", "SIGN_UP_COUNTRIES", "SIGN_UP_PLAN", "SUPPORT_URL")
    )
    # Objects in a folder are those of a local stack.
    is_deployed = env("OBJECT_STORE").startswith("s3://")
    state = state or ("closed" if is_deployed else "open")
    if state not in {"closed", "open"}:
        msg = f"SIGN_UP: expected open or closed, received {state!r}. Correct or unset it."
        raise ValueError(msg)
    wrong = [code for code in countries.split() if not re.fullmatch("[A-Z]{2}", code, re.ASCII)]
    if wrong:
        msg = (
            "SIGN_UP_COUNTRIES: expected ISO 3166 codes such as GB, separated by spaces, received "
            f"{wrong[0]!r}. Correct or unset it."
        )
        raise ValueError(msg)
    if plan and plan not in PLANS:
        msg = f"SIGN_UP_PLAN: expected one of {', '.join(PLANS)}, received {plan!r}."
        raise ValueError(msg)
    if support and not re.fullmatch(r"(https://|mailto:)[!-~]+", support, re.ASCII):
        msg = f"SUPPORT_URL: expected a URL with https: or mailto:, received {support!r}."
        raise ValueError(msg)
    for name, value in (("SIGN_UP_COUNTRIES", countries), ("SUPPORT_URL", support)):
        if state == "open" and is_deployed and not value:
            msg = f"{name}: expected a value, because SIGN_UP=open, received none. Set it."
            raise ValueError(msg)
    return _SignUp(
        is_sign_up_open=state == "open",
        sign_up_countries=tuple(dict.fromkeys(countries.split())),
        sign_up_plan=plan or "free",
        support_url=support,
    )


class _Mail(TypedDict):
    mail: MailProvider
    mail_from: str
    mail_smtp: str
    mail_folder: str
    mail_ses_configuration_set: str


def _mail(env: Callable[..., str]) -> _Mail:
    provider, sender, smtp, folder, configuration_set = (
        env(name)
        for name in ("MAIL", "MAIL_FROM", "MAIL_SMTP", "MAIL_FOLDER", "MAIL_SES_CONFIGURATION_SET")
    )
    provider = provider or "off"
    if provider not in MAIL_PROVIDERS:
        msg = f"MAIL: expected one of {', '.join(MAIL_PROVIDERS)}, received {provider!r}."
        raise ValueError(msg)
    if provider == "file":
        sender, folder = sender or "noreply@example.com", folder or ".local/mail"
    if provider != "off" and not re.fullmatch(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", sender, re.ASCII):
        msg = (
            "MAIL_FROM: expected an ASCII address such as mail@example.com, received "
            f"{sender!r}. MAIL={provider} requires MAIL_FROM."
        )
        raise ValueError(msg)
    if provider == "smtp" and not _is_smtp_url(smtp):
        raise ValueError(  # without the value, which may have a password
            "MAIL_SMTP: expected smtp://host:port or smtps://user:password@host:port, in ASCII, "
            "with percent-encoded special characters in the password. MAIL=smtp requires "
            "MAIL_SMTP."
        )
    return _Mail(
        mail=cast("MailProvider", provider),
        mail_from=sender,
        mail_smtp=smtp,
        mail_folder=folder,
        mail_ses_configuration_set=configuration_set,
    )


class _Sms(TypedDict):
    sms: SmsProvider
    sms_sender: str
    sms_account: str
    sms_key: str
    sms_key_secret: str
    sms_url: str
    sms_test: bool
    sms_folder: str


_SMS_URLS = {"smsru": "https://sms.ru", "twilio": "https://api.twilio.com"}
# A name of up to 11 characters with a letter, a number, or the SID of a messaging service.
_SMS_SENDER = re.compile(
    r"(?=.*[A-Za-z])[A-Za-z0-9 ._&-]{1,11}|\+?[0-9]{3,15}|MG[0-9a-f]{32}", re.ASCII
)


def _sms(env: Callable[..., str]) -> _Sms:
    provider = env("SMS") or "off"
    if provider not in SMS_PROVIDERS:
        msg = f"SMS: expected one of {', '.join(SMS_PROVIDERS)}, received {provider!r}."
        raise ValueError(msg)
    sender, account, key, secret = (
        env(name) for name in ("SMS_SENDER", "SMS_ACCOUNT", "SMS_KEY", "SMS_KEY_SECRET")
    )
    if provider in _SMS_URLS and not _SMS_SENDER.fullmatch(sender):
        msg = (
            "SMS_SENDER: expected the name or number that the provider has admitted, up to 11 Latin"
            f" letters and digits, received {sender!r}. SMS={provider} requires SMS_SENDER."
        )
        raise ValueError(msg)
    if provider in _SMS_URLS and not (key or secret):
        msg = (
            f"SMS_KEY: expected the key of the provider, received none. SMS={provider} requires it."
        )
        raise ValueError(msg)
    if provider == "twilio" and not re.fullmatch("AC[0-9a-f]{32}", account, re.ASCII):
        msg = f"SMS_ACCOUNT: expected the SID of an account at Twilio, received {account!r}."
        raise ValueError(msg)
    return _Sms(
        sms=cast("SmsProvider", provider),
        sms_sender=sender,
        sms_account=account,
        sms_key=key,
        sms_key_secret=secret,
        sms_url=env("SMS_URL", _SMS_URLS.get(provider, "")).rstrip("/"),
        sms_test=_flag("SMS_TEST", env("SMS_TEST")),
        sms_folder=env("SMS_FOLDER", ".local/sms"),
    )


def _is_smtp_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        # Reading the port validates it: ``urlsplit`` accepts any characters there.
        port = parts.port
    except ValueError:
        return False
    plain = unquote(text).isascii() and not (parts.path.strip("/") or parts.query or parts.fragment)
    return parts.scheme in {"smtp", "smtps"} and bool(parts.hostname) and port != 0 and plain


def _positive(name: str, text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        msg = (
            f"{name}: expected a whole number of 1 or more, received {text!r}. Correct or unset it."
        )
        raise ValueError(msg)
    return int(text)
