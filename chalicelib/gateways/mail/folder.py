"""Write e-mail to a folder, for development."""

from pathlib import Path
from uuid import uuid4

from chalicelib.core.settings import settings
from chalicelib.gateways.mail import MailDelayedError
from chalicelib.gateways.mail.message import RawMail

SUFFIX = ".eml"


def send(mail: RawMail) -> None:
    """Write ``<id>.eml`` in one step. An e-mail that is sent again replaces its file."""
    folder = Path(settings().mail_folder)
    unfinished = folder / f".{uuid4()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(mail.content)
        # A reader of the folder never sees a half-written e-mail.
        unfinished.replace(folder / f"{mail.id}{SUFFIX}")
    except OSError:
        raise MailDelayedError("The folder MAIL_FOLDER cannot be written.") from None
