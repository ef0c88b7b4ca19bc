"""Services, resources, opening hours, time off, free slots and bookings."""
