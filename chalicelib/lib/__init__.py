"""Pure functions that do not depend on the service: phones, slugs, time zones, Markdown."""
