"""Pure functions that do not depend on the service, such as parsers and formatters."""
