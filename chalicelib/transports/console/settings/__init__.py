"""Pages of the workspace's settings and administration."""
