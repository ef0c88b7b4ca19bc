"""The master key from a setting, a local file or a fake Secrets Manager."""

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chalicelib.core import clock
from chalicelib.core.errors import NotConfiguredError, UnavailableError
from chalicelib.core.settings import settings
from chalicelib.gateways.master_key import master_key
from chalicelib.gateways.secrets_manager import KEPT
from infra.deploy.policies import FUNCTIONS
from tests.fakes import openai_api
from tests.fakes.openai_api import Answering, OpenAiApi
from tests.support import aws_calls
from tests.support.keyed import keyed

pytestmark = pytest.mark.usefixtures("pauses")

FIRST, SECOND = "a" * 48, "b" * 48

Configure = Callable[..., None]


def value(key: str) -> Answering:
    return openai_api.plain(json.dumps({"SecretString": key}).encode())


def refusal(code: str) -> Answering:
    return openai_api.refusing(400, json.dumps({"__type": code, "message": "No."}).encode())


@pytest.fixture
def configure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Configure:
    """Set variables of a process. By default its objects are in a folder."""

    def restart(**variables: str) -> None:
        for name, text in ({"OBJECT_STORE": f"file://{tmp_path}/objects"} | variables).items():
            monkeypatch.setenv(name, text)
        reload_settings()

    return restart


@pytest.fixture
def secrets(configure: Configure) -> Iterator[OpenAiApi]:
    """Secrets Manager, for a deployed function that knows the ARN of the secret."""
    with openai_api.serving() as server:
        configure(
            AWS_ENDPOINT_URL_SECRETS_MANAGER=server.url.removesuffix("/v1"),
            MASTER_KEY_SECRET=aws_calls.MASTER_KEY,
            OBJECT_STORE="s3://bucket",
        )
        yield server


class TestLocalKey:
    def test_a_random_key_is_created_once_and_survives_a_restart(
        self, configure: Configure, tmp_path: Path
    ) -> None:
        configure()
        key = master_key()
        configure()
        assert master_key() == key
        assert len(key) == 32
        (file,) = (tmp_path / "objects").iterdir()
        assert file.stat().st_mode & 0o777 == 0o600

    def test_threads_that_create_the_key_at_the_same_time_get_the_same_one(
        self, configure: Configure
    ) -> None:
        configure()
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(lambda _: master_key(), range(8)))) == 1

    def test_a_folder_that_cannot_be_written_makes_the_key_unavailable(
        self, configure: Configure, tmp_path: Path
    ) -> None:
        (tmp_path / "objects").write_text("a file")
        configure()
        with pytest.raises(UnavailableError):
            master_key()

    def test_the_setting_takes_precedence_and_is_not_shown(self, configure: Configure) -> None:
        configure(MASTER_KEY=FIRST, MASTER_KEY_SECRET=aws_calls.MASTER_KEY)
        assert master_key() == FIRST.encode()
        assert FIRST not in repr(settings())

    def test_a_short_setting_is_refused_without_repeating_it(self, configure: Configure) -> None:
        configure(MASTER_KEY="x" * 31)
        with pytest.raises(ValueError, match="at least 32 random characters, received 31") as error:
            settings()
        assert "xx" not in str(error.value)


class TestStoredKey:
    @pytest.mark.parametrize(
        "function", [name for name, access in FUNCTIONS.items() if access.master_key]
    )
    def test_a_function_with_the_right_uses_the_key(
        self, function: str, configure: Configure
    ) -> None:
        configure(MASTER_KEY=FIRST)
        with aws_calls.entered(function):
            assert master_key() == FIRST.encode()

    def test_the_key_is_read_on_first_use_and_kept(self, secrets: OpenAiApi) -> None:
        secrets.answers = [value(FIRST)]
        assert secrets.asked == []
        assert master_key() == master_key() == FIRST.encode()
        (request,) = secrets.asked
        assert request.headers["x-amz-target"] == "secretsmanager.GetSecretValue"
        assert request.body == {"SecretId": aws_calls.MASTER_KEY}

    def test_a_replaced_key_is_used_after_five_minutes(self, secrets: OpenAiApi) -> None:
        secrets.answers = [value(FIRST), value(SECOND)]
        begun = clock.now()
        with clock.using(lambda: begun):
            assert master_key() == FIRST.encode()
        with clock.using(lambda: begun + KEPT):
            assert master_key() == SECOND.encode()

    @pytest.mark.parametrize(
        "answer",
        [refusal("AccessDeniedException"), openai_api.refusing(503, b"{}")],
        ids=["refused", "down"],
    )
    def test_unreadable_key_is_unavailable(
        self, answer: Answering, secrets: OpenAiApi, caplog: pytest.LogCaptureFixture
    ) -> None:
        secrets.answers = [answer] * 2
        with caplog.at_level(logging.ERROR, "chalicelib"), pytest.raises(UnavailableError):
            master_key()
        assert "the master key cannot be read" in caplog.text
        secrets.answers = [value(FIRST)]
        assert master_key() == FIRST.encode()

    @pytest.mark.parametrize(
        "answer", [refusal("ResourceNotFoundException"), value(" ")], ids=["no value", "empty"]
    )
    def test_secret_without_a_value_is_an_error(
        self, answer: Answering, secrets: OpenAiApi, caplog: pytest.LogCaptureFixture
    ) -> None:
        secrets.answers = [answer]
        with pytest.raises(NotConfiguredError, check=keyed("master_key")):
            master_key()
        assert "the master key is missing" in caplog.text

    def test_a_service_on_aws_without_a_secret_has_no_key(
        self, configure: Configure, caplog: pytest.LogCaptureFixture
    ) -> None:
        configure(OBJECT_STORE="s3://bucket")
        with pytest.raises(NotConfiguredError, check=keyed("master_key")):
            master_key()
        assert "MASTER_KEY_SECRET: expected the ARN" in str(caplog.records[-1].__dict__["cause"])
