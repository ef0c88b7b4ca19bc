"""Wire models and operation handlers of the overview and of statistics."""
