"""The application layer: ``invoke``, which runs operations, and the context of their handlers."""
