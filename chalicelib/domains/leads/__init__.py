"""Forms, submissions, leads and their statistics."""
