"""Pages of a site: their records, their HTML, and pages imported from elsewhere."""

from chalicelib.domains.pages import editing, imports, records

__all__ = ["editing", "imports", "records"]
