"""Steps that several operations on leads and forms share."""
