"""One folder per concept; inside each: operations > flows > store > rules."""
