"""Entry points of the service over HTTP and on a schedule."""
