"""DynamoDB for benchmarks: a seeded database, what its requests cost, and a proxy before it."""
