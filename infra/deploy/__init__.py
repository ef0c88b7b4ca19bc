"""From a checkout to one base URL on AWS, and back: stacks, code, releases, locks (ADR 0036)."""
