"""Read tables of products that shops and spreadsheets export: bytes in, rows and a report out.

``product_table.read`` is the only entrance. Nothing here does input or output, and no operation
imports it, so that it costs no cold start.
"""
