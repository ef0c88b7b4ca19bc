"""What bots know: texts, web pages and files of their owners, and an index to search them."""
