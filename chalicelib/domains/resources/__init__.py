"""Resources: masters, rooms and equipment, their opening hours, and time off."""
