"""AWS, as the deployment calls it."""
