"""Store texts, web pages and files that a bot answers from, and search them."""
