"""Report events to other systems by signed requests."""
