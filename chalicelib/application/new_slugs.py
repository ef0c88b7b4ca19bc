"""Slugs of new records, made from their titles."""

from collections.abc import Container, Sequence

from chalicelib.application.context import Context
from chalicelib.core.call_warnings import WarningCode
from chalicelib.lib import slugs


def choose(
    ctx: Context,
    options: Sequence[str],
    used_slugs: Container[str],
    *,
    reserved: Container[str] = frozenset(),
) -> str:
    """Return the first free slug of ``slugs.candidates``, with a warning if it is not the first."""
    slug = slugs.first_free(options, used_slugs, reserved=reserved)
    if slug != options[0]:
        why = "reserved" if options[0] in reserved else "taken"
        ctx.warn(
            f'The slug "{options[0]}" is {why}; "{slug}" is used instead.',
            code=WarningCode.SLUG_CHANGED,
            requested=options[0],
            slug=slug,
        )
    return slug
