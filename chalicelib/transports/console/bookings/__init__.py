"""The pages of bookings: a day, a week, a list, one booking and a new one."""
