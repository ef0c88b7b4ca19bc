"""AWS services that the deployment uses."""
