"""Wire models and handlers: one module per noun or verb."""
