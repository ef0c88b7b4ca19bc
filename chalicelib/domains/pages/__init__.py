"""Pages of a site: their records, their HTML, and pages imported from elsewhere."""
