"""Wire models and operation handlers of sites and pages."""
