"""Paths of the lead calls."""

LIST, GET, FIND, ORDERS, STATUS, UPDATE = (
    f"/api/forms/collection{call}"
    for call in ("-list", "", "-find", "-orders", "-status", "-update")
)
