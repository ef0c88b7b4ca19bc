"""Pages of a site: their records and HTML, and pages imported from elsewhere."""

from chalicelib.domains.pages import imports, records

__all__ = ["imports", "records"]
