"""Pages of services, of the staff, and of their hours."""
