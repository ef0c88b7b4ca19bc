"""The settings of mail, and mail in a folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import settings
from chalicelib.gateways import mail
from chalicelib.gateways.mail import MailDelayedError
from tests.gateways.mail.conftest import Configure, example_mail


def test_mail_is_off_until_it_is_set_up() -> None:
    assert not mail.is_on()
    with pytest.raises(NotConfiguredError, match="MAIL"):
        mail.send(example_mail())


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"MAIL": "sendmail"}, "MAIL: expected one of ses, smtp, file, off, received 'sendmail'"),
        ({"MAIL": "ses"}, "MAIL_FROM"),
        ({"MAIL": "ses", "MAIL_FROM": "Ada <ada@example.com>"}, "MAIL_FROM"),
        ({"MAIL": "ses", "MAIL_FROM": "ada@example.com\r\nBcc: b@example.com"}, "MAIL_FROM"),
        ({"MAIL": "smtp", "MAIL_FROM": "ada@example.com"}, "MAIL_SMTP"),
        *(
            ({"MAIL": "smtp", "MAIL_FROM": "ada@example.com", "MAIL_SMTP": url}, "MAIL_SMTP")
            for url in (
                "http://secret@host",
                "smtp://",
                "smtp://a:secret@host:99999",
                "smtp://a/b",
                "smtp://a:%D1%8F@b",
            )
        ),
    ],
)
def test_a_bad_setting_is_named_without_its_password(
    variables: dict[str, str], message: str, reload_settings: Callable[[], None]
) -> None:
    os.environ |= variables
    reload_settings()
    with pytest.raises(ValueError, match=message) as caught:
        settings()
    assert "secret" not in str(caught.value)


def test_message_sent_twice_is_one_file(configure: Configure, tmp_path: Path) -> None:
    configure("file", folder=str(tmp_path / "mail"))
    assert mail.is_on()
    mail.send(example_mail())
    mail.send(example_mail(subject="Moved"))
    (file,) = (tmp_path / "mail").iterdir()
    assert file.name == "01J-1.eml"
    assert b"\r\nSubject: Moved\r\n" in file.read_bytes()


def test_read_only_folder_delays_the_message(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    configure("file", folder=str(tmp_path / "file"))
    with pytest.raises(MailDelayedError, match="MAIL_FOLDER"):
        mail.send(example_mail())
