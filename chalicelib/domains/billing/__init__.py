"""Money of accounts: ledger, budgets, prices and the charging of requests."""
