"""Shared foundations of every layer: operations, errors, wire types, scopes, clock and ids.

Nothing here depends on AWS.
"""
