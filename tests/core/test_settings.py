"""Settings that come from the environment, and their safe defaults."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chalicelib.core.settings import read, settings


def test_a_function_without_a_stage_refuses_to_start(
    reload_settings: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function would otherwise read the tables of another stage."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "workspace-api-prod")
    monkeypatch.delenv("STAGE")
    reload_settings()
    with pytest.raises(RuntimeError, match="STAGE: expected the name"):
        settings()


WITHOUT_STAGE = """
from chalicelib.core.operations import load_all
from chalicelib.engine import tables

load_all()
try:
    tables.ContentRow.Meta.table_name
except RuntimeError as error:
    print("at first use:", error)
import app
"""


def test_importing_reads_no_settings_and_starting_validates_them() -> None:
    environment = {**os.environ, "AWS_LAMBDA_FUNCTION_NAME": "workspace-api-prod"}
    del environment["STAGE"]
    started = subprocess.run(
        [sys.executable, "-c", WITHOUT_STAGE],
        cwd=Path(__file__).parents[2],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert started.stdout.startswith("at first use: STAGE: expected the name")
    assert started.returncode == 1
    assert "in create\n    settings()" in started.stderr
    assert started.stderr.splitlines()[-1].startswith("RuntimeError: STAGE: expected the name")


@pytest.mark.parametrize("value", ["0", "-5", "many", "1.5"])
def test_a_cap_of_unknown_models_that_grants_no_tokens_is_refused(
    value: str, reload_settings: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_UNKNOWN_OUTPUT", value)
    reload_settings()
    with pytest.raises(ValueError, match="LLM_UNKNOWN_OUTPUT: expected a whole number of 1 or"):
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
def test_production_without_a_model_does_not_use_the_demo_model(
    environment: dict[str, str],
    provider: str,
    reload_settings: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    reload_settings()
    assert settings().llm_provider == provider


LOCAL = {
    "WEBHOOKS_TO_LOOPBACK": "1",
    "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:8001",
    "OBJECT_STORE": "file:///data/objects",
}


def test_webhooks_reach_loopback_in_the_local_stack_alone() -> None:
    assert read(LOCAL).webhooks_to_loopback
    assert not read({**LOCAL, "WEBHOOKS_TO_LOOPBACK": "0"}).webhooks_to_loopback
    assert not read({}).webhooks_to_loopback


def test_webhooks_reach_loopback_in_a_function_on_an_emulator_of_aws() -> None:
    there = {"WEBHOOKS_TO_LOOPBACK": "1", "AWS_LAMBDA_FUNCTION_NAME": "api", "STAGE": "dev"}
    assert read({**there, "AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}).webhooks_to_loopback
    for elsewhere in ("", "https://vpce.example", "http://127.0.0.1.example", "http://10.0.0.1"):
        with pytest.raises(
            ValueError, match="WEBHOOKS_TO_LOOPBACK: expected no value outside make dev"
        ):
            read({**there, "AWS_ENDPOINT_URL": elsewhere})


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"AWS_LAMBDA_FUNCTION_NAME": "workspace-api-dev", "STAGE": "dev"},
        {"AWS_ENDPOINT_URL_DYNAMODB": ""},
        {"OBJECT_STORE": "s3://bucket"},
        {"OBJECT_STORE": ""},
    ],
)
def test_a_process_outside_the_local_stack_does_not_start_with_webhooks_to_loopback(
    elsewhere: dict[str, str],
) -> None:
    with pytest.raises(ValueError, match="expected no value outside make dev"):
        read({**LOCAL, **elsewhere})


def test_another_value_of_webhooks_to_loopback_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 1 or 0, received 'yes'"):
        read({**LOCAL, "WEBHOOKS_TO_LOOPBACK": "yes"})


def test_an_empty_variable_is_as_good_as_none() -> None:
    names = ("STAGE", "TABLE_PREFIX", "OBJECT_STORE", "PUBLIC_URL", "RATE_LIMIT_SCALE")
    empty = dict.fromkeys((*names, "BARCODE_SOURCES", "PHOTO_SOURCE", "LLM_MODEL"), "")
    assert read(empty) == read({})


def test_look_ups_and_photos_are_switched_off_by_a_word() -> None:
    """A deployment leaves out empty variables."""
    off = read({"BARCODE_SOURCES": "off", "PHOTO_SOURCE": "off"})
    assert (off.barcode_sources, off.photo_source) == ("", "")
