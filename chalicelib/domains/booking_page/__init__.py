"""The public booking page, and the links by which visitors confirm, move, cancel and pay."""
