"""Steps that several catalogue operations share."""
