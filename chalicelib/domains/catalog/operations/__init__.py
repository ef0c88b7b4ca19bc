"""Wire models and operation handlers of the catalogue."""
