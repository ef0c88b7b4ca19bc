"""Resources: masters, rooms and equipment, their opening hours, and time off."""

from chalicelib.domains.resources import availability, records, time_off

__all__ = ["availability", "records", "time_off"]
