"""Sites: records, custom domains, suspension, deletion with everything on them, and visits."""

from chalicelib.domains.sites import (
    custom_domains,
    deletion,
    records,
    stats,
    suspension,
    visits,
)

__all__ = ["custom_domains", "deletion", "records", "stats", "suspension", "visits"]
