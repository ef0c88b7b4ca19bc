"""Measurements on a seeded DynamoDB Local, in requests and capacity."""
