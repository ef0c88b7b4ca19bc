"""Return the overview of a workspace and the statistics of a site, which span domains."""
