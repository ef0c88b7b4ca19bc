"""Pure rules of e-mail."""
