"""Export of a workspace to a file, and its import."""
