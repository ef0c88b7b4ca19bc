"""What every layer may rely on: operations, errors, wire types, scopes, clock, ids.

Free of the cloud.
"""
