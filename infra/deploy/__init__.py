"""Deployment to AWS: stacks, releases, rollback, smoke test and doctor."""
