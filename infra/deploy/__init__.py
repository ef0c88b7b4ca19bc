"""Deployment of stages to AWS, with releases, rollback and checks."""
