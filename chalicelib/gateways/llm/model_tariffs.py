"""The models that bots can use, with the prices of their tokens."""

VERSION = "2026-11-22"
# Public name, provider's id, input price, output price, context and longest answer in tokens.
Row = tuple[str, str, int, int, int, int]
# Bedrock serves these only through an inference profile, such as ``eu``.
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
# Bedrock serves these under their own id, in some regions.
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
# Models of servers with OpenAI's chat completions API, under the names of their vendors.
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
WITHOUT_ANY_TOOLS = frozenset({"deepseek-r1"})  # names of models that cannot call tools at all
# Names of models that cannot call tools in a streamed answer. All others of the catalogue can. See
# "Supported models and model features" of the Converse API in the documentation of Amazon Bedrock.
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
# The embedded demo model has a price for testing billing: 100 input tokens cost a kopeck.
DEMO: tuple[Row, ...] = (("demo", "demo", 10_000, 30_000, 32_000, 1_024),)
