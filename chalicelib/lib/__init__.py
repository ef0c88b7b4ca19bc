"""Pure helpers that know no concept of the service: phones, slugs, time zones, markdown."""
