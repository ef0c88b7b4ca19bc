"""Work on a whole workspace."""
