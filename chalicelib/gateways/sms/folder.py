"""Write SMS to a folder, for development."""

import json
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from chalicelib.core import clock
from chalicelib.core.settings import settings
from chalicelib.gateways.sms import Accepted, Delivery, SmsBusyError, hash_of
from chalicelib.lib import sms_segments

SUFFIX = ".json"


class Folder:
    """A provider that delivers each SMS to a file."""

    def send(self, number: str, text: str, message_id: str) -> Accepted:
        folder = Path(settings().sms_folder)
        segments = sms_segments.count(text)
        content = {
            "to": number,
            "from": settings().sms_sender or settings().product_name,
            "text": text,
            "segments": segments,
            "at": clock.iso(clock.now()),
        }
        unfinished = folder / f".{uuid4()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
            # A reader of the folder never sees a half-written file.
            unfinished.replace(folder / f"{message_id}{SUFFIX}")
        except OSError:
            raise SmsBusyError("The folder SMS_FOLDER cannot be written.") from None
        return Accepted(message_id, segments)

    def find_lost(self, number: str, text_hash: str, since: datetime) -> Accepted | None:  # noqa: ARG002  the provider's signature
        for file in Path(settings().sms_folder).glob(f"*{SUFFIX}"):
            content = json.loads(file.read_text(encoding="utf-8"))
            if (content["to"], hash_of(content["text"])) == (number, text_hash):
                return Accepted(file.stem, content["segments"])
        return None

    def delivery(self, provider_id: str) -> Delivery:  # noqa: ARG002  as above
        return "delivered"
