"""Wire models and operation handlers of files and folders."""
