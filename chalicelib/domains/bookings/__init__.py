"""Free slots, and bookings that are created, moved, cancelled and paid."""
