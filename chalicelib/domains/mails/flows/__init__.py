"""Steps that decide on e-mails."""
