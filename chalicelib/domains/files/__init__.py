"""Files: their records, the folders they lie in, and how they come."""

from chalicelib.domains.files import folders, records, uploads

__all__ = ["folders", "records", "uploads"]
