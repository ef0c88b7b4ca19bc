"""The database without any noun: tables, units of work, transactions, jobs, limits."""
