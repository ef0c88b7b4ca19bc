"""Sites: their records, custom domains, suspension, and deletion with everything on them."""

from chalicelib.domains.sites import custom_domains, deletion, records, suspension

__all__ = ["custom_domains", "deletion", "records", "suspension"]
