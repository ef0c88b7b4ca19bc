"""The pages of bookings."""
