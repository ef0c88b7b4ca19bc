"""Steps that several operations on files share."""
