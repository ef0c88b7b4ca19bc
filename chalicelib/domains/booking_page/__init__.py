"""The booking page, and the links by which clients move and pay a booking."""
