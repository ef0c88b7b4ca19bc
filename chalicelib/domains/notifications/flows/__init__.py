"""Steps that several operations of notifications share."""
