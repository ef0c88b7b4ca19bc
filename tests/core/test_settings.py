"""What the environment decides, and what it must not leave open."""

from collections.abc import Callable

import pytest

from chalicelib.core.settings import settings


def test_a_function_without_a_stage_refuses_to_start(
    read_anew: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than read the tables of another stage."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "workspace-api-prod")
    monkeypatch.delenv("STAGE")
    read_anew()
    with pytest.raises(RuntimeError, match="STAGE is missing"):
        settings()


@pytest.mark.parametrize(
    ("environment", "provider"),
    [
        ({"STAGE": "prod"}, "off"),
        ({"STAGE": "prod", "LLM_PROVIDER": "demo"}, "demo"),
        ({"STAGE": "prod", "LLM_API_KEY": "k"}, "openai"),
        ({"STAGE": "dev"}, "demo"),
    ],
)
def test_production_without_a_model_has_none_rather_than_the_demonstration(
    environment: dict[str, str],
    provider: str,
    read_anew: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    read_anew()
    assert settings().llm_provider == provider
