"""Wire models and operation handlers of leads and forms."""
