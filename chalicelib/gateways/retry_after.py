"""The header ``Retry-After`` in responses of external services."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

from chalicelib.core import clock

LONGEST_WAIT = 86_400  # seconds, to which larger values are reduced


def retry_after_seconds(header: str | None) -> int | None:
    """Return the seconds of the header from 1 to ``LONGEST_WAIT``, or None if it is not valid."""
    text = (header or "").strip()
    # The header is in seconds or a date (RFC 9110, 10.2.3).
    if re.fullmatch(r"[0-9]{1,18}", text):
        wait = int(text)
    else:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, OverflowError):  # a year or a zone of many digits
            return None
        # HTTP dates are in UTC (RFC 9110, 5.6.7).
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        wait = round((moment - clock.now()).total_seconds())
    return min(max(wait, 1), LONGEST_WAIT)
