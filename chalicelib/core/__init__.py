"""Types and rules that every layer shares. Nothing here depends on AWS."""
