"""Waiting lists: who waits for a free time of a service on a day, and to whom one is offered."""
