"""Send e-mail through the API v2 of Amazon SES."""

import logging
from functools import cache
from typing import Any

from chalicelib.core.settings import settings
from chalicelib.gateways.mail import MailDelayedError, MailRefusedError
from chalicelib.gateways.mail.message import RawMail

MAIL_TAG = "mail"  # the mail's id, which the events of SES repeat; SES replaces the Message-ID
WORKSPACE_TAG = "workspace"  # the workspace whose visitor gets the mail
CAUSE_TAG = "cause"  # who has caused a mail to a visitor: ``stranger`` or ``business``
_REFUSED = {"BadRequestException", "MessageRejected"}
_SLOW_DOWN = {"TooManyRequestsException", "LimitExceededException", "ThrottlingException"}
_UNAVAILABLE = 500  # Statuses from this one on are failures of SES, and not of this service.
SLOW_DOWN_SECONDS = 60.0  # after a throttled request; SES names no wait

log = logging.getLogger(__name__)


def send(mail: RawMail) -> None:
    """Send an e-mail once, without retries of the SDK, which could send it twice."""
    from botocore.exceptions import BotoCoreError, ClientError

    if not mail.recipient.isascii():
        raise MailRefusedError("SES accepts only addresses in ASCII.")
    options: dict[str, Any] = {}
    tags = [{"Name": MAIL_TAG, "Value": mail.id}]
    if mail.workspace_id is not None:
        tags.append({"Name": WORKSPACE_TAG, "Value": mail.workspace_id})
    if mail.cause is not None:
        tags.append({"Name": CAUSE_TAG, "Value": mail.cause})
    if settings().mail_ses_configuration_set:
        options["ConfigurationSetName"] = settings().mail_ses_configuration_set
    try:
        _client().send_email(
            FromEmailAddress=mail.sender,
            Destination={"ToAddresses": [mail.recipient]},
            Content={"Raw": {"Data": mail.content}},
            EmailTags=tags,
            **options,
        )
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code"))
        if code in _REFUSED:
            log.warning("SES refused a mail", extra={"mail": mail.id, "cause": code})
            msg = f"SES refused the mail: {code}."
            raise MailRefusedError(msg) from None
        if code in _SLOW_DOWN:
            raise MailDelayedError("SES is throttling.", SLOW_DOWN_SECONDS) from None
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        # A refusal of this service, such as a missing permission, lasts until the operator acts.
        # Its level raises the alarm.
        level = logging.INFO if status >= _UNAVAILABLE else logging.ERROR
        log.log(level, "SES sends no mail for this service", extra={"cause": code})
        msg = f"SES answered with {code}."
        raise MailDelayedError(msg) from None
    except BotoCoreError as error:
        msg = f"SES cannot be reached, or its answer was lost: {type(error).__name__}."
        raise MailDelayedError(msg) from None


@cache
def _client() -> Any:  # noqa: ANN401  boto3 generates its clients at run time
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=3, read_timeout=8, retries={"total_max_attempts": 1})
    return boto3.client("sesv2", config=config)
