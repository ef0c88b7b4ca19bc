"""Plans: what each includes, and how much of it (spec, Limits)."""

from typing import Literal, get_args

Plan = Literal["free", "start", "business", "enterprise"]
PLANS: tuple[Plan, ...] = get_args(Plan)

PLANS_WITH_API: frozenset[str] = frozenset({"business", "enterprise"})
"""The REST interface and the tool server come with Business and above."""

MEGABYTE = 1_000_000
STORAGE_BYTES: dict[str, int] = {
    "free": 100 * MEGABYTE,
    "start": 1_000 * MEGABYTE,
    "business": 10_000 * MEGABYTE,
    "enterprise": 100_000 * MEGABYTE,
}
"""What files, thumbnails included, and pages' HTML of a workspace may take in all."""

LEADS_A_MONTH: dict[str, int] = {
    "free": 300,
    "start": 3_000,
    "business": 30_000,
    "enterprise": 300_000,
}
"""Leads of forms and chats in thirty days that a plan includes; those beyond it are marked."""
