"""``infra admin export`` and ``import``: a whole workspace as one file (ADR 0034)."""
