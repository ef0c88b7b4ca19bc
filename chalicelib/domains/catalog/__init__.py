"""Products, categories, barcodes and drafts of product cards."""
