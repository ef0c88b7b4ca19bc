"""One module per noun, or a package: its wire models and operations (``load_all``)."""
