"""Services that can be booked, their staff and rooms, opening hours and time off."""
