"""What leaves the process, other than to the database."""
