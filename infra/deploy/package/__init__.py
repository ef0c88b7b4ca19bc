"""Building, trimming and checking of the Lambda zip."""
