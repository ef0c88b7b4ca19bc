"""Steps that several operations on sites and pages share."""
