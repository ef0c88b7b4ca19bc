"""Files: their records, the folders they lie in, how they come, and how they go."""
