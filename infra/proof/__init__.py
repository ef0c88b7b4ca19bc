"""Attack each promise of the service, and report the findings.

``make proof`` attacks every promise within an hour and writes docs/proof.md. A part keeps the
figures of its last run in build/proof, so the page contains only what was run.
"""
