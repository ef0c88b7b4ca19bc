"""The platform's blog: its posts, for ADMIN accounts and for readers."""

from chalicelib.domains.blog import reading, records

__all__ = ["reading", "records"]
