"""Knowledge of bots: texts, web pages and files of their owners, and an index to search them."""
