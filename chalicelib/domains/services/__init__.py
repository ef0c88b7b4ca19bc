"""Services that can be booked, their staff and rooms, and rows of opening hours and time off."""
