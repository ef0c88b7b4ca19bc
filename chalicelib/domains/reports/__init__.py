"""Reports of what a workspace has sold, earned and taken, from sums of each local day."""
