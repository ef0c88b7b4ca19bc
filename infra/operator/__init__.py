"""The operator's command line, imports and exports."""
