"""The doctor's checks of SES and of the bots of a stage at messengers."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from botocore.exceptions import ClientError

from chalicelib.gateways import max_messenger, telegram
from chalicelib.transports.routes import MAX_PATH, TELEGRAM_PATH
from infra.deploy import published_settings, stage_config, stage_facts
from infra.deploy.aws.account import Account
from infra.deploy.aws.cloudformation import Stack
from infra.deploy.aws.errors import code
from infra.deploy.progress import Progress

Result = tuple[bool | None, str]
ABSENT = "NotFoundException"


def checks(account: Account, stage: str, root: Path) -> Iterator[tuple[str, Callable[[], Result]]]:
    """Yield the named checks of a stage, with the checks of SES only for ``MAIL=ses``."""
    variables = stage_config.environment(
        stage_config.load(root), stage, stage_config.StageFacts(bucket="none")
    )
    if variables.get("MAIL") == "ses":
        domain = variables["MAIL_FROM"].rpartition("@")[2]
        yield "mail account", partial(_ses_account, account)
        yield "mail domain", partial(_identity, account, domain)
        name = variables["MAIL_SES_CONFIGURATION_SET"]
        yield "mail reports", partial(_configuration_set, account, name)
    yield "telegram", partial(_webhook, account, stage)
    yield "max", partial(_webhook_of_max, account, stage)


def _ses_account(account: Account) -> Result:
    """Whether SES sends e-mails of this account, and to anyone."""
    state = account.client("sesv2").get_account()
    if not state["SendingEnabled"]:
        return False, (
            f"SES has stopped all mails of this account (state {state['EnforcementStatus']}). Read "
            "the reason in the console of SES under Reputation metrics, and answer AWS's case."
        )
    if not state["ProductionAccessEnabled"]:
        return None, (
            "SES is in its sandbox: it mails verified addresses only. Request production access in "
            "the console of SES, under Account dashboard."
        )
    quota = state["SendQuota"]
    return True, f"SES sends {quota['Max24HourSend']:,.0f} mails a day"


def _identity(account: Account, domain: str) -> Result:
    """Whether the domain of ``MAIL_FROM`` is verified."""
    try:
        identity = account.client("sesv2").get_email_identity(EmailIdentity=domain)
    except ClientError as error:
        if code(error) != ABSENT:
            raise
        return False, (
            f"SES does not know {domain}, the domain of MAIL_FROM. Create it as an identity in SES "
            "in this region, and its DKIM records in your DNS (docs/runbook.md, Mail)."
        )
    if not identity["VerifiedForSendingStatus"]:
        return False, (
            f"SES has not verified {domain} yet. Create the DKIM records that its page in the "
            "console of SES names, and wait up to three days."
        )
    return True, f"{domain} is verified"


def _configuration_set(account: Account, name: str) -> Result:
    """Whether the configuration set exists, sends, and reports bounces and complaints."""
    client = account.client("sesv2")
    try:
        configuration_set = client.get_configuration_set(ConfigurationSetName=name)
        answer = client.get_configuration_set_event_destinations(ConfigurationSetName=name)
    except ClientError as error:
        if code(error) != ABSENT:
            raise
        return None, (
            f"The configuration set {name} does not exist, so SES sends nothing. make deploy "
            "creates it, unless MAIL_SES_CONFIGURATION_SET names one of your own: create that."
        )
    if not configuration_set.get("SendingOptions", {}).get("SendingEnabled", True):
        return False, (
            f"Sending with the configuration set {name} is switched off. When the reason is gone: "
            "aws sesv2 put-configuration-set-sending-options --sending-enabled "
            f"--configuration-set-name {name}"
        )
    reported = {
        kind
        for destination in answer["EventDestinations"]
        if destination["Enabled"] and "SnsDestination" in destination
        for kind in destination["MatchingEventTypes"]
    }
    if missing := {"SEND", "BOUNCE", "COMPLAINT"} - reported:
        return False, (
            f"The configuration set {name} does not report {', '.join(sorted(missing))} to a topic."
            " Deploy again, or give your own set the topic that the stack mail has as an output."
        )
    return True, f"SES reports bounces and complaints with {name}"


def _webhook(account: Account, stage: str) -> Result:
    """Whether the stage's Telegram bot, if it has one, sends its updates to the stage."""
    outputs = Stack(account, stage, "data", Progress()).outputs() or {}
    secret = outputs.get("TelegramTokenSecretArn", "")
    token, _ = stage_facts.secret(account, secret) if secret else ("", "")
    if not token:
        return None, "The stage has no Telegram bot (docs/runbook.md, Settings)."
    state = telegram.webhook(token)
    expected = published_settings.published(account, stage).get("PUBLIC_URL", "") + TELEGRAM_PATH
    command = f"python -m infra admin --stage {stage} telegram-webhook --set"
    if state.get("url") != expected:
        return False, f"Telegram does not send the bot's updates to {expected}. Run {command}."
    if fault := state.get("last_error_message"):
        waiting = state.get("pending_update_count", 0)
        return None, (
            f"Telegram's last update failed ({fault}), and {waiting} wait. If the token was "
            f"replaced, run {command}."
        )
    return True, f"Telegram sends the bot's updates to {expected}"


def _webhook_of_max(account: Account, stage: str) -> Result:
    """Whether the stage's bot at MAX, if it has one, sends its updates to the stage."""
    outputs = Stack(account, stage, "data", Progress()).outputs() or {}
    secret = outputs.get("MaxTokenSecretArn", "")
    token, _ = stage_facts.secret(account, secret) if secret else ("", "")
    if not token:
        return None, "The stage has no bot at MAX (docs/runbook.md, Settings)."
    expected = published_settings.published(account, stage).get("PUBLIC_URL", "") + MAX_PATH
    if max_messenger.webhooks(token) != [expected]:
        command = f"python -m infra admin --stage {stage} max-webhook --set"
        return False, f"MAX does not send the bot's updates to {expected} only. Run {command}."
    return True, f"MAX sends the bot's updates to {expected}"
