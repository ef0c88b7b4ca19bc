"""Operations that span domains: the overview of a workspace, and the statistics of a site."""
