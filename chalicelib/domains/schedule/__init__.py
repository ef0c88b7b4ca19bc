"""Opening hours, time off, the staff's calendar and deletions, with bookings that they touch."""
