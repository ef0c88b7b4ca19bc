"""Take payments of clients and of accounts at payment providers, and refund payments."""
