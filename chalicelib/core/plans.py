"""The features and quotas that each plan includes."""

from typing import Literal, get_args

Plan = Literal["free", "start", "business", "enterprise"]
PLANS: tuple[Plan, ...] = get_args(Plan)

PLANS_WITH_API: frozenset[str] = frozenset({"business", "enterprise"})
"""Plans whose workspaces may use the REST API and the tool server."""

MEGABYTE = 1_000_000
STORAGE_BYTES: dict[str, int] = {
    "free": 100 * MEGABYTE,
    "start": 1_000 * MEGABYTE,
    "business": 10_000 * MEGABYTE,
    "enterprise": 100_000 * MEGABYTE,
}
"""Storage in bytes per workspace: files with their thumbnails, and the HTML of pages."""

LEADS_A_MONTH: dict[str, int] = {
    "free": 300,
    "start": 3_000,
    "business": 30_000,
    "enterprise": 300_000,
}
"""Leads from forms and chats in thirty days. Leads beyond the quota are marked."""

CLIENT_MAILS_A_DAY: dict[str, int] = {
    "free": 50,
    "start": 500,
    "business": 5_000,
    "enterprise": 50_000,
}
"""E-mail messages to clients on one day (UTC). Further messages are withheld."""
