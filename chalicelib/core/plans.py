"""The features and quotas that each plan includes."""

from typing import Literal, get_args

Plan = Literal["free", "start", "business", "enterprise"]
PLANS: tuple[Plan, ...] = get_args(Plan)

# Why a workspace serves nobody: an operator has suspended it, or its owner has closed it. The row
# of a key has it in place of the plan, so that its calls need no further read.
Halt = Literal["suspended", "closed"]

# The plan of every test workspace, and of no other.
TEST = "test"
# Plans with the REST API and the tool server.
PLANS_WITH_API: frozenset[str] = frozenset({"business", "enterprise", TEST})

MEGABYTE = 1_000_000
# Bytes of files with their thumbnails, and of the HTML of pages, per workspace.
STORAGE_BYTES: dict[str, int] = {
    "free": 100 * MEGABYTE,
    "start": 1_000 * MEGABYTE,
    "business": 10_000 * MEGABYTE,
    "enterprise": 100_000 * MEGABYTE,
    TEST: 100 * MEGABYTE,
}

# Leads from forms and chats in thirty days. Leads beyond the quota are marked.
LEADS_A_MONTH: dict[str, int] = {
    "free": 300,
    "start": 3_000,
    "business": 30_000,
    "enterprise": 300_000,
    TEST: 1_000,
}

# E-mail messages to clients on one day (UTC); further messages are withheld.
CLIENT_MAILS_A_DAY: dict[str, int] = {
    "free": 50,
    "start": 500,
    "business": 5_000,
    "enterprise": 50_000,
    TEST: 500,
}

# SMS to clients on one day (UTC), which the owner's balance pays for; further messages go by mail.
SMS_A_DAY: dict[str, int] = {
    "free": 20,
    "start": 100,
    "business": 500,
    "enterprise": 5_000,
    TEST: 100,
}
